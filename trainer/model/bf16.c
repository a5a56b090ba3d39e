#include "trainer/model/bf16.h"

#include "trainer/model/vec_gelu.h"

typedef uint16_t vec_half __attribute__((vector_size(2 * VEC)));

VEC_INLINE vec_half rounded(vec v)
{
    vec_bits bits = (vec_bits)v, size = bits & 0x7FFFFFFFu;
    vec_bits even = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    vec_bits no_number = (vec_bits)((vec_int)(0x7F800000u - size) >> 31);
    return __builtin_convertvector((no_number & ((bits >> 16) | 0x40u)) | (~no_number & even), vec_half);
}

VEC_INLINE vec half_load(const uint16_t *p, int width)
{
    vec_half h = {0};
    if (width == VEC)
        memcpy(&h, p, sizeof h);
    else
        memcpy(&h, p, (size_t)width * sizeof *p);
    return (vec)(__builtin_convertvector(h, vec_bits) << 16);
}

VEC_INLINE void half_store(uint16_t *p, vec v, int width)
{
    vec_half h = rounded(v);
    if (width == VEC)
        memcpy(p, &h, sizeof h);
    else
        memcpy(p, &h, (size_t)width * sizeof *p);
}

/* By memcpy, because both may be one row's memory: what is written lies behind what is still to be read. */
VEC_CLONED void bf16_narrow(void *to, const float *from, int64_t n)
{
    char *out = to;
    for (int64_t j = 0; j < n; j += VEC) {
        int width = vec_width(j, n);
        vec_half h = rounded(vec_load(from + j, width));
        memcpy(out + 2 * j, &h, 2 * (size_t)width);
    }
}

VEC_CLONED void bf16_widen(float *to, const uint16_t *from, int64_t n)
{
    for (int64_t j = 0; j < n; j += VEC) {
        int width = vec_width(j, n);
        vec_store(to + j, half_load(from + j, width), width);
    }
}

VEC_CLONED void bf16_store(uint16_t *y, int64_t stride, const float *tile, const float *bias, int64_t rows,
                           int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = 0; j < columns; j += VEC) {
            int width = vec_width(j, columns);
            vec v = vec_load(tile + r * columns + j, width);
            if (bias)
                v += vec_load(bias + j, width);
            half_store(y + r * stride + j, v, width);
        }
    }
}

VEC_CLONED void bf16_store_gelu(uint16_t *x, uint16_t *gelu, int64_t stride, const float *tile,
                                const float *bias, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = 0; j < columns; j += VEC) {
            int width = vec_width(j, columns);
            half_store(x + r * stride + j,
                       vec_load(tile + r * columns + j, width) + vec_load(bias + j, width), width);
            vec v = half_load(x + r * stride + j, width); /* what the way back will see */
            half_store(gelu + r * stride + j, vec_gelu(v), width);
        }
    }
}

VEC_CLONED void bf16_store_gelu_backward(uint16_t *d, const uint16_t *x, int64_t stride, const float *tile,
                                         int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = 0; j < columns; j += VEC) {
            int width = vec_width(j, columns);
            vec change = vec_gelu_slope(half_load(x + r * stride + j, width));
            half_store(d + r * stride + j, vec_load(tile + r * columns + j, width) * change, width);
        }
    }
}

VEC_CLONED void bf16_column_sums(float *sums, const uint16_t *y, int64_t stride, int64_t rows,
                                 int64_t columns)
{
    for (int64_t j = 0; j < columns; j += VEC) {
        int width = vec_width(j, columns);
        vec sum = vec_set(0);
        for (int64_t r = 0; r < rows; r++)
            sum += half_load(y + r * stride + j, width);
        vec_store(sums + j, sum, width);
    }
}

VEC_CLONED float bf16_dot(const uint16_t *a, const uint16_t *b, int64_t n)
{
    vec sum = vec_set(0);
    for (int64_t j = 0; j < n; j += VEC)
        sum += half_load(a + j, vec_width(j, n)) * half_load(b + j, vec_width(j, n));
    return vec_sum(sum);
}
