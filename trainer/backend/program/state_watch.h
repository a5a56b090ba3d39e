/* What a program's weights are is its own affair: the trainer knows what they should have been changed by. So
 * now and then the whole state goes into the lineage, which ranks compare before each step: a worker whose
 * arithmetic, memory or program makes something else of the same gradients shows one step later.
 *
 * Before the update to step s + 1, where s is a multiple of WATCH_EVERY (0 apart: first states are compared
 * anyway), the lineage that it leads to is mixed with a sum over the image of state s. All that is a function
 * of s, so that every rank, also one that catches up, comes to the same lineage. Pure. */
#ifndef RM_BACKEND_PROGRAM_STATE_WATCH_H
#define RM_BACKEND_PROGRAM_STATE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"

/* A program writes its image once in so many steps: some percent of a step for what is as large as its
 * weights and computes for a second. */
enum { WATCH_EVERY = 50 };

/* Is state(step) in the lineage of the step after it? */
bool watch_is_due(int64_t step);
/* Finds what differs by chance, not by intent: CRC-32C of each MiB, and the SHA-256 of these. */
void watch_sum(const void *image, size_t bytes, uint8_t out[RM_HASH_BYTES]);
void watch_mix(uint8_t lineage[RM_HASH_BYTES], const uint8_t sum[RM_HASH_BYTES]);

#endif
