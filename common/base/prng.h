/* Random numbers as pure functions and small states; nothing here reads a device or a clock.
 *
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC '11) is counter-based:
 * the same (key, counter) gives the same 128 bits everywhere, so initial weights, shuffles and samples do
 * not depend on who draws them or in which order. splitmix64 (Steele, Lea, Flood, OOPSLA '14) drives
 * simulations and hashes seeds. */
#ifndef RM_BASE_PRNG_H
#define RM_BASE_PRNG_H

#include <stdint.h>

struct philox_block {
    uint32_t word[4];
};

struct philox_block philox4x32(uint64_t key, uint64_t counter_low, uint64_t counter_high);

/* Steps *state and returns 64 well-mixed bits. */
uint64_t splitmix64(uint64_t *state);

/* Uniform in [0, bound) without bias (rejection); bound > 0. */
uint64_t prng_below(uint64_t *state, uint64_t bound);

/* Uniform in [0, 1), 53 bits. */
double prng_unit(uint64_t *state);

#endif
