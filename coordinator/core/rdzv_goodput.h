/* Where the time goes: each moment since the job began is of one class (struct rdzv_goodput). */
#ifndef RM_COORDINATOR_RDZV_GOODPUT_H
#define RM_COORDINATOR_RDZV_GOODPUT_H

#include "coordinator/core/rdzv_turn.h"
#include "coordinator/core/rdzv_types.h"

void rdzv_account(const struct turn *turn); /* the time since the last call, to what is done now */
void rdzv_count_stall(const struct turn *turn);
struct rdzv_goodput rdzv_goodput(const struct rdzv *st, rm_time now);
double rdzv_productive_share(struct rdzv_goodput g); /* 0..1; 0 where no time has passed */

#endif
