/* GPT-2's GELU ("gelu_new"): x/2 (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3). Computed as
 * x / (1 + e^-2u), which is the same and needs no tanh. */
#ifndef RM_TRAINER_GELU_H
#define RM_TRAINER_GELU_H

#include <stdint.h>

/* y = gelu(x) for `rows` rows of `columns` elements that lie `stride` apart in both. */
void gelu_forward(float *y, const float *x, int64_t stride, int64_t rows, int64_t columns);

/* d = d * gelu'(x) in place. */
void gelu_backward(float *d, const float *x, int64_t stride, int64_t rows, int64_t columns);

#endif
