/* A state at rest: whether its memory still has the bits that were written there. */
#ifndef RM_TRAINER_REST_H
#define RM_TRAINER_REST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/os/pool.h"
#include "trainer/state/state.h"

/* To read a parameter takes as long as to learn from six tokens or so. Where a worker learns from this many
 * in a step, or more, its lanes take so much longer that all are read in each step; else one part of them in
 * each, so that it takes less than a hundredth of a step there, too. */
enum { REST_TOKENS = 1024, REST_PARTS_MAX = 64 };

/* How many a worker learns from in a step, from those of a lane: whoever has a lane more than others counts
 * as they do. */
int64_t rest_tokens(const struct state *s, uint32_t of_lane, int world);
/* In how many parts it comes: the same for all ranks of a ring. */
int rest_parts(int64_t tokens);

/* Adds the bits of its parameters, as they are now, to what this rank says of its state (state_sum): lanes
 * have been computed from them. Reads all of them, or of so many parts that whose turn it is at this step. */
void rest_say(struct state *s, int parts, struct pool *pool);

/* The lanes of a pass say who they were when it was begun (rank `was`); who says it now is another rank, with
 * other flags, in another ring. header: what this rank says, all but its ranks' words as it is. */
void rest_say_as(const struct state *s, uint32_t *header, int was, int rank, uint32_t flags);

/* Are each piece's bits those of its sum? Reads all of the state. True where no sums are known yet. */
bool rest_sound(struct state *s, struct pool *pool);

/* Sum of all of the state's bits as its updates wrote them, or, where none of them has yet, as they are; 0: a
 * state whose sums are fp32 has none. */
uint64_t rest_written(struct state *s, struct pool *pool);

#endif
