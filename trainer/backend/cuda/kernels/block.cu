/* One number of all threads of a block, in all threads, always in the same order: the lanes of each warp by
 * halves, then warp by warp. */
#ifndef RM_TRAINER_CUDA_BLOCK_CU
#define RM_TRAINER_CUDA_BLOCK_CU

#include "trainer/backend/cuda/kernels/kernel.h"

/* Each meeting has one barrier, and the next one but one uses its memory again: whoever is there has been
 * let through the one between, and so have all others read. */
struct block_meetings {
    float *part; // (2, warps), shared
    int warps, turn;
};

DEVICE float block_larger(float a, float b)
{
    return a > b ? a : b;
}

/* Leaves each warp's x for the others and returns all of them. */
DEVICE const float *block_meet(struct block_meetings *m, float x)
{
    float *const part = m->part + m->turn * m->warps;
    m->turn = 1 - m->turn;
    if (THREAD % WARP == 0)
        part[THREAD / WARP] = x;
    BARRIER();
    return part;
}

DEVICE float block_sum(struct block_meetings *m, float x)
{
    for (int n = WARP / 2; n > 0; n /= 2)
        x += float_of(warp_xor(bits_of(x), n));
    const float *const part = block_meet(m, x);
    float sum = part[0];
    for (int i = 1; i < m->warps; i++)
        sum += part[i];
    return sum;
}

/* No NaN is larger than anything. */
DEVICE float block_largest(struct block_meetings *m, float x)
{
    for (int n = WARP / 2; n > 0; n /= 2)
        x = block_larger(float_of(warp_xor(bits_of(x), n)), x);
    const float *const part = block_meet(m, x);
    float most = part[0];
    for (int i = 1; i < m->warps; i++)
        most = block_larger(part[i], most);
    return most;
}

#endif
