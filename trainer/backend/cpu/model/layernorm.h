/* Layer normalisation of rows, epsilon 1e-5, and its gradients. */
#ifndef RM_TRAINER_LAYERNORM_H
#define RM_TRAINER_LAYERNORM_H

#include <stdint.h>

struct layernorm_stats {
    float mean, scale; /* scale = 1 / sqrt(variance + epsilon) */
};

struct layernorm {
    int64_t rows, width;
    const float *x;                /* (rows, width) */
    const float *weight;           /* (width) */
    const float *bias;             /* (width) */
    struct layernorm_stats *stats; /* (rows): written forward, read backward */
};

/* y (rows, width), for the rows [first, first + count) */
void layernorm_forward(const struct layernorm *l, float *y, int64_t first, int64_t count);

/* dy (rows, width): the gradient of y. dx += its gradient, for the rows [first, first + count). partial
 * (2, width) is set to those rows' share of the gradients of weight and bias. */
void layernorm_backward(const struct layernorm *l, const float *dy, float *dx, float *partial, int64_t first,
                        int64_t count);

/* Columns [first, first + count) of the gradients of weight and bias: the sum of n partials in order. */
void layernorm_gather(const float *partials, int n, int64_t width, float *dweight, float *dbias,
                      int64_t first, int64_t count);

#endif
