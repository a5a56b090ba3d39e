/* Which samples a lane reads at a step: a pure function, so the data cursor is one integer, the step.
 *
 * Lane l of step s reads the samples at positions s*B + l*laneSequences + j (B = lanes * laneSequences,
 * j < laneSequences) of an endless order: each pass over the training samples is a permutation of its own,
 * fixed by (seed, pass), and batches run across the ends of passes. Nothing depends on how many workers
 * there are or were. */
#ifndef RM_TRAINER_CURSOR_H
#define RM_TRAINER_CURSOR_H

#include <stdint.h>

struct cursor {
    uint64_t seed;
    int64_t samples; /* training samples, >= 1; held-out ones are not among them */
    int lanes, lane_sequences;
};

/* The sample in [0, samples). */
int64_t cursor_sample(const struct cursor *c, int64_t step, int lane, int sequence);
/* Element `index` of the permutation of [0, samples) of that pass. */
int64_t cursor_permute(uint64_t seed, int64_t pass, int64_t samples, int64_t index);

#endif
