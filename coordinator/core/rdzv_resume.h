/* From which step the next ring goes on. Only looks, but for what is forgiven. rdzv_boundary.h has
 * rdzv_best_state. */
#ifndef RM_COORDINATOR_RDZV_RESUME_H
#define RM_COORDINATOR_RDZV_RESUME_H

#include "coordinator/core/rdzv_state.h"

bool rdzv_is_of(const struct msg_checkpoint *c, const struct msg_state *s);  /* it holds this state */
bool rdzv_is_refused(const struct rdzv *st, const struct msg_checkpoint *c); /* found damaged */
bool rdzv_may_load(const struct rdzv *st, const struct msg_checkpoint *c);
struct msg_state rdzv_newest_checkpoint(const struct rdzv *st);
void rdzv_load_forgive(struct rdzv *st, int64_t step);

bool rdzv_needs_lists(const struct rdzv *st); /* what is to be loaded decides */
bool rdzv_lists_are_in(const struct rdzv *st);
struct msg_state rdzv_choose_held(const struct rdzv *st, const struct msg_state *checkpoint);
bool rdzv_begins_anew(const struct rdzv *st);

#endif
