/* A state at rest: whether its memory still has the bits that were written there. */
#ifndef RM_TRAINER_REST_H
#define RM_TRAINER_REST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/os/pool.h"
#include "trainer/state/state.h"

/* Adds the bits of its parameters, as they are now, to what this rank says of its state (state_sum): lanes
 * have been computed from them. Reads all of them. */
void rest_say(struct state *s, struct pool *pool);

/* Are each piece's bits those of its sum? Reads all of the state. True where no sums are known yet. */
bool rest_sound(struct state *s, struct pool *pool);

/* Sum of all of the state's bits as its updates wrote them, or, where none of them has yet, as they are; 0: a
 * state whose sums are fp32 has none. */
uint64_t rest_written(struct state *s, struct pool *pool);

#endif
