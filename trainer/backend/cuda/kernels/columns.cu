#include "trainer/backend/cuda/kernels/columns.h"

#include "trainer/backend/cuda/kernels/operand.cu"

DEVICE float columns_add_some(const struct columns_args *a, float sum, int32_t r, int32_t end, int64_t j)
{
    float x[COLUMNS_TOGETHER];
    UNROLL
    for (int k = 0; k < COLUMNS_TOGETHER; k++)
        x[k] = r + k < end ? operand_at(a->from, (r + k) * a->stride + j, a->half) : 0;
    UNROLL
    for (int k = 0; k < COLUMNS_TOGETHER; k++)
        sum = r + k < end ? sum + x[k] : sum;
    return sum;
}

KERNEL(columns, COLUMNS_THREADS)(const struct columns_args a)
{
    const int64_t groups = (a.columns + COLUMNS_THREADS - 1) / COLUMNS_THREADS;
    const int64_t parts = (a.rows + a.each - 1) / a.each;
    for (int64_t i = BLOCK; i < parts * groups; i += BLOCKS) {
        const int64_t part = i / groups, j = i % groups * COLUMNS_THREADS + THREAD;
        const int32_t first = (int32_t)part * a.each, end = a.rows - first < a.each ? a.rows : first + a.each;
        float sum = 0;
        for (int32_t r = first; r < end && j < a.columns; r += COLUMNS_TOGETHER)
            sum = columns_add_some(&a, sum, r, end, j);
        if (j < a.columns)
            a.to[part * a.columns + j] = sum;
    }
}
