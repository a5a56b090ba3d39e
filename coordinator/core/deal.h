/* Whose the lanes of a step are in a ring that goes on with a pass of it.
 *
 * Each member keeps what it has computed. Where two have the same lane, who has more lanes keeps them, and
 * the other one begins anew: sums can't be taken apart. All other lanes, a dead member's among them, go to
 * who has least left, so that no two members have to compute more than one lane apart, but for those who are
 * to have none. Pure. */
#ifndef RM_COORDINATOR_DEAL_H
#define RM_COORDINATOR_DEAL_H

#include "common/base/lane_set.h"
#include "common/base/set.h"

/* done: (world) what each member has computed, by rank; comes back without that of who begins anew.
 * idle: ranks that have computed nothing, and get nothing; not all. ret_rank: (lanes) whose each lane is.
 * Returns how many lanes are still to be computed. */
int deal_lanes(int lanes, int world, struct worker_set idle, struct lane_set *done, int *ret_rank);

#endif
