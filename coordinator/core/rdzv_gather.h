/* GATHERING and QUIESCING. */
#ifndef RM_COORDINATOR_RDZV_GATHER_H
#define RM_COORDINATOR_RDZV_GATHER_H

#include "coordinator/core/rdzv_state.h"

void rdzv_settle_gathering(const struct turn *turn);
rm_time rdzv_gathering_until(const struct rdzv *st);
void rdzv_settle_quiescing(const struct turn *turn);
rm_time rdzv_quiescing_until(const struct rdzv *st);

#endif
