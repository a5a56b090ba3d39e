/* The recovery under way, if there is one, and what it cost. */
#ifndef RM_COORDINATOR_RDZV_RECOVERY_H
#define RM_COORDINATOR_RDZV_RECOVERY_H

#include "coordinator/core/rdzv_state.h"

/* Something took the ring apart. Within a recovery the sharpest cause stays. w: the worker that it is about,
 * NULL for none; where a drill on it was announced the recovery counts from there. */
void rdzv_recovery_begin(const struct turn *turn, enum cause cause, struct rdzv_worker *w);
/* The next ring has its members: what they do again is counted as rework. */
void rdzv_recovery_formed(const struct turn *turn);
/* The first step of the next ring is made: tells what the recovery cost. Does nothing where none is under
 * way. */
void rdzv_recovery_done(const struct turn *turn);

#endif
