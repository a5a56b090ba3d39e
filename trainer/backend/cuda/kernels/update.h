/* AdamW over all pieces that do not bear the step's stamp, so that it may be cut off anywhere and done again:
 * change_piece and kernel_adamw of the CPU's sums. A block works on one piece at a time and has the slot of
 * its number: as many blocks of UPDATE_THREADS as there are slots, or fewer.
 *
 * In place: slot, valid, values, their proof, stamp, valid cleared, in this order on the device, whatever
 * thread it is that stores. What is found when a kernel was cut off goes to restore (restore.h). Elsewhere
 * (to_params != params): the old values stay, so no slot is used. */
#ifndef RM_TRAINER_CUDA_UPDATE_H
#define RM_TRAINER_CUDA_UPDATE_H

#include <stdint.h>

#include "trainer/backend/cuda/kernels/pieces.h"

enum { UPDATE_THREADS = 512, UPDATE_EACH = PIECE_MOST / UPDATE_THREADS /* elements of a thread */ };

/* struct kernel_adamw, of one tensor. */
struct update_constants {
    float unit, clip, beta1, rest1, beta2, rest2, bias2, epsilon, rate, keep;
};

struct update_args {
    const uint32_t *words;
    const float *params, *m, *v;              // (parameters) each
    float *to_params, *to_m, *to_v;           // (parameters) each; the same: in place
    const struct cuda_piece *piece;           // (pieces)
    const struct update_constants *constants; // (tensors)
    struct cuda_slot *slot;                   // (blocks)
    int64_t *stamp;                           // (pieces)
    uint64_t *proof;                          // (pieces) of the new bits (proof.cu)
    int64_t step;                             /* stamps become this */
    int32_t pieces;
    int32_t floats; /* words are fp32, else int32 */
};

#endif
