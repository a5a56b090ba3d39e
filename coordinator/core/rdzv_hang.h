/* A ring that stands still although everybody is there. */
#ifndef RM_COORDINATOR_RDZV_HANG_H
#define RM_COORDINATOR_RDZV_HANG_H

#include "coordinator/core/rdzv_state.h"

void rdzv_hang_heartbeat(struct rdzv_worker *w, const struct msg_heartbeat *h, rm_time now);
void rdzv_hang_step_took(struct rdzv *st, rm_time took);
bool rdzv_hang_answers(const struct rdzv *st, const struct rdzv_worker *w, rm_time now);
void rdzv_check_hang(const struct turn *turn);
rm_time rdzv_hang_at(const struct rdzv *st);

#endif
