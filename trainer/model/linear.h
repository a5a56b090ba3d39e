/* A linear layer and what is fused with it: y = x w + bias, plus a residual or followed by GELU. */
#ifndef RM_TRAINER_LINEAR_H
#define RM_TRAINER_LINEAR_H

#include "trainer/model/crew.h"

struct linear {
    int64_t rows, in, out;
    const float *x;        /* (rows, in) */
    const float *weight;   /* (in, out) */
    const float *bias;     /* (out) */
    const float *residual; /* (rows, out), added to y; or NULL */
    float *y;              /* (rows, out) */
    float *gelu;           /* (rows, out), set to gelu(y); or NULL */
};

int linear_forward(struct crew *crew, const struct linear *l);

struct linear_gradient {
    const float *dy;          /* (rows, out) */
    float *dx;                /* (rows, in), overwritten */
    float *dweight;           /* (in, out), overwritten */
    float *dbias;             /* (out), overwritten */
    const float *before_gelu; /* (rows, in): x is gelu of this, and dx becomes its gradient; or NULL */
};

int linear_backward(struct crew *crew, const struct linear *l, const struct linear_gradient *g);

#endif
