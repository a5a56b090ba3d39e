/* The recovery under way, if one is, and what it cost. */
#ifndef RM_COORDINATOR_RDZV_RECOVERY_H
#define RM_COORDINATOR_RDZV_RECOVERY_H

#include "coordinator/core/rdzv_state.h"

void rdzv_recovery_begin(const struct turn *turn, enum cause cause,
                         struct rdzv_worker *w); /* w: who it is about, NULL nobody */
void rdzv_recovery_formed(const struct turn *turn);
void rdzv_recovery_done(const struct turn *turn); /* its first step is made: told */

#endif
