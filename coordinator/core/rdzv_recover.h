/* Taking over from a coordinator that died, or giving way to the next one. */
#ifndef RM_COORDINATOR_RDZV_RECOVER_H
#define RM_COORDINATOR_RDZV_RECOVER_H

#include "coordinator/core/rdzv_state.h"

/* Begins in RECOVERING, with what settings.predecessor tells. */
void rdzv_restore(struct rdzv *st);
/* What a hello says of the ring that the predecessor left. */
void rdzv_recover_hello(struct rdzv *st, const struct msg_hello *h);
/* A member of the ring that it is RECOVERING is ready. */
void rdzv_recover_ready(struct rdzv *st, struct rdzv_worker *w, const struct message *m);
/* Goes on with the ring where it is whole, or stops it. */
void rdzv_settle_recovering(const struct turn *turn);
/* When it goes on without those who are missing. */
rm_time rdzv_recovering_until(const struct rdzv *st);
/* The workers obey a coordinator of a higher term: this one ends, and releases nobody. */
void rdzv_step_down(const struct turn *turn, int64_t term);

#endif
