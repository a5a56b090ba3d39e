/* Checkpoints that do not load, and whatever else a store does. */
#ifndef RM_COORDINATOR_RDZV_LOAD_H
#define RM_COORDINATOR_RDZV_LOAD_H

#include "coordinator/core/rdzv_state.h"

void rdzv_storage_fault(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f);
bool rdzv_all_are_damaged(const struct turn *turn); /* true: the run has ended */
int rdzv_load_turn(const struct rdzv *st);          /* by how many members the shares move on */

#endif
