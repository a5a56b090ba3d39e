/* A linear layer and what is fused with it: y = x w + bias, plus a residual or followed by GELU.
 *
 * bf16: the operands of the products (x, weight, dy) are bf16, and so is what the next product reads: y where
 * there is no residual, gelu, and dx where dx_bf16 says so. The residual stream and all that goes to norms or
 * is a weight's gradient stays fp32. Arrays whose kind depends on it are void. */
#ifndef RM_TRAINER_LINEAR_H
#define RM_TRAINER_LINEAR_H

#include "trainer/backend/cpu/model/crew.h"

struct linear {
    int64_t rows, in, out;
    bool bf16;
    const void *x;         /* (rows, in) */
    const void *weight;    /* (in, out) */
    const float *bias;     /* (out) */
    const float *residual; /* (rows, out), added to y; or NULL */
    void *y;               /* (rows, out) */
    void *gelu;            /* (rows, out), set to gelu(y); or NULL */
};

/* Floats of scratch memory that each thread needs with bf16. */
enum { LINEAR_SCRATCH = MATMUL_TILE };

int linear_forward(struct crew *crew, const struct linear *l);

struct linear_gradient {
    const void *dy;          /* (rows, out) */
    void *dx;                /* (rows, in), overwritten */
    bool dx_bf16;            /* with bf16 only */
    float *dweight;          /* (in, out), overwritten */
    float *dbias;            /* (out), overwritten */
    const void *before_gelu; /* (rows, in): x is gelu of this, and dx becomes its gradient; or NULL */
};

int linear_backward(struct crew *crew, const struct linear *l, const struct linear_gradient *g);

#endif
