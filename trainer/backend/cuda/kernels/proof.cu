/* trainer/exact/proof.h for other kernels: of words weight(place) * word, of a piece the bits of its
 * elements, each array's with a factor of its own; both modulo 2^64, so in any order. */
#ifndef RM_TRAINER_CUDA_PROOF_CU
#define RM_TRAINER_CUDA_PROOF_CU

#include "trainer/backend/cuda/kernels/kernel.h"

/* at: place of the word in flat order. */
DEVICE uint64_t proof_of_word(uint64_t at, uint32_t word)
{
    const uint32_t weight = ((uint32_t)at * 0x9e3779b1u >> 2) | 1;
    return (uint64_t)((int64_t)(int32_t)word * (int64_t)weight);
}

DEVICE uint64_t proof_of_element(float param, float m, float v)
{
    return bits_of(param) + 0x9e3779b97f4a7c15u * bits_of(m) + 0xc2b2ae3d27d4eb4fu * bits_of(v);
}

/* Adds up what a warp's lanes have, for lane 0. */
DEVICE uint64_t proof_of_warp(uint64_t proof)
{
    for (int n = WARP / 2; n > 0; n /= 2)
        proof += warp_down_u64(proof, n);
    return proof;
}

/* Leaves each warp's in part[]: after a barrier, proof_of_parts adds them up. */
DEVICE void proof_to_part(uint64_t *part, uint64_t proof)
{
    proof = proof_of_warp(proof);
    if (THREAD % WARP == 0)
        part[THREAD / WARP] = proof;
}

DEVICE uint64_t proof_of_parts(const uint64_t *part, int warps)
{
    uint64_t proof = 0;
    for (int i = 0; i < warps; i++)
        proof += part[i];
    return proof;
}

#endif
