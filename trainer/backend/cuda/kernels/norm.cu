#include "trainer/backend/cuda/kernels/norm.h"

#include "trainer/backend/cuda/kernels/block.cu"
#include "trainer/backend/cuda/kernels/operand.cu"

enum { NORM_WARPS = NORM_THREADS / WARP };

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
    for (int32_t r = BLOCK; r < a.rows; r += BLOCKS) {
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

KERNEL(norm_back, NORM_THREADS)(const struct norm_back_args a)
{
    SHARED(float, part, 2 * NORM_WARPS);
    struct block_meetings m = {part, NORM_WARPS, 0};
    const int32_t shares = (a.rows + NORM_ROWS - 1) / NORM_ROWS;
    for (int32_t i = BLOCK; i < shares; i += BLOCKS) {
        const int32_t first = i * NORM_ROWS, end = a.rows - first < NORM_ROWS ? a.rows : first + NORM_ROWS;
        for (int32_t r = first; r < end; r++)
            norm_back_row(&a, &m, r);
        norm_back_share(&a, a.partial + i * 2 * a.width, first, end);
    }
}
