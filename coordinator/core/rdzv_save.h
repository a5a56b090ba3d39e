/* Checkpoints. */
#ifndef RM_COORDINATOR_RDZV_SAVE_H
#define RM_COORDINATOR_RDZV_SAVE_H

#include "coordinator/core/rdzv_state.h"

void rdzv_checkpointed(struct rdzv *st, struct rdzv_worker *w, const struct msg_checkpointed *m,
                       struct rdzv_out *out);
void rdzv_published(struct rdzv *st, const struct msg_published *p, rm_time now, struct rdzv_out *out);
bool rdzv_save_begin(struct rdzv *st, const struct msg_state *state, bool final, rm_time now,
                     struct rdzv_out *out); /* false: nobody holds it, or it is saved already */
void rdzv_settle_saving(struct rdzv *st, rm_time now, struct rdzv_out *out);
rm_time rdzv_saving_until(const struct rdzv *st);
void rdzv_write_fault(struct rdzv *st, struct rdzv_worker *w, const struct msg_fault *f, rm_time now,
                      struct rdzv_out *out);

#endif
