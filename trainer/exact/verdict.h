/* What a reduction's header words say: the same on every rank, decided without I/O. Pure. header.h says which
 * they are. */
#ifndef RM_TRAINER_VERDICT_H
#define RM_TRAINER_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "common/base/set.h"
#include "common/model/layout.h"
#include "trainer/exact/header.h"

enum {
    EXACT_K_MAX = 100,  /* -100 <= k <= 100 */
    EXACT_HEADROOM = 6, /* bits left free for the next step's growth */
    EXACT_COARSE = 12,  /* bits that a tensor's mean maximum must at least use */
};

enum verdict_kind {
    VERDICT_FITS,       /* commit it */
    VERDICT_RESCALE,    /* some tensors do not fit their k: run the lanes once more with verdict.k */
    VERDICT_NOT_FINITE, /* a NaN or Inf: commit nothing, it would come out the same again */
    VERDICT_LINEAGE,    /* ranks do not hold the same state: those in `minority` must receive */
};

struct verdict {
    enum verdict_kind kind;
    double loss;                /* mean over lanes */
    uint32_t flags;             /* LANES_ANY: union of all ranks', LANES_ALL: what all present ones say; of a
                                   discarded pass they stay pending */
    int64_t tokens;             /* learned in this step */
    int32_t k[RM_TENSORS_MAX];  /* FITS: of the next step; RESCALE: of the next pass */
    int rescaled;               /* RESCALE: how many tensors do not fit */
    int lane, tensor;           /* NOT_FINITE: the first such place; tensor -1: the loss itself */
    struct worker_set minority; /* LINEAGE: ranks that are not of the majority (tie: not of rank 0's) */
};

/* k_used (tensors): the exponents of the pass. fast: nothing needs to fit, k stays. */
void verdict_decide(struct verdict *out, const uint32_t *header, int tensors, int lanes, bool fast,
                    const int32_t *k_used);

/* "step 12: the gradient of h.0.ln_1.weight is not finite in lane 3" for a NOT_FINITE verdict. */
void verdict_sentence(const struct verdict *v, const struct model_layout *layout, int64_t step,
                      char out[RM_WHY_MAX]);

/* The rule for k: the largest in [-100, 100] with h * 2^headroom fitting; `old` where h == 0. h: mean over
 * lanes of the lane's max |g|. */
int32_t verdict_k_for(double h, int lanes, int32_t old);
/* h * 2^k * (1 + 2^-20) + lanes < 2^31 */
bool verdict_k_fits(double h, int lanes, int32_t k);

#endif
