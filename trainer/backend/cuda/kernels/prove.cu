#include "trainer/backend/cuda/kernels/prove.h"

#include "trainer/backend/cuda/kernels/kernel.h"
#include "trainer/backend/cuda/kernels/proof.cu"

enum { PROVE_WARPS = PROVE_THREADS / WARP };

KERNEL(prove, PROVE_THREADS)(const struct prove_args a)
{
    SHARED(uint64_t, part, PROVE_WARPS);
    for (int i = BLOCK; i < a.pieces; i += BLOCKS) {
        const struct cuda_piece p = a.piece[i];
        uint64_t proof = 0;
        for (int64_t j = p.first + THREAD; j < p.first + p.count; j += PROVE_THREADS)
            proof += proof_of_element(a.params[j], a.m[j], a.v[j]);
        proof_to_part(part, proof);
        BARRIER();
        if (THREAD == 0)
            a.proof[i] = proof_of_parts(part, PROVE_WARPS);
        BARRIER(); /* the parts are the next piece's only now */
    }
}
