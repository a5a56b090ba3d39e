#include "trainer/backend/cuda/kernels/restore.h"

#include "trainer/backend/cuda/kernels/kernel.h"
#include "trainer/backend/cuda/kernels/proof.cu"

enum { RESTORE_WARPS = RESTORE_THREADS / WARP };

DEVICE uint64_t restore_one(const struct restore_args *a, const struct cuda_slot *slot, int64_t to, int i)
{
    const float param = slot->params[i], m = slot->m[i], v = slot->v[i];
    a->params[to] = param;
    POINT();
    a->m[to] = m;
    POINT();
    a->v[to] = v;
    POINT();
    return proof_of_element(param, m, v);
}

KERNEL(restore, RESTORE_THREADS)(const struct restore_args a)
{
    SHARED(uint64_t, part, RESTORE_WARPS);
    struct cuda_slot *slot = &a.slot[BLOCK];
    if (!slot->valid)
        return;
    const int64_t piece = slot->piece;
    const struct cuda_piece p = a.piece[piece];
    uint64_t proof = 0;
    for (int i = THREAD; i < p.count; i += RESTORE_THREADS)
        proof += restore_one(&a, slot, p.first + i, i);
    proof_to_part(part, proof);
    BARRIER();
    if (THREAD == 0) {
        a.proof[piece] = proof_of_parts(part, RESTORE_WARPS);
        FENCE();
        a.stamp[piece] = a.step;
        FENCE();
        POINT();
        slot->valid = 0;
    }
}
