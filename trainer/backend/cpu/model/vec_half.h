/* bf16 numbers sixteen at a time (bf16.h says how they are rounded). */
#ifndef RM_TRAINER_VEC_HALF_H
#define RM_TRAINER_VEC_HALF_H

#include "trainer/backend/cpu/model/vec.h"

typedef uint16_t vec_half __attribute__((vector_size(2 * VEC)));

VEC_INLINE vec_half half_rounded(vec v)
{
    vec_bits bits = (vec_bits)v, size = bits & 0x7FFFFFFFu;
    vec_bits even = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    vec_bits no_number = (vec_bits)((vec_int)(0x7F800000u - size) >> 31);
    return __builtin_convertvector((no_number & ((bits >> 16) | 0x40u)) | (~no_number & even), vec_half);
}

VEC_INLINE vec half_widened(vec_half h)
{
    return (vec)(__builtin_convertvector(h, vec_bits) << 16);
}

VEC_INLINE vec_half half_read(const uint16_t *p, int width)
{
    vec_half h = {0};
    if (width == VEC)
        memcpy(&h, p, sizeof h);
    else
        memcpy(&h, p, (size_t)width * sizeof *p);
    return h;
}

VEC_INLINE void half_write(uint16_t *p, vec_half h, int width)
{
    if (width == VEC)
        memcpy(p, &h, sizeof h);
    else
        memcpy(p, &h, (size_t)width * sizeof *p);
}

VEC_INLINE vec half_load(const uint16_t *p, int width)
{
    return half_widened(half_read(p, width));
}

VEC_INLINE void half_store(uint16_t *p, vec v, int width)
{
    half_write(p, half_rounded(v), width);
}

#endif
