/* What enters products: bf16, or fp32 where that is the setting. All else that kernels of the model read and
 * write is fp32. */
#ifndef RM_TRAINER_CUDA_OPERAND_CU
#define RM_TRAINER_CUDA_OPERAND_CU

#include "trainer/backend/cuda/kernels/kernel.h"

DEVICE float half_value(uint16_t half)
{
    return float_of((uint32_t)half << 16);
}

DEVICE float operand_at(const void *operands, int64_t i, int half)
{
    return half ? half_value(((const uint16_t *)operands)[i]) : ((const float *)operands)[i];
}

DEVICE void operand_set(void *operands, int64_t i, float x, int half)
{
    if (half)
        ((uint16_t *)operands)[i] = half_of(x);
    else
        ((float *)operands)[i] = x;
}

/* x as who reads it again will see it. */
DEVICE float operand_rounded(float x, int half)
{
    return half ? half_value(half_of(x)) : x;
}

/* ---- eight at a time: 16 bytes of bf16, twice 16 of fp32, at a place that is a multiple of eight ---- */

enum { OPERAND_EIGHT = 8 };

struct WIDE operand_wide {
    uint32_t word[4];
};

DEVICE void operand_floats(const float *from, float x[OPERAND_EIGHT])
{
    const struct operand_wide low = ((const struct operand_wide *)from)[0],
                              high = ((const struct operand_wide *)from)[1];
    UNROLL
    for (int k = 0; k < 4; k++) {
        x[k] = float_of(low.word[k]);
        x[4 + k] = float_of(high.word[k]);
    }
}

DEVICE void operand_set_floats(float *to, const float x[OPERAND_EIGHT])
{
    struct operand_wide low, high;
    UNROLL
    for (int k = 0; k < 4; k++) {
        low.word[k] = bits_of(x[k]);
        high.word[k] = bits_of(x[4 + k]);
    }
    ((struct operand_wide *)to)[0] = low;
    ((struct operand_wide *)to)[1] = high;
}

DEVICE void operand_eight(const void *operands, int64_t i, float x[OPERAND_EIGHT], int half)
{
    if (!half) {
        operand_floats((const float *)operands + i, x);
        return;
    }
    const struct operand_wide all = *(const struct operand_wide *)((const uint16_t *)operands + i);
    UNROLL
    for (int k = 0; k < 4; k++) {
        x[2 * k] = float_of(all.word[k] << 16);
        x[2 * k + 1] = float_of(all.word[k] & 0xffff0000u);
    }
}

DEVICE void operand_set_eight(void *operands, int64_t i, const float x[OPERAND_EIGHT], int half)
{
    if (!half) {
        operand_set_floats((float *)operands + i, x);
        return;
    }
    struct operand_wide all;
    UNROLL
    for (int k = 0; k < 4; k++)
        all.word[k] = half_pair(x[2 * k], x[2 * k + 1]);
    *(struct operand_wide *)((uint16_t *)operands + i) = all;
}

#endif
