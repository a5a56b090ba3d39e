/* From which step the next ring could go on. These functions look, but for rdzv_load_forgive and
 * rdzv_lists_are_old; rdzv_best_state stands in rdzv_bridge.h. */
#ifndef RM_COORDINATOR_RDZV_RESUME_H
#define RM_COORDINATOR_RDZV_RESUME_H

#include "coordinator/core/rdzv_state.h"

/* The checkpoint holds this state. */
bool rdzv_is_of(const struct msg_checkpoint *c, const struct msg_state *s);
/* The checkpoint was found damaged. */
bool rdzv_is_refused(const struct rdzv *st, const struct msg_checkpoint *c);
/* The checkpoint is of this run, or of one that is to be resumed, and is not refused. */
bool rdzv_may_load(const struct rdzv *st, const struct msg_checkpoint *c);
/* The newest checkpoint that all who may form list; held is false where there is none. */
struct msg_state rdzv_newest_checkpoint(const struct rdzv *st);
/* A checkpoint of that step was written anew: what was damaged there is gone. */
void rdzv_load_forgive(struct rdzv *st, int64_t step);

/* Nobody holds a state, so that the lists of checkpoints decide. */
bool rdzv_needs_lists(const struct rdzv *st);
/* All lists that are needed are here. */
bool rdzv_lists_are_in(const struct rdzv *st);
/* A checkpoint was published: what was listed before says nothing of it. */
void rdzv_lists_are_old(struct rdzv *st);
/* The state in memory to go on from, beside the newest checkpoint that could be loaded; held is false where
 * the checkpoint is to be loaded. */
struct msg_state rdzv_choose_held(const struct rdzv *st, const struct msg_state *checkpoint);
/* Nothing is held, and nothing can be loaded. */
bool rdzv_begins_anew(const struct rdzv *st);

#endif
