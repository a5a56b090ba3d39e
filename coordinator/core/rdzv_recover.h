/* Taking over from a coordinator that died. */
#ifndef RM_COORDINATOR_RDZV_RECOVER_H
#define RM_COORDINATOR_RDZV_RECOVER_H

#include "coordinator/core/rdzv_state.h"

void rdzv_restore(struct rdzv *st);
void rdzv_recover_hello(struct rdzv *st, const struct msg_hello *h);
void rdzv_recover_ready(struct rdzv *st, struct rdzv_worker *w, const struct message *m);
void rdzv_settle_recovering(const struct turn *turn);
rm_time rdzv_recovering_until(const struct rdzv *st); /* then a successor goes on without who is missing */
void rdzv_step_down(const struct turn *turn, int64_t term);

#endif
