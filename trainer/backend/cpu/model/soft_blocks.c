#include "trainer/backend/cpu/model/soft_blocks.h"

#include <stddef.h>

#include "trainer/backend/cpu/model/scalar.h"
#include "trainer/backend/cpu/model/vec_half.h"

/* Lanes from `width` on become `other`. */
VEC_INLINE vec only_first(vec v, int width, float other)
{
    for (int i = width; i < VEC; i++)
        v[i] = other;
    return v;
}

VEC_INLINE float top_of(const float *x, int64_t n)
{
    int64_t whole = n / VEC * VEC;
    vec most = vec_set(x[0]);
    for (int64_t j = 0; j < whole; j += VEC)
        most = vec_max(most, vec_load(x + j, VEC));
    if (whole < n)
        most = vec_max(most, only_first(vec_load(x + whole, (int)(n - whole)), (int)(n - whole), x[0]));
    for (int half = VEC / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            most[i] = most[i] > most[i + half] ? most[i] : most[i + half];
    return most[0];
}

/* The exponentials of one row; returns their sum. */
VEC_INLINE float powers_of(const float *x, int64_t n, float top, uint16_t *e)
{
    int64_t whole = n / VEC * VEC;
    int left = (int)(n - whole);
    vec all = vec_set(0);
    for (int64_t j = 0; j < whole; j += VEC) {
        vec power = vec_exp(vec_load(x + j, VEC) - vec_set(top));
        all += power;
        if (e)
            half_store(e + j, power, VEC);
    }
    if (left) {
        vec power = only_first(vec_exp(vec_load(x + whole, left) - vec_set(top)), left, 0);
        all += power;
        if (e)
            half_store(e + whole, power, left);
    }
    return vec_sum(all);
}

VEC_CLONED void soft_part(const float *logits, int64_t rows, int64_t columns, float *top, float *sum,
                          uint16_t *e, int64_t stride)
{
    for (int64_t r = 0; r < rows; r++) {
        top[r] = top_of(logits + r * columns, columns);
        sum[r] = powers_of(logits + r * columns, columns, top[r], e ? e + r * stride : NULL);
    }
}

VEC_INLINE void gather(const struct soft *s, int64_t first, int width)
{
    vec top = vec_load(s->top + first, width), total = vec_set(0), aimed = vec_load(s->aimed + first, width);
    for (int64_t p = 1; p < s->parts; p++)
        top = vec_max(top, vec_load(s->top + p * s->rows + first, width));
    for (int64_t p = 0; p < s->parts; p++) {
        int64_t at = p * s->rows + first;
        total += vec_load(s->sum + at, width) * vec_exp(vec_load(s->top + at, width) - top);
    }
    const vec share = vec_set(s->scale) / total;
    for (int64_t p = 0; p < s->parts; p++) {
        float *at = s->top + p * s->rows + first;
        vec_store(at, vec_exp(vec_load(at, width) - top) * share, width);
    }
    vec_store(s->at_target + first, vec_exp(aimed - top) * share - vec_set(s->scale), width);
    for (int i = 0; i < width; i++)
        s->losses[first + i] = (float)scalar_log(total[i]) - (aimed[i] - top[i]);
}

VEC_CLONED void soft_gather(const struct soft *s, int64_t first, int64_t count)
{
    for (int64_t r = 0; r < count; r += VEC)
        gather(s, first + r, vec_width(r, count));
}

VEC_CLONED void soft_scale(const struct soft_block *b)
{
    for (int64_t r = 0; r < b->rows; r++) {
        uint16_t *row = b->e + r * b->stride;
        const float *factor = b->factor + r;
        for (int64_t first = 0; first < b->columns; first += b->part, factor += b->rows) {
            int64_t end = b->columns - first < b->part ? b->columns : first + b->part;
            for (int64_t j = first; j < end; j += VEC) {
                int width = vec_width(j, end);
                half_store(row + j, half_load(row + j, width) * vec_set(*factor), width);
            }
        }
    }
}
