#include "trainer/backend/cuda/kernels/columns.h"

#include "trainer/backend/cuda/kernels/operand.cu"

/* Eight columns of a row, which lie at `at`; `left`: how many of them there are. 0 behind the last one. */
DEVICE void columns_read(const struct columns_args *a, int64_t at, int64_t left, float x[OPERAND_EIGHT])
{
    if (left >= OPERAND_EIGHT && a->stride % OPERAND_EIGHT == 0) {
        operand_eight(a->from, at, x, a->half);
        return;
    }
    UNROLL
    for (int k = 0; k < OPERAND_EIGHT; k++)
        x[k] = k < left ? operand_at(a->from, at + k, a->half) : 0;
}

/* The sums of `rows` rows from `at` on. */
DEVICE void columns_add(const struct columns_args *a, int64_t at, int32_t rows, int64_t left,
                        float sum[OPERAND_EIGHT])
{
    float x[COLUMNS_TOGETHER][OPERAND_EIGHT];
    UNROLL
    for (int k = 0; k < OPERAND_EIGHT; k++)
        sum[k] = 0;
    for (; rows > 0; rows -= COLUMNS_TOGETHER, at += COLUMNS_TOGETHER * a->stride) {
        UNROLL
        for (int r = 0; r < COLUMNS_TOGETHER; r++)
            if (r < rows)
                columns_read(a, at + r * a->stride, left, x[r]);
        UNROLL
        for (int r = 0; r < COLUMNS_TOGETHER; r++) {
            UNROLL
            for (int k = 0; k < OPERAND_EIGHT; k++)
                sum[k] = r < rows ? sum[k] + x[r][k] : sum[k];
        }
    }
}

/* This warp's slice of the rows [first, end), eight columns a lane, into its place among the slices. */
DEVICE void columns_slice(const struct columns_args *a, float *slices, int32_t first, int32_t end, int64_t j)
{
    const int32_t each = (end - first + COLUMNS_SLICES - 1) / COLUMNS_SLICES;
    const int32_t begin = first + THREAD / WARP * each, last = begin + each < end ? begin + each : end;
    const int at = OPERAND_EIGHT * (THREAD % WARP);
    float sum[OPERAND_EIGHT];
    columns_add(a, begin * a->stride + j + at, last - begin, a->columns - j - at, sum);
    operand_set_floats(slices + THREAD / WARP * COLUMNS_A_BLOCK + at, sum);
}

/* Slices of one turn and of the next: whoever is there has been let through the barrier between. */
KERNEL(columns, COLUMNS_THREADS)(const struct columns_args a)
{
    SHARED(float, slices, 2 * COLUMNS_SLICES * COLUMNS_A_BLOCK);
    const int64_t groups = (a.columns + COLUMNS_A_BLOCK - 1) / COLUMNS_A_BLOCK;
    const int64_t parts = (a.rows + a.each - 1) / a.each;
    int turn = 0;
    for (int64_t i = BLOCK; i < parts * groups; i += BLOCKS, turn = COLUMNS_SLICES * COLUMNS_A_BLOCK - turn) {
        const int64_t part = i / groups, j = i % groups * COLUMNS_A_BLOCK + THREAD;
        const int32_t first = (int32_t)part * a.each, end = a.rows - first < a.each ? a.rows : first + a.each;
        columns_slice(&a, slices + turn, first, end, j - THREAD);
        BARRIER();
        float sum = slices[turn + THREAD];
        for (int w = 1; w < COLUMNS_SLICES; w++)
            sum += slices[turn + w * COLUMNS_A_BLOCK + THREAD];
        if (j < a.columns)
            a.to[part * a.columns + j] = sum;
    }
}
