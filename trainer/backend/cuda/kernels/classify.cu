#include "trainer/backend/cuda/kernels/classify.h"

#include "trainer/backend/cuda/kernels/block.cu"
#include "trainer/backend/cuda/kernels/operand.cu"

enum { CLASSIFY_WARPS = CLASSIFY_THREADS / WARP };

DEVICE float classify_exp(float x)
{
    return two_to(1.4426950408889634f * x);
}

/* The largest of what a thread has seen, and the sum of e^(x - most) over it. */
struct classify_seen {
    float most, sum;
};

/* This thread's logits from `first` on, CLASSIFY_THREADS apart. */
DEVICE void classify_some(const struct classify_args *a, int64_t row, int64_t first,
                          struct classify_seen *seen)
{
    float x[CLASSIFY_EACH], most = seen->most;
    UNROLL
    for (int k = 0; k < CLASSIFY_EACH; k++) {
        const int64_t j = first + k * CLASSIFY_THREADS + THREAD;
        x[k] = j < a->vocabulary ? operand_at(a->logits, row + j, a->half) : 0;
        most = j < a->vocabulary ? block_larger(x[k], most) : most;
    }
    seen->sum *= classify_exp(seen->most - most);
    seen->most = most;
    UNROLL
    for (int k = 0; k < CLASSIFY_EACH; k++)
        if (first + k * CLASSIFY_THREADS + THREAD < a->vocabulary)
            seen->sum += classify_exp(x[k] - most);
}

/* Finds the greatest of the whole row, for all threads. */
DEVICE struct classify_seen classify_look(const struct classify_args *a, struct block_meetings *m,
                                          int64_t row)
{
    struct classify_seen own = {-3.4028234e38f, 0};
    for (int64_t first = 0; first < a->vocabulary; first += CLASSIFY_THREADS * CLASSIFY_EACH)
        classify_some(a, row, first, &own);
    struct classify_seen all;
    all.most = block_largest(m, own.most);
    all.sum = block_sum(m, own.sum * classify_exp(own.most - all.most));
    return all;
}

DEVICE void classify_gradient(const struct classify_args *a, int64_t row, int32_t target,
                              struct classify_seen all)
{
    const float share = a->scale / all.sum;
    for (int64_t j = THREAD; j < a->stride; j += CLASSIFY_THREADS) {
        float d = 0;
        if (j < a->vocabulary)
            d = share * classify_exp(operand_at(a->logits, row + j, a->half) - all.most);
        operand_set(a->logits, row + j, j == target ? d - a->scale : d, a->half);
    }
}

KERNEL(classify, CLASSIFY_THREADS)(const struct classify_args a)
{
    SHARED(float, part, 2 * CLASSIFY_WARPS);
    struct block_meetings m = {part, CLASSIFY_WARPS, 0};
    for (int32_t r = BLOCK; r < a.rows; r += BLOCKS) {
        const int64_t row = r * a.stride;
        const int32_t target = a.targets[r];
        const struct classify_seen all = classify_look(&a, &m, row);
        if (THREAD == target % CLASSIFY_THREADS) /* who will write its gradient there */
            a.losses[r] = log_of(all.sum) + (all.most - operand_at(a.logits, row + target, a.half));
        if (a.scale != 0)
            classify_gradient(&a, row, target, all);
    }
}
