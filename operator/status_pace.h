/* When a job's status may be written: how often for one job, and over all of them. What a job's pods and
 * coordinator do is their owner's doing; however fast they change, the API server is not asked to note each
 * turn of it. Jobs whose numbers have to wait stand in a line, and each is told its own place in it: of ten
 * thousand that all looked again whenever one may be written, twenty times a second, nothing else would come.
 */
#ifndef RM_OPERATOR_STATUS_PACE_H
#define RM_OPERATOR_STATUS_PACE_H

#include "common/kube/bucket.h"
#include "operator/core/plan.h"

struct status_paces {
    struct bucket ticking; /* over all jobs: 20 a second */
};

/* When one job was written, and may be again; zero at first. */
struct status_pace {
    rm_time written;      /* its last status; 0: none */
    rm_time turn;         /* when its numbers have their place among those of all jobs; 0: they have none */
    struct bucket urgent; /* 30 at once, then one each 2 s */
};

struct status_paces status_paces_init(rm_time now);

/* May this change be written now? Numbers that move at most every 10 s a job. Else *ret_when it may; who asks
 * and is told yes, writes. */
bool status_pace_allows(struct status_paces *all, struct status_pace *own, enum op_change change, rm_time now,
                        rm_time *ret_when);

#endif
