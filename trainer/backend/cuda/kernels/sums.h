/* What the norm, the lineage and the check of the words need of each piece: kernel_sums of the CPU's sums.
 * Sixteen threads a piece, each a column of it; any number of blocks of SUMS_THREADS. */
#ifndef RM_TRAINER_CUDA_SUMS_H
#define RM_TRAINER_CUDA_SUMS_H

#include <stdint.h>

#include "trainer/backend/cuda/kernels/pieces.h"

enum { SUMS_THREADS = 256, SUMS_COLUMNS = 16 };

/* The sums of a piece's words; squares are of the values, not scaled. */
struct sums_of_piece {
    double square;                    /* of fp32, in the CPU's order; 0 where words are int32 */
    uint64_t square_high, square_low; /* of int32, exact: high * 2^64 + low; 0 where words are fp32 */
    uint64_t sum;                     /* of the bits */
    uint64_t proof;                   /* weight(place) * word (proof.cu); 0 where words are fp32 */
};

struct sums_args {
    const uint32_t *words;
    const struct cuda_piece *piece; // (pieces)
    struct sums_of_piece *to;       // (pieces)
    int32_t pieces;
    int32_t floats; /* words are fp32, else int32 */
};

#endif
