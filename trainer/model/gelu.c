#include "trainer/model/gelu.h"

#include "trainer/model/vec.h"

static const float twice_root = 1.5957691216057308f; /* 2 sqrt(2 / pi) */
static const float cubic = 0.044715f;

/* 1 / (1 + e^-2u) */
VEC_INLINE vec gate_of(vec x, vec square)
{
    vec twice_u = vec_set(twice_root) * x * (vec_set(1) + vec_set(cubic) * square);
    return vec_set(1) / (vec_set(1) + vec_exp(-twice_u));
}

VEC_CLONED void gelu_forward(float *y, const float *x, int64_t stride, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = 0; j < columns; j += VEC) {
            int width = vec_width(j, columns);
            vec v = vec_load(x + r * stride + j, width);
            vec_store(y + r * stride + j, v * gate_of(v, v * v), width);
        }
    }
}

VEC_CLONED void gelu_backward(float *d, const float *x, int64_t stride, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = 0; j < columns; j += VEC) {
            int width = vec_width(j, columns);
            vec v = vec_load(x + r * stride + j, width), square = v * v;
            vec gate = gate_of(v, square);
            vec slope = vec_set(twice_root) * (vec_set(1) + vec_set(3 * cubic) * square);
            vec change = gate + v * gate * (vec_set(1) - gate) * slope;
            vec_store(d + r * stride + j, vec_load(d + r * stride + j, width) * change, width);
        }
    }
}
