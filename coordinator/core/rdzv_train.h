/* TRAINING: what stops a ring that is at work, and its last step. */
#ifndef RM_COORDINATOR_RDZV_TRAIN_H
#define RM_COORDINATOR_RDZV_TRAIN_H

#include "coordinator/core/rdzv_state.h"

/* An end, the last step, a leave or a join that is due. */
void rdzv_settle_training(const struct turn *turn);
/* When one of them is due by time alone. */
rm_time rdzv_training_until(const struct rdzv *st);
/* A worker has finished the last step. */
void rdzv_finished(struct rdzv *st, struct rdzv_worker *w, const struct message *m);

#endif
