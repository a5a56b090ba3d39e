/* GPT-2's GELU ("gelu_new") with the bias before it, and its slope; as trainer/backend/cpu/model/gelu.h has
 * it, x / (1 + e^-2u). Any number of blocks of GELU_THREADS; less than 2^32 operands, which lie at multiples
 * of 16 bytes: eight are read together where the columns are a multiple of that. */
#ifndef RM_TRAINER_CUDA_GELU_H
#define RM_TRAINER_CUDA_GELU_H

#include <stdint.h>

enum { GELU_THREADS = 256 };

/* kept = from + bias, to = gelu of what was kept */
struct gelu_args {
    const void *from;  // (rows, columns) operands
    const float *bias; // (columns); NULL: none
    void *kept;        // (rows, columns) operands, for the way back; may be from
    void *to;          // (rows, columns) operands
    int64_t columns;
    int32_t rows;
    int32_t half; /* operands are bf16, else fp32 */
};

/* d *= gelu'(kept) */
struct gelu_back_args {
    const void *kept; // (count) operands
    void *d;          // (count) operands
    int64_t count;
    int32_t half;
};

#endif
