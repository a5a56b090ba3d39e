/* Puts back what a cut-off update left half done: restore_piece of trainer/state. May itself be cut off and
 * done again. One block of RESTORE_THREADS for each slot; what is whole stays. */
#ifndef RM_TRAINER_CUDA_RESTORE_H
#define RM_TRAINER_CUDA_RESTORE_H

#include <stdint.h>

#include "trainer/backend/cuda/kernels/pieces.h"

enum { RESTORE_THREADS = 256 };

struct restore_args {
    float *params, *m, *v;          // (parameters) each
    const struct cuda_piece *piece; // (pieces)
    struct cuda_slot *slot;         // (blocks)
    int64_t *stamp;                 // (pieces)
    uint64_t *proof;                // (pieces) of the bits (proof.cu)
    int64_t step;                   /* of the state that the slots hold pieces of */
};

#endif
