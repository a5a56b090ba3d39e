/* Biases: rows set to a bias before a product is added to them, and the sums of columns that are its
 * gradient. Strides in elements. */
#ifndef RM_TRAINER_BIAS_H
#define RM_TRAINER_BIAS_H

#include <stdint.h>

/* y[r][j] = bias[j] + (residual ? residual[r][j] : 0); both row matrices have the same stride. */
void bias_fill(float *y, const float *residual, int64_t stride, const float *bias, int64_t rows,
               int64_t columns);

/* sums[j] = the sum over r of y[r][j], in order of r. */
void bias_gradient(float *sums, const float *y, int64_t stride, int64_t rows, int64_t columns);

#endif
