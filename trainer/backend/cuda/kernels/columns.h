/* Sums of columns: a bias's gradient, and the shares of a norm's. Any number of blocks of COLUMNS_THREADS;
 * there is work for one of each COLUMNS_A_BLOCK columns and `each` rows.
 *
 * Of many rows in two turns: each `each` rows to a row of sums, then those, with `each` as their number. A
 * sum is that of COLUMNS_SLICES slices of its rows, of the same length but for the last ones, in order; each
 * slice is added up in order of rows, from 0 on. */
#ifndef RM_TRAINER_CUDA_COLUMNS_H
#define RM_TRAINER_CUDA_COLUMNS_H

#include <stdint.h>

enum {
    COLUMNS_THREADS = 256,
    COLUMNS_SLICES = 8,    /* a warp each */
    COLUMNS_A_BLOCK = 256, /* eight columns a lane */
    COLUMNS_TOGETHER = 4   /* rows that are read before one is added */
};

struct columns_args {
    const void *from; // (rows, columns), rows `stride` apart
    float *to;        // (rows / each, up; columns)
    int64_t stride, columns;
    int32_t rows, each;
    int32_t half; /* from is bf16, else fp32 */
};

#endif
