#include "trainer/backend/cpu/model/bf16.h"

#include "trainer/backend/cpu/model/vec_gelu.h"
#include "trainer/backend/cpu/model/vec_half.h"

/* Each loop below has its body twice: with sixteen elements, which the compiler knows, and with what is left
 * at the end of a row. */

/* By memcpy, because both may be one row's memory: what is written lies behind what is still to be read. */
VEC_CLONED void bf16_narrow(void *to, const float *from, int64_t n)
{
    char *out = to;
    int64_t whole = n / VEC * VEC;
    for (int64_t j = 0; j < whole; j += VEC) {
        vec_half h = half_rounded(vec_load(from + j, VEC));
        memcpy(out + 2 * j, &h, sizeof h);
    }
    if (whole < n) {
        vec_half h = half_rounded(vec_load(from + whole, (int)(n - whole)));
        memcpy(out + 2 * whole, &h, 2 * (size_t)(n - whole));
    }
}

VEC_CLONED void bf16_widen(float *to, const uint16_t *from, int64_t n)
{
    int64_t whole = n / VEC * VEC;
    for (int64_t j = 0; j < whole; j += VEC)
        vec_store(to + j, half_load(from + j, VEC), VEC);
    if (whole < n)
        vec_store(to + whole, half_load(from + whole, (int)(n - whole)), (int)(n - whole));
}

VEC_CLONED void bf16_store(uint16_t *y, int64_t stride, const float *tile, const float *bias, int64_t rows,
                           int64_t columns)
{
    int64_t whole = columns / VEC * VEC;
    int left = (int)(columns - whole);
    for (int64_t r = 0; r < rows; r++, y += stride, tile += columns) {
        for (int64_t j = 0; j < whole; j += VEC)
            half_store(y + j,
                       bias ? vec_load(tile + j, VEC) + vec_load(bias + j, VEC) : vec_load(tile + j, VEC),
                       VEC);
        if (left)
            half_store(y + whole,
                       vec_load(tile + whole, left) + (bias ? vec_load(bias + whole, left) : vec_set(0)),
                       left);
    }
}

/* GELU of the rounded x, which is what the way back will see. */
VEC_INLINE void store_gelu(uint16_t *x, uint16_t *gelu, vec v, int width)
{
    vec_half h = half_rounded(v);
    half_write(x, h, width);
    half_store(gelu, vec_gelu(half_widened(h)), width);
}

VEC_CLONED void bf16_store_gelu(uint16_t *x, uint16_t *gelu, int64_t stride, const float *tile,
                                const float *bias, int64_t rows, int64_t columns)
{
    int64_t whole = columns / VEC * VEC;
    int left = (int)(columns - whole);
    for (int64_t r = 0; r < rows; r++, x += stride, gelu += stride, tile += columns) {
        for (int64_t j = 0; j < whole; j += VEC)
            store_gelu(x + j, gelu + j, vec_load(tile + j, VEC) + vec_load(bias + j, VEC), VEC);
        if (left)
            store_gelu(x + whole, gelu + whole, vec_load(tile + whole, left) + vec_load(bias + whole, left),
                       left);
    }
}

VEC_INLINE void store_slope(uint16_t *d, const uint16_t *x, const float *tile, int width)
{
    half_store(d, vec_load(tile, width) * vec_gelu_slope(half_load(x, width)), width);
}

/* x was written long ago, and its rows lie far apart: no processor foresees the next ones. */
enum { ROWS_AHEAD = 6 };

VEC_CLONED void bf16_store_gelu_backward(uint16_t *d, const uint16_t *x, int64_t stride, const float *tile,
                                         int64_t rows, int64_t columns)
{
    int64_t whole = columns / VEC * VEC;
    for (int64_t r = 0; r < rows; r++, d += stride, x += stride, tile += columns) {
        for (int64_t j = 0; j < whole; j += VEC) {
            __builtin_prefetch(x + ROWS_AHEAD * stride + j);
            store_slope(d + j, x + j, tile + j, VEC);
        }
        if (whole < columns)
            store_slope(d + whole, x + whole, tile + whole, (int)(columns - whole));
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
