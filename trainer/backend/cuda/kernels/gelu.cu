#include "trainer/backend/cuda/kernels/gelu.h"

#include "trainer/backend/cuda/kernels/operand.cu"

/* 1 / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3) */
DEVICE float gelu_gate(float x, float square)
{
    const float twice_u = 1.5957691216057308f * x * (1 + 0.044715f * square);
    return 1 / (1 + two_to(-1.4426950408889634f * twice_u));
}

DEVICE float gelu_slope(float x)
{
    const float square = x * x, gate = gelu_gate(x, square);
    return gate + x * gate * (1 - gate) * (1.5957691216057308f * (1 + 3 * 0.044715f * square));
}

DEVICE void gelu_one(const struct gelu_args *a, int64_t at, int64_t column)
{
    const float from = operand_at(a->from, at, a->half);
    const float x = operand_rounded(a->bias ? from + a->bias[column] : from, a->half);
    operand_set(a->kept, at, x, a->half);
    operand_set(a->to, at, x * gelu_gate(x, x * x), a->half);
}

DEVICE void gelu_eight(const struct gelu_args *a, int64_t at, int64_t column)
{
    float x[OPERAND_EIGHT], bias[OPERAND_EIGHT], y[OPERAND_EIGHT];
    operand_eight(a->from, at, x, a->half);
    if (a->bias)
        operand_floats(a->bias + column, bias);
    UNROLL
    for (int k = 0; k < OPERAND_EIGHT; k++) {
        x[k] = operand_rounded(a->bias ? x[k] + bias[k] : x[k], a->half);
        y[k] = x[k] * gelu_gate(x[k], x[k] * x[k]);
    }
    operand_set_eight(a->kept, at, x, a->half);
    operand_set_eight(a->to, at, y, a->half);
}

KERNEL(gelu, GELU_THREADS)(const struct gelu_args a)
{
    const int each = a.columns % OPERAND_EIGHT ? 1 : OPERAND_EIGHT;
    const uint32_t columns = (uint32_t)(a.columns / each), count = (uint32_t)a.rows * columns;
    for (uint32_t i = (uint32_t)(BLOCK * GELU_THREADS + THREAD); i < count;
         i += (uint32_t)(BLOCKS * GELU_THREADS)) {
        if (each == 1)
            gelu_one(&a, i, i % columns);
        else
            gelu_eight(&a, (int64_t)i * each, (int64_t)(i % columns) * each);
    }
}

DEVICE void gelu_back_eight(const struct gelu_back_args *a, int64_t at)
{
    float x[OPERAND_EIGHT], d[OPERAND_EIGHT];
    operand_eight(a->kept, at, x, a->half);
    operand_eight(a->d, at, d, a->half);
    UNROLL
    for (int k = 0; k < OPERAND_EIGHT; k++)
        d[k] *= gelu_slope(x[k]);
    operand_set_eight(a->d, at, d, a->half);
}

KERNEL(gelu_back, GELU_THREADS)(const struct gelu_back_args a)
{
    const int64_t stride = (int64_t)BLOCKS * GELU_THREADS, eights = a.count / OPERAND_EIGHT;
    const int64_t own = (int64_t)BLOCK * GELU_THREADS + THREAD;
    for (int64_t i = own; i < eights; i += stride)
        gelu_back_eight(&a, i * OPERAND_EIGHT);
    for (int64_t i = eights * OPERAND_EIGHT + own; i < a.count; i += stride)
        operand_set(a.d, i, operand_at(a.d, i, a.half) * gelu_slope(operand_at(a.kept, i, a.half)), a.half);
}
