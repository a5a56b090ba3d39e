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

#endif
