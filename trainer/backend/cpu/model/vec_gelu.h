/* GELU of sixteen floats at a time (gelu.h says which one). */
#ifndef RM_TRAINER_VEC_GELU_H
#define RM_TRAINER_VEC_GELU_H

#include "trainer/backend/cpu/model/vec.h"

#define VEC_GELU_TWICE_ROOT 1.5957691216057308f /* 2 sqrt(2 / pi) */
#define VEC_GELU_CUBIC      0.044715f

/* 1 / (1 + e^-2u) */
VEC_INLINE vec vec_gelu_gate(vec x, vec square)
{
    vec twice_u = vec_set(VEC_GELU_TWICE_ROOT) * x * (vec_set(1) + vec_set(VEC_GELU_CUBIC) * square);
    return vec_set(1) / (vec_set(1) + vec_exp(-twice_u));
}

VEC_INLINE vec vec_gelu(vec x)
{
    return x * vec_gelu_gate(x, x * x);
}

VEC_INLINE vec vec_gelu_slope(vec x)
{
    vec square = x * x, gate = vec_gelu_gate(x, square);
    vec slope = vec_set(VEC_GELU_TWICE_ROOT) * (vec_set(1) + vec_set(3 * VEC_GELU_CUBIC) * square);
    return gate + x * gate * (vec_set(1) - gate) * slope;
}

#endif
