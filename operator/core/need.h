/* How many workers a job needs to be done in time, for autoscalers. Pure.
 *
 * In time is when nine tenths of spec.activeDeadlineSeconds are over, which is counted as the deadline is:
 * the last tenth is for the last checkpoint, and for what comes between. How long the rest takes a ring is
 * its coordinator's word (etaSeconds), and a ring of another size takes as much longer as its busiest worker
 * has more lanes: lanes are whole (model_part), so of 12 lanes five workers make nothing of what four do not.
 * The answer is always a number that one worker less would be slower than. */
#ifndef RM_OPERATOR_CORE_NEED_H
#define RM_OPERATOR_CORE_NEED_H

#include "operator/core/coordinator.h"
#include "operator/core/job.h"

/* 1 to the job's lanes, whatever its workers.max: more than that will not be in time. 0: nobody knows; the
 * job has no deadline, no ring that has made a step yet, no lanes (mode Restart), or comes to its end, or its
 * coordinator was not heard for a minute. view: its last answer, at answered_ms; NULL: none. A ring that is
 * just in time, or done within a minute, is left as it is, and another size is chosen with a tenth to spare,
 * so that not every breath of the time left is a change. */
int need_workers(const struct job_view *job, const struct coordinator_view *view, int64_t answered_ms,
                 int64_t now_ms);

#endif
