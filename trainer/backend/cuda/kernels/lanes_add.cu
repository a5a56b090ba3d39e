#include "trainer/backend/cuda/kernels/lanes_add.h"

#include "trainer/backend/cuda/kernels/kernel.h"
#include "trainer/backend/cuda/kernels/proof.cu"

enum { LANES_ADD_WARPS = LANES_ADD_THREADS / WARP };

DEVICE uint32_t lanes_add_larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

DEVICE uint32_t lanes_add_warp_max(uint32_t max)
{
    for (int n = WARP / 2; n > 0; n /= 2)
        max = lanes_add_larger(max, warp_down(max, n));
    return max; /* of the whole warp in its lane 0 */
}

struct lanes_add_seen {
    uint32_t max; /* bits of the largest |grad| */
    uint64_t proof;
};

/* The elements from `first` on that are this thread's, LANES_ADD_THREADS apart: all are read before one is
 * written, so that the reads are under way together. */
DEVICE void lanes_add_some(const struct lanes_add_args *a, int64_t first, struct lanes_add_seen *seen)
{
    float grad[LANES_ADD_EACH];
    uint32_t old[LANES_ADD_EACH];
    UNROLL
    for (int j = 0; j < LANES_ADD_EACH; j++) {
        const int64_t i = first + j * LANES_ADD_THREADS + THREAD;
        grad[j] = i < a->count ? a->grads[i] : 0;
        old[j] = i < a->count && !a->store ? a->words[i] : 0;
    }
    UNROLL
    for (int j = 0; j < LANES_ADD_EACH; j++) {
        const int64_t i = first + j * LANES_ADD_THREADS + THREAD;
        const float x = grad[j] * a->scale;
        const uint32_t q = a->floats ? 0 : (uint32_t)to_fixed(x);
        if (i < a->count)
            a->words[i] = a->floats ? bits_of(float_of(old[j]) + x) : old[j] + q;
        seen->max = lanes_add_larger(seen->max, bits_of(grad[j]) & 0x7fffffffu);
        seen->proof += proof_of_word(a->at + (uint64_t)i, q); /* q is 0 behind the end */
    }
}

KERNEL(lanes_add, LANES_ADD_THREADS)(const struct lanes_add_args a)
{
    SHARED(uint32_t, max, LANES_ADD_WARPS);
    SHARED(uint64_t, proof, LANES_ADD_WARPS);
    const int64_t turn = LANES_ADD_THREADS * LANES_ADD_EACH;
    struct lanes_add_seen seen = {0, 0};
    for (int64_t first = BLOCK * turn; first < a.count; first += BLOCKS * turn)
        lanes_add_some(&a, first, &seen);
    seen.max = lanes_add_warp_max(seen.max);
    if (THREAD % WARP == 0)
        max[THREAD / WARP] = seen.max;
    proof_to_part(proof, seen.proof);
    BARRIER();
    if (THREAD < WARP) {
        seen.max = lanes_add_warp_max(THREAD < LANES_ADD_WARPS ? max[THREAD] : 0);
        if (THREAD == 0) {
            atomic_max(a.max, seen.max);
            if (!a.floats)
                atomic_add_u64(a.proof, proof_of_parts(proof, LANES_ADD_WARPS));
        }
    }
}
