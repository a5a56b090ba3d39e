#include "trainer/backend/cuda/kernels/columns.h"

#include "trainer/backend/cuda/kernels/operand.cu"

struct columns_two {
    float low, high;
};

/* Two columns of a row, 0 behind the last one. */
DEVICE struct columns_two columns_pair(const struct columns_args *a, int64_t r, int64_t j)
{
    struct columns_two x = {0, 0};
    const int64_t at = r * a->stride + j;
    if (j + 1 < a->columns && a->stride % 2 == 0 && a->half) {
        const uint32_t both = *(const uint32_t *)((const uint16_t *)a->from + at);
        x.low = float_of(both << 16);
        x.high = float_of(both & 0xffff0000u);
        return x;
    }
    if (j < a->columns)
        x.low = operand_at(a->from, at, a->half);
    if (j + 1 < a->columns)
        x.high = operand_at(a->from, at + 1, a->half);
    return x;
}

DEVICE struct columns_two columns_add_some(const struct columns_args *a, struct columns_two sum, int32_t r,
                                           int32_t end, int64_t j)
{
    const struct columns_two none = {0, 0};
    struct columns_two x[COLUMNS_TOGETHER];
    UNROLL
    for (int k = 0; k < COLUMNS_TOGETHER; k++)
        x[k] = r + k < end ? columns_pair(a, r + k, j) : none;
    UNROLL
    for (int k = 0; k < COLUMNS_TOGETHER; k++) {
        sum.low = r + k < end ? sum.low + x[k].low : sum.low;
        sum.high = r + k < end ? sum.high + x[k].high : sum.high;
    }
    return sum;
}

/* This warp's slice of the rows [first, end), two columns a lane, into its place among the slices. */
DEVICE void columns_slice(const struct columns_args *a, float *slices, int32_t first, int32_t end, int64_t j)
{
    const int32_t each = (end - first + COLUMNS_SLICES - 1) / COLUMNS_SLICES;
    const int32_t begin = first + THREAD / WARP * each, last = begin + each < end ? begin + each : end;
    const int lane = THREAD % WARP;
    struct columns_two sum = {0, 0};
    for (int32_t r = begin; r < last; r += COLUMNS_TOGETHER)
        sum = columns_add_some(a, sum, r, last, j + 2 * lane);
    slices[THREAD / WARP * COLUMNS_A_BLOCK + 2 * lane] = sum.low;
    slices[THREAD / WARP * COLUMNS_A_BLOCK + 2 * lane + 1] = sum.high;
}

/* Slices of one turn and of the next: whoever is there has been let through the barrier between. */
KERNEL(columns, COLUMNS_THREADS)(const struct columns_args a)
{
    SHARED(float, slices, 2 * COLUMNS_SLICES * COLUMNS_A_BLOCK);
    const int64_t groups = (a.columns + COLUMNS_A_BLOCK - 1) / COLUMNS_A_BLOCK;
    const int64_t parts = (a.rows + a.each - 1) / a.each;
    float *turn = slices;
    for (int64_t i = BLOCK; i < parts * groups; i += BLOCKS) {
        const int64_t part = i / groups, j = i % groups * COLUMNS_A_BLOCK;
        const int32_t first = (int32_t)part * a.each, end = a.rows - first < a.each ? a.rows : first + a.each;
        columns_slice(&a, turn, first, end, j);
        BARRIER();
        if (THREAD < COLUMNS_A_BLOCK && j + THREAD < a.columns) {
            float sum = turn[THREAD];
            for (int w = 1; w < COLUMNS_SLICES; w++)
                sum += turn[w * COLUMNS_A_BLOCK + THREAD];
            a.to[part * a.columns + j + THREAD] = sum;
        }
        turn = turn == slices ? slices + COLUMNS_SLICES * COLUMNS_A_BLOCK : slices;
    }
}
