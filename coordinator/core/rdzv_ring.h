/* A ring as others see it. */
#ifndef RM_COORDINATOR_RDZV_RING_H
#define RM_COORDINATOR_RDZV_RING_H

#include "coordinator/core/rdzv_state.h"

void rdzv_fill_member(const struct rdzv *st, struct msg_member *m, int worker);
void rdzv_tell_formed(const struct turn *turn);

#endif
