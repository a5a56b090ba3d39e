#include "trainer/backend/cuda/kernels/classify.h"

#include "trainer/backend/cuda/kernels/block.cu"
#include "trainer/backend/cuda/kernels/operand.cu"

enum {
    CLASSIFY_WARPS = CLASSIFY_THREADS / WARP,
    CLASSIFY_TURN = CLASSIFY_THREADS * OPERAND_EIGHT /* logits of the block, eight of each thread */
};

DEVICE float classify_exp(float x)
{
    return two_to(1.4426950408889634f * x);
}

/* The largest of what a thread has seen, and the sum of e^(x - most) over it. */
struct classify_seen {
    float most, sum;
};

/* Eight logits from j on; zeros behind the vocabulary. */
DEVICE void classify_eight(const struct classify_args *a, int64_t row, int64_t j, float x[OPERAND_EIGHT])
{
    if (a->stride % OPERAND_EIGHT == 0 && j < a->stride)
        operand_eight(a->logits, row + j, x, a->half);
    UNROLL
    for (int k = 0; k < OPERAND_EIGHT; k++) {
        if (j + k >= a->vocabulary)
            x[k] = 0;
        else if (a->stride % OPERAND_EIGHT)
            x[k] = operand_at(a->logits, row + j + k, a->half);
    }
}

/* This thread's eight logits from j on. */
DEVICE void classify_some(const struct classify_args *a, int64_t row, int64_t j, struct classify_seen *seen)
{
    float x[OPERAND_EIGHT], most = seen->most;
    classify_eight(a, row, j, x);
    UNROLL
    for (int k = 0; k < OPERAND_EIGHT; k++)
        most = j + k < a->vocabulary ? block_larger(x[k], most) : most;
    seen->sum *= classify_exp(seen->most - most);
    seen->most = most;
    UNROLL
    for (int k = 0; k < OPERAND_EIGHT; k++)
        if (j + k < a->vocabulary)
            seen->sum += classify_exp(x[k] - most);
}

/* Finds the greatest of the whole row, for all threads. */
DEVICE struct classify_seen classify_look(const struct classify_args *a, struct block_meetings *m,
                                          int64_t row)
{
    struct classify_seen own = {-3.4028234e38f, 0};
    for (int64_t j = THREAD * OPERAND_EIGHT; j < a->vocabulary; j += CLASSIFY_TURN)
        classify_some(a, row, j, &own);
    struct classify_seen all;
    all.most = block_largest(m, own.most);
    all.sum = block_sum(m, own.sum * classify_exp(own.most - all.most));
    return all;
}

DEVICE void classify_gradient_eight(const struct classify_args *a, int64_t row, int64_t j, int32_t target,
                                    struct classify_seen all)
{
    const float share = a->scale / all.sum;
    float x[OPERAND_EIGHT];
    classify_eight(a, row, j, x);
    UNROLL
    for (int k = 0; k < OPERAND_EIGHT; k++) {
        x[k] = j + k < a->vocabulary ? share * classify_exp(x[k] - all.most) : 0;
        x[k] = j + k == target ? x[k] - a->scale : x[k];
    }
    if (a->stride % OPERAND_EIGHT == 0)
        operand_set_eight(a->logits, row + j, x, a->half);
    UNROLL
    for (int k = 0; k < OPERAND_EIGHT; k++)
        if (a->stride % OPERAND_EIGHT && j + k < a->stride)
            operand_set(a->logits, row + j + k, x[k], a->half);
}

DEVICE void classify_gradient(const struct classify_args *a, int64_t row, int32_t target,
                              struct classify_seen all)
{
    for (int64_t j = THREAD * OPERAND_EIGHT; j < a->stride; j += CLASSIFY_TURN)
        classify_gradient_eight(a, row, j, target, all);
}

KERNEL(classify, CLASSIFY_THREADS)(const struct classify_args a)
{
    SHARED(float, part, 2 * CLASSIFY_WARPS);
    struct block_meetings m = {part, CLASSIFY_WARPS, 0};
    for (int32_t r = BLOCK; r < a.rows; r += BLOCKS) {
        const int64_t row = r * a.stride;
        const int32_t target = a.targets[r];
        const struct classify_seen all = classify_look(&a, &m, row);
        if (THREAD == target / OPERAND_EIGHT % CLASSIFY_THREADS) /* who will write its gradient there */
            a.losses[r] = log_of(all.sum) + (all.most - operand_at(a.logits, row + target, a.half));
        if (a.scale != 0)
            classify_gradient(&a, row, target, all);
    }
}
