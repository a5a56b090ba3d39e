/* The recovery under way, if one is, and what it cost. */
#ifndef RM_COORDINATOR_RDZV_RECOVERY_H
#define RM_COORDINATOR_RDZV_RECOVERY_H

#include "coordinator/core/rdzv_state.h"

void rdzv_recovery_begin(struct rdzv *st, enum cause cause, struct rdzv_worker *w,
                         rm_time now); /* w: who it is about, NULL nobody */
void rdzv_recovery_formed(struct rdzv *st, rm_time now);
void rdzv_recovery_done(struct rdzv *st, rm_time now,
                        struct rdzv_out *out); /* its first step is made: told */

#endif
