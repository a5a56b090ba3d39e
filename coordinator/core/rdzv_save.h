/* Checkpoints, from their first piece to the last, and the state SAVING. */
#ifndef RM_COORDINATOR_RDZV_SAVE_H
#define RM_COORDINATOR_RDZV_SAVE_H

#include "coordinator/core/rdzv_state.h"

/* A worker wrote its part. */
void rdzv_checkpointed(const struct turn *turn, struct rdzv_worker *w, const struct msg_checkpointed *m);
/* A checkpoint is whole in the store. */
void rdzv_published(const struct turn *turn, const struct msg_published *p);
/* Has a state saved by all who hold it, and moves to SAVING. False: nobody holds it, or its step is saved
 * already. */
bool rdzv_save_begin(const struct turn *turn, const struct msg_state *state, bool final);
/* What SAVING waits for: goes on when it is published, begins anew when a writer is gone. */
void rdzv_settle_saving(const struct turn *turn);
/* When it would go on by time alone. */
rm_time rdzv_saving_until(const struct rdzv *st);
/* A worker can't write. A periodic checkpoint costs nothing but itself; one that the run ends with does. */
void rdzv_write_fault(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f);

#endif
