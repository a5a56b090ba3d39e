/* How long leaves take, as measured, and how much time one is given. Pure. */
#ifndef RM_COORDINATOR_LEAVE_TIMES_H
#define RM_COORDINATOR_LEAVE_TIMES_H

#include "common/base/limits.h"
#include "common/base/time.h"

enum { LEAVES_KEPT = 8 };

/* All zero: none was measured. */
struct leave_times {
    rm_time took[LEAVES_KEPT]; /* the newest, in no order */
    rm_time rest[LEAVES_KEPT]; /* of each what came behind the ring's last step */
    int count, next;
};

/* From the order to stop to the word that the worker may go, and of it from when the ring stood still. Longer
 * than half a minute is no leave's own. */
void leave_times_add(struct leave_times *times, rm_time took, rm_time rest);

/* What is kept for something that took so long before: a store, or a network, is not always as fast as it
 * was.
 */
rm_time leave_with_margin(rm_time takes);

/* What is kept of a machine's time for a leave that must not fail: twice the longest of the newest eight
 * (there are too few for a 99th percentile), or twice two seconds where none was measured; twice a step of
 * the ring at least, as the one under way is made first; and what a moment may be off that a cloud tells. */
rm_time leave_times_margin(const struct leave_times *times, rm_time step);

/* The same where somebody stays who holds what the leaver does, so that a machine that is gone too early
 * costs the step under way: a quarter more than the longest of them, or than such a step and the longest
 * rest; and what that moment may be off. */
rm_time leave_times_survived(const struct leave_times *times, rm_time step);

/* How long a lane takes the ranks of a ring; 0: not known. */
struct leave_paces {
    int lanes, world;
    rm_time lane[RM_WORKERS_MAX]; // (world)
};

/* How much longer a step is whose lanes are shared out as usual than one whose lanes have followed these
 * paces. Who is not known has its usual share in both. */
rm_time leave_usual_longer(const struct leave_paces *paces);

#endif
