/* Kernels for the emulator's own tests. */
#ifndef RM_TESTS_SMALL_KERNELS_H
#define RM_TESTS_SMALL_KERNELS_H

#include "tests/cuda_rig/emulator.h"

/* Adds 256 numbers in shared memory, halving. */
struct halves_args {
    const float *from; // (256)
    float *to;         // (blocks)
};

/* What each thread does of what it may not. */
enum mistake { NO_MISTAKE, LEAVES_EARLY, OTHER_BARRIER, LEAVES_WARP, BEHIND_SHARED };
struct mistake_args {
    enum mistake mistake;
    uint32_t *to;
};

/* d = a * b, one warp. */
struct product_args {
    const uint16_t *a; // (16, 16) bf16
    const uint16_t *b; // (16, 8) bf16
    const float *c;    // (16, 8)
    float *d;          // (16, 8)
};

/* Each thread's number from lane ^ n. */
struct swap_args {
    const uint32_t *from; // (64)
    uint32_t *to;         // (64)
    int n;
};

/* Four matrices out of shared memory, one warp. */
struct matrices_args {
    const uint16_t *from; // (4, 8, 8)
    uint32_t *to;         // (32, 4): each lane's registers
    int turned;
};

/* 32 threads copy four words each, of which the odd threads' are not there, and each reads its neighbour's.
 */
struct copies_args {
    const uint32_t *from; // (32, 4)
    uint32_t *to;         // (32, 4)
    enum { WAITS, NEVER_WAITS, WAITS_LATE, AT_ODD_PLACE } how;
};

extern const struct emulated_kernel emulated_halves, emulated_mistake, emulated_product, emulated_swap,
    emulated_matrices, emulated_copies;

#endif
