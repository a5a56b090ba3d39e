#include "trainer/backend/cuda/kernels/columns.h"

#include "trainer/backend/cuda/kernels/operand.cu"

struct columns_two {
    float low, high;
};

/* Two columns of a row, which lie at `at`; of them `there` are columns, and both lie in 32 bits where `pair`.
 */
DEVICE struct columns_two columns_read(const struct columns_args *a, int64_t at, int there, int pair)
{
    struct columns_two x = {0, 0};
    if (pair) {
        const uint32_t both = *(const uint32_t *)((const uint16_t *)a->from + at);
        x.low = float_of(both << 16);
        x.high = float_of(both & 0xffff0000u);
        return x;
    }
    if (there > 0)
        x.low = operand_at(a->from, at, a->half);
    if (there > 1)
        x.high = operand_at(a->from, at + 1, a->half);
    return x;
}

/* `rows` rows from `at` on. */
DEVICE struct columns_two columns_add(const struct columns_args *a, int64_t at, int32_t rows, int there)
{
    const struct columns_two none = {0, 0};
    const int pair = a->half && there > 1 && a->stride % 2 == 0;
    struct columns_two sum = none, x[COLUMNS_TOGETHER];
    for (; rows > 0; rows -= COLUMNS_TOGETHER) {
        UNROLL
        for (int k = 0; k < COLUMNS_TOGETHER; k++, at += a->stride)
            x[k] = k < rows ? columns_read(a, at, there, pair) : none;
        UNROLL
        for (int k = 0; k < COLUMNS_TOGETHER; k++) {
            sum.low = k < rows ? sum.low + x[k].low : sum.low;
            sum.high = k < rows ? sum.high + x[k].high : sum.high;
        }
    }
    return sum;
}

/* This warp's slice of the rows [first, end), two columns a lane, into its place among the slices. */
DEVICE void columns_slice(const struct columns_args *a, float *slices, int32_t first, int32_t end, int64_t j)
{
    const int32_t each = (end - first + COLUMNS_SLICES - 1) / COLUMNS_SLICES;
    const int32_t begin = first + THREAD / WARP * each, last = begin + each < end ? begin + each : end;
    const int at = 2 * (THREAD % WARP);
    const int64_t left = a->columns - j - at;
    const struct columns_two sum =
        columns_add(a, begin * a->stride + j + at, last - begin, left > 1 ? 2 : (int)left);
    slices[THREAD / WARP * COLUMNS_A_BLOCK + at] = sum.low;
    slices[THREAD / WARP * COLUMNS_A_BLOCK + at + 1] = sum.high;
}

DEVICE float columns_all(const float *slices)
{
    float sum = slices[THREAD];
    for (int w = 1; w < COLUMNS_SLICES; w++)
        sum += slices[w * COLUMNS_A_BLOCK + THREAD];
    return sum;
}

/* Slices of one turn and of the next: whoever is there has been let through the barrier between. */
KERNEL(columns, COLUMNS_THREADS)(const struct columns_args a)
{
    SHARED(float, slices, 2 * COLUMNS_SLICES * COLUMNS_A_BLOCK);
    const int64_t groups = (a.columns + COLUMNS_A_BLOCK - 1) / COLUMNS_A_BLOCK;
    const int64_t parts = (a.rows + a.each - 1) / a.each;
    int turn = 0;
    for (int64_t i = BLOCK; i < parts * groups; i += BLOCKS, turn = COLUMNS_SLICES * COLUMNS_A_BLOCK - turn) {
        const int64_t part = i / groups, j = i % groups * COLUMNS_A_BLOCK;
        const int32_t first = (int32_t)part * a.each, end = a.rows - first < a.each ? a.rows : first + a.each;
        columns_slice(&a, slices + turn, first, end, j);
        BARRIER();
        if (THREAD < COLUMNS_A_BLOCK && j + THREAD < a.columns)
            a.to[part * a.columns + j + THREAD] = columns_all(slices + turn);
    }
}
