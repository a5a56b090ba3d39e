/* TRAINING. */
#ifndef RM_COORDINATOR_RDZV_TRAIN_H
#define RM_COORDINATOR_RDZV_TRAIN_H

#include "coordinator/core/rdzv_state.h"

void rdzv_settle_training(const struct turn *turn);
rm_time rdzv_training_until(const struct rdzv *st);
void rdzv_finished(struct rdzv *st, struct rdzv_worker *w, const struct message *m);
bool rdzv_all_finished(const struct rdzv *st);

#endif
