#include "trainer/backend/cuda/kernels/norm.h"

#include "trainer/backend/cuda/kernels/block.cu"
#include "trainer/backend/cuda/kernels/operand.cu"

/* A row of which a warp keeps all: eights of each lane. Wider ones, and those of another width than a
 * multiple of eight, are a block's work, which reads them again. */
enum { NORM_WARPS = NORM_THREADS / WARP, NORM_EIGHTS = 4, NORM_KEPT = NORM_EIGHTS * WARP * OPERAND_EIGHT };

DEVICE int norm_is_kept(int64_t width)
{
    return width <= NORM_KEPT && width % OPERAND_EIGHT == 0;
}

/* The same bits in all lanes. */
DEVICE float norm_warp_sum(float x)
{
    for (int n = WARP / 2; n > 0; n /= 2)
        x += float_of(warp_xor(bits_of(x), n));
    return x;
}

/* Where this lane's n-th eight begins. */
DEVICE int64_t norm_place(int n)
{
    return (n * WARP + THREAD % WARP) * OPERAND_EIGHT;
}

/* ---- rows that a warp keeps ---- */

DEVICE void norm_take(const struct norm_rows_args *a, int64_t at, int64_t j, float x[OPERAND_EIGHT])
{
    float add[OPERAND_EIGHT], bias[OPERAND_EIGHT];
    operand_floats(a->stream + at + j, x);
    if (!a->add)
        return;
    operand_eight(a->add, at + j, add, a->half);
    if (a->add_bias)
        operand_floats(a->add_bias + j, bias);
    UNROLL
    for (int k = 0; k < OPERAND_EIGHT; k++)
        x[k] += a->add_bias ? add[k] + bias[k] : add[k];
    operand_set_floats(a->to_stream + at + j, x);
}

DEVICE struct norm_stats norm_kept_stats(const struct norm_rows_args *a, float x[NORM_EIGHTS][OPERAND_EIGHT])
{
    float sum = 0, squares = 0;
    UNROLL
    for (int n = 0; n < NORM_EIGHTS; n++) {
        UNROLL
        for (int k = 0; k < OPERAND_EIGHT; k++)
            sum += x[n][k];
    }
    const float mean = a->rms ? 0 : norm_warp_sum(sum) / (float)a->width;
    UNROLL
    for (int n = 0; n < NORM_EIGHTS; n++) {
        UNROLL
        for (int k = 0; k < OPERAND_EIGHT; k++)
            squares += norm_place(n) < a->width ? (x[n][k] - mean) * (x[n][k] - mean) : 0;
    }
    const struct norm_stats s = {mean,
                                 1 / square_root(norm_warp_sum(squares) / (float)a->width + a->epsilon)};
    return s;
}

DEVICE void norm_give(const struct norm_rows_args *a, int64_t at, int64_t j, struct norm_stats s,
                      float x[OPERAND_EIGHT])
{
    float weight[OPERAND_EIGHT], bias[OPERAND_EIGHT];
    operand_floats(a->weight + j, weight);
    if (a->bias)
        operand_floats(a->bias + j, bias);
    UNROLL
    for (int k = 0; k < OPERAND_EIGHT; k++) {
        x[k] = (x[k] - s.mean) * s.scale * weight[k];
        x[k] = a->bias ? x[k] + bias[k] : x[k];
    }
    operand_set_eight(a->to, at + j, x, a->half);
}

DEVICE void norm_kept_row(const struct norm_rows_args *a, int32_t r)
{
    const int64_t at = r * a->width;
    float x[NORM_EIGHTS][OPERAND_EIGHT];
    UNROLL
    for (int n = 0; n < NORM_EIGHTS; n++) {
        UNROLL
        for (int k = 0; k < OPERAND_EIGHT; k++)
            x[n][k] = 0;
        if (norm_place(n) < a->width)
            norm_take(a, at, norm_place(n), x[n]);
    }
    const struct norm_stats s = norm_kept_stats(a, x);
    if (THREAD % WARP == 0)
        a->stats[r] = s;
    UNROLL
    for (int n = 0; n < NORM_EIGHTS; n++)
        if (norm_place(n) < a->width)
            norm_give(a, at, norm_place(n), s, x[n]);
}

/* ---- rows of a block ---- */

/* Row r as it is normalised. A thread reads again only what it wrote itself. */
DEVICE const float *norm_row(const struct norm_rows_args *a, int32_t r)
{
    const int64_t at = r * a->width;
    if (!a->add)
        return a->stream + at;
    for (int64_t j = THREAD; j < a->width; j += NORM_THREADS) {
        const float delta = operand_at(a->add, at + j, a->half);
        a->to_stream[at + j] = a->stream[at + j] + (a->add_bias ? delta + a->add_bias[j] : delta);
    }
    return a->to_stream + at;
}

DEVICE struct norm_stats norm_measure(const struct norm_rows_args *a, struct block_meetings *m,
                                      const float *x)
{
    float sum = 0, squares = 0;
    for (int64_t j = THREAD; !a->rms && j < a->width; j += NORM_THREADS)
        sum += x[j];
    const float mean = a->rms ? 0 : block_sum(m, sum) / (float)a->width;
    for (int64_t j = THREAD; j < a->width; j += NORM_THREADS)
        squares += (x[j] - mean) * (x[j] - mean);
    const float variance = block_sum(m, squares) / (float)a->width;
    const struct norm_stats s = {mean, 1 / square_root(variance + a->epsilon)};
    return s;
}

KERNEL(norm_rows, NORM_THREADS)(const struct norm_rows_args a)
{
    SHARED(float, part, 2 * NORM_WARPS);
    struct block_meetings m = {part, NORM_WARPS, 0};
    const int kept = norm_is_kept(a.width);
    for (int32_t r = BLOCK * NORM_WARPS + THREAD / WARP; kept && r < a.rows; r += BLOCKS * NORM_WARPS)
        norm_kept_row(&a, r);
    for (int32_t r = BLOCK; !kept && r < a.rows; r += BLOCKS) {
        const float *const x = norm_row(&a, r);
        const struct norm_stats s = norm_measure(&a, &m, x);
        if (THREAD == 0)
            a.stats[r] = s;
        for (int64_t j = THREAD; j < a.width; j += NORM_THREADS) {
            const float y = (x[j] - s.mean) * s.scale * a.weight[j];
            operand_set(a.to, r * a.width + j, a.bias ? y + a.bias[j] : y, a.half);
        }
    }
}

/* With n = (x - mean) scale and g = dy weight: dx = scale (g - mean(g) - n mean(g n)). */
DEVICE void norm_back_row(const struct norm_back_args *a, struct block_meetings *m, int32_t r)
{
    const int64_t at = r * a->width;
    const struct norm_stats s = a->stats[r];
    float sum = 0, sum_n = 0;
    for (int64_t j = THREAD; j < a->width; j += NORM_THREADS) {
        const float g = operand_at(a->dy, at + j, a->half) * a->weight[j];
        sum += g;
        sum_n += g * ((a->x[at + j] - s.mean) * s.scale);
    }
    const float mean = a->rms ? 0 : block_sum(m, sum) / (float)a->width;
    const float mean_n = block_sum(m, sum_n) / (float)a->width;
    for (int64_t j = THREAD; j < a->width; j += NORM_THREADS) {
        const float g = operand_at(a->dy, at + j, a->half) * a->weight[j];
        const float n = (a->x[at + j] - s.mean) * s.scale, d = s.scale * (g - mean - n * mean_n);
        const float all = a->store ? d : a->dstream[at + j] + d;
        a->dstream[at + j] = all;
        if (a->rounded)
            a->rounded[at + j] = half_of(all);
    }
}

/* The share of rows [first, end) of the gradients of weight and bias, a column a thread. */
DEVICE void norm_back_share(const struct norm_back_args *a, float *to, int32_t first, int32_t end)
{
    for (int64_t j = THREAD; j < a->width; j += NORM_THREADS) {
        float weight = 0, bias = 0;
        for (int32_t r = first; r < end; r++) {
            const float d = operand_at(a->dy, r * a->width + j, a->half);
            weight += d * ((a->x[r * a->width + j] - a->stats[r].mean) * a->stats[r].scale);
            bias += d;
        }
        to[j] = weight;
        to[a->width + j] = bias;
    }
}

/* ---- the way back of rows that a warp keeps ---- */

/* What one lane has: a row's eights, and its columns' part of the gradients of weight and bias. */
struct norm_back_kept {
    float dy[NORM_EIGHTS][OPERAND_EIGHT], n[NORM_EIGHTS][OPERAND_EIGHT];
    float weight[NORM_EIGHTS][OPERAND_EIGHT], bias[NORM_EIGHTS][OPERAND_EIGHT];
};

/* Leaves dy weight in dy. */
DEVICE void norm_back_take(const struct norm_back_args *a, struct norm_back_kept *own, int32_t r,
                           struct norm_stats s, float sums[2])
{
    UNROLL
    for (int n = 0; n < NORM_EIGHTS; n++) {
        const int64_t j = norm_place(n);
        float weight[OPERAND_EIGHT];
        if (j >= a->width)
            continue;
        operand_eight(a->dy, r * a->width + j, own->dy[n], a->half);
        operand_floats(a->x + r * a->width + j, own->n[n]);
        operand_floats(a->weight + j, weight);
        UNROLL
        for (int k = 0; k < OPERAND_EIGHT; k++) {
            own->n[n][k] = (own->n[n][k] - s.mean) * s.scale;
            own->weight[n][k] += own->dy[n][k] * own->n[n][k];
            own->bias[n][k] += own->dy[n][k];
            own->dy[n][k] *= weight[k];
            sums[0] += own->dy[n][k];
            sums[1] += own->dy[n][k] * own->n[n][k];
        }
    }
}

DEVICE void norm_back_give(const struct norm_back_args *a, const struct norm_back_kept *own, int32_t r,
                           float scale, const float means[2])
{
    UNROLL
    for (int n = 0; n < NORM_EIGHTS; n++) {
        const int64_t j = norm_place(n), at = r * a->width + j;
        float d[OPERAND_EIGHT];
        if (j >= a->width)
            continue;
        if (!a->store)
            operand_floats(a->dstream + at, d);
        UNROLL
        for (int k = 0; k < OPERAND_EIGHT; k++) {
            const float own_d = scale * (own->dy[n][k] - means[0] - own->n[n][k] * means[1]);
            d[k] = a->store ? own_d : d[k] + own_d;
        }
        operand_set_floats(a->dstream + at, d);
        if (a->rounded)
            operand_set_eight(a->rounded, at, d, 1);
    }
}

/* One of the two gradients of a share, the warps' parts in order. */
DEVICE void norm_back_part(float *parts, float *to, float own[NORM_EIGHTS][OPERAND_EIGHT], int64_t width)
{
    UNROLL
    for (int n = 0; n < NORM_EIGHTS; n++)
        if (norm_place(n) < width)
            operand_set_floats(parts + THREAD / WARP * NORM_KEPT + norm_place(n), own[n]);
    BARRIER();
    for (int64_t j = THREAD; j < width; j += NORM_THREADS) {
        float sum = parts[j];
        for (int w = 1; w < NORM_WARPS; w++)
            sum += parts[w * NORM_KEPT + j];
        to[j] = sum;
    }
    BARRIER();
}

DEVICE void norm_back_kept_share(const struct norm_back_args *a, float *parts, float *to, int32_t first,
                                 int32_t end)
{
    struct norm_back_kept own;
    UNROLL
    for (int n = 0; n < NORM_EIGHTS; n++) {
        UNROLL
        for (int k = 0; k < OPERAND_EIGHT; k++)
            own.weight[n][k] = own.bias[n][k] = 0;
    }
    for (int32_t r = first + THREAD / WARP; r < end; r += NORM_WARPS) {
        const struct norm_stats s = a->stats[r];
        float sums[2] = {0, 0};
        norm_back_take(a, &own, r, s, sums);
        const float means[2] = {a->rms ? 0 : norm_warp_sum(sums[0]) / (float)a->width,
                                norm_warp_sum(sums[1]) / (float)a->width};
        norm_back_give(a, &own, r, s.scale, means);
    }
    norm_back_part(parts, to, own.weight, a->width);
    norm_back_part(parts, to + a->width, own.bias, a->width);
}

KERNEL(norm_back, NORM_THREADS)(const struct norm_back_args a)
{
    SHARED(float, parts, NORM_WARPS *NORM_KEPT); /* of a row, 2 NORM_WARPS are enough */
    struct block_meetings m = {parts, NORM_WARPS, 0};
    const int32_t shares = (a.rows + NORM_ROWS - 1) / NORM_ROWS;
    for (int32_t i = BLOCK; i < shares; i += BLOCKS) {
        const int32_t first = i * NORM_ROWS, end = a.rows - first < NORM_ROWS ? a.rows : first + NORM_ROWS;
        float *const to = a.partial + i * 2 * a.width;
        if (norm_is_kept(a.width)) {
            norm_back_kept_share(&a, parts, to, first, end);
            continue;
        }
        for (int32_t r = first; r < end; r++)
            norm_back_row(&a, &m, r);
        norm_back_share(&a, to, first, end);
    }
}
