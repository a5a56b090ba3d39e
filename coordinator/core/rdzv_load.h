/* Checkpoints that do not load, and whatever else fails at a store. */
#ifndef RM_COORDINATOR_RDZV_LOAD_H
#define RM_COORDINATOR_RDZV_LOAD_H

#include "coordinator/core/rdzv_state.h"

/* A call to a store failed: the kind of call decides what is done. */
void rdzv_storage_fault(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f);
/* True: there were checkpoints, each was refused, and the run has ended. */
bool rdzv_all_are_damaged(const struct turn *turn);
/* True: so they were, but one more is written and not published yet. That is waited for, and told, until
 * then. Once nothing is awaited any more all are asked to list anew, one time after each refusal, and their
 * lists are waited for. */
bool rdzv_awaits_manifest(const struct turn *turn);
rm_time rdzv_awaits_manifest_until(const struct rdzv *st);
/* Whoever finds damage first would else keep the others from finding theirs, and nothing would ever be seen
 * by two: the ring is stopped then, or once all have told. RM_NEVER: nobody is waited for. */
rm_time rdzv_load_decides_at(const struct rdzv *st);
/* A ring is formed: nobody has read for it yet. */
void rdzv_load_begins(struct rdzv *st);
/* By how many members the shares move on, so that another one reads what was found damaged. */
int rdzv_load_turn(const struct rdzv *st);

#endif
