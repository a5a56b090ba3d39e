/* States that nobody can vouch for: of one step and one history, with bits that differ, and no majority that
 * says whose are right. Nobody holds one of them any more, whoever had not heard of it when it was told to
 * stop, is a successor on the same memory, or comes back later. */
#ifndef RM_COORDINATOR_RDZV_VOUCH_H
#define RM_COORDINATOR_RDZV_VOUCH_H

#include "coordinator/core/rdzv_state.h"

/* The states of that step that the ring's members made: also at the word of one that a predecessor heard. */
void rdzv_vouch_for_none(struct rdzv *st, struct msg_generation ring, int64_t step);

/* A later ring has made the step anew. */
void rdzv_vouch_again(struct rdzv *st, struct msg_generation ring, int64_t step);

/* Whether nobody vouches for the states of that step now. */
bool rdzv_is_unvouched(const struct rdzv *st, int64_t step);

/* Others of that ring, whose state counts, say that this worker's of that step is another one. It may have
 * been told to stop before it saw so, and then it still holds it. */
void rdzv_outvoted(const struct rdzv *st, struct rdzv_worker *w, struct msg_generation ring, int64_t step);

/* What counts of the state that this worker, of that ring or of none, says it holds. It has another one only
 * once it was ready in a later ring: one that it was to load for, and could not, leaves it what it had. */
struct msg_state rdzv_vouched(const struct rdzv *st, const struct rdzv_worker *w, struct msg_generation ring,
                              const struct msg_state *state);

#endif
