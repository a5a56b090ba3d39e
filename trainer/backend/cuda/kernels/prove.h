/* The proof of each piece made anew from its bits: after a state was received, loaded or made, or to see
 * whether one that was found is what was left. A block works on one piece at a time; any number of blocks of
 * PROVE_THREADS. */
#ifndef RM_TRAINER_CUDA_PROVE_H
#define RM_TRAINER_CUDA_PROVE_H

#include <stdint.h>

#include "trainer/backend/cuda/kernels/pieces.h"

enum { PROVE_THREADS = 256 };

struct prove_args {
    const float *params, *m, *v;    // (parameters) each
    const struct cuda_piece *piece; // (pieces)
    uint64_t *proof;                // (pieces) see proof.cu
    int32_t pieces;
};

#endif
