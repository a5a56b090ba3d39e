/* bf16 numbers: the upper half of a float, kept as uint16_t. To bf16 is to the nearest, ties to even, by
 * integer arithmetic of our own: the same bits on every processor. NaN stays NaN.
 *
 * Kernels that end a product whose result is bf16: the product's tile is in fp32 in a thread's own memory
 * (rows x columns, dense), and what is written lies `stride` elements from row to row. */
#ifndef RM_TRAINER_BF16_H
#define RM_TRAINER_BF16_H

#include <stdint.h>

/* to may be from's own memory: element i lands where half of element i / 2 was. */
void bf16_narrow(void *to, const float *from, int64_t n);
void bf16_widen(float *to, const uint16_t *from, int64_t n);

/* y = tile (+ bias, where not NULL) */
void bf16_store(uint16_t *y, int64_t stride, const float *tile, const float *bias, int64_t rows,
                int64_t columns);

/* x = tile + bias, gelu = gelu of that x */
void bf16_store_gelu(uint16_t *x, uint16_t *gelu, int64_t stride, const float *tile, const float *bias,
                     int64_t rows, int64_t columns);

/* d = tile * gelu'(x) */
void bf16_store_gelu_backward(uint16_t *d, const uint16_t *x, int64_t stride, const float *tile, int64_t rows,
                              int64_t columns);

/* sums[j] = the sum over r of y[r][j], in fp32 and in order of r. */
void bf16_column_sums(float *sums, const uint16_t *y, int64_t stride, int64_t rows, int64_t columns);

/* Sixteen lanes of fp32. */
float bf16_dot(const uint16_t *a, const uint16_t *b, int64_t n);

#endif
