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

KERNEL(gelu, GELU_THREADS)(const struct gelu_args a)
{
    for (int32_t r = BLOCK; r < a.rows; r += BLOCKS)
        for (int64_t j = THREAD; j < a.columns; j += GELU_THREADS) {
            const int64_t at = r * a.columns + j;
            const float from = operand_at(a.from, at, a.half);
            const float x = operand_rounded(a.bias ? from + a.bias[j] : from, a.half);
            operand_set(a.kept, at, x, a.half);
            operand_set(a.to, at, x * gelu_gate(x, x * x), a.half);
        }
}

KERNEL(gelu_back, GELU_THREADS)(const struct gelu_back_args a)
{
    const int64_t stride = (int64_t)BLOCKS * GELU_THREADS;
    for (int64_t i = (int64_t)BLOCK * GELU_THREADS + THREAD; i < a.count; i += stride)
        operand_set(a.d, i, operand_at(a.d, i, a.half) * gelu_slope(operand_at(a.kept, i, a.half)), a.half);
}
