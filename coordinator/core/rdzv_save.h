/* Checkpoints. */
#ifndef RM_COORDINATOR_RDZV_SAVE_H
#define RM_COORDINATOR_RDZV_SAVE_H

#include "coordinator/core/rdzv_state.h"

void rdzv_checkpointed(const struct turn *turn, struct rdzv_worker *w, const struct msg_checkpointed *m);
void rdzv_published(const struct turn *turn, const struct msg_published *p);
bool rdzv_save_begin(const struct turn *turn, const struct msg_state *state,
                     bool final); /* false: nobody holds it, or it is saved already */
void rdzv_settle_saving(const struct turn *turn);
rm_time rdzv_saving_until(const struct rdzv *st);
void rdzv_write_fault(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f);

#endif
