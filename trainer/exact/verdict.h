/* What a reduction's header words say: the same on every rank, decided without I/O. Pure.
 *
 * Header words ride in the same reduction as the gradient. Each slot is written by one rank and zero in the
 * others, so the sum is a gather:
 *     per lane: loss (bits of fp32), then max |g| per tensor (bits of fp32: NaN and Inf win)
 *     per rank: flags, and 64 bits of the lineage that the rank's state has */
#ifndef RM_TRAINER_VERDICT_H
#define RM_TRAINER_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "common/model/layout.h"

enum {
    LANES_STOP = 1, /* stop after this step */
    LANES_SAVE = 2, /* snapshot after this step (timed checkpoints) */
    LANES_FLAGS = LANES_STOP | LANES_SAVE,
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
    double loss;               /* mean over lanes */
    uint32_t flags;            /* union of all ranks' flags; of a discarded pass they stay pending */
    int32_t k[RM_TENSORS_MAX]; /* FITS: of the next step; RESCALE: of the next pass */
    int rescaled;              /* RESCALE: how many tensors do not fit */
    int lane, tensor;          /* NOT_FINITE: the first such place; tensor -1: the loss itself */
    uint64_t minority;         /* LINEAGE: bit r = rank r is not of the majority (tie: not of rank 0's) */
};

/* Words of the header for that many tensors and lanes. */
int64_t verdict_header_count(int tensors, int lanes);
/* Index of a lane's loss; its maxima follow, one per tensor. */
int64_t verdict_lane_at(int tensors, int lane);
/* Index of a rank's three words: flags | present, lineage bytes 0-3, 4-7. */
int64_t verdict_rank_at(int tensors, int lanes, int rank);
void verdict_rank_write(uint32_t *header, int tensors, int lanes, int rank, uint32_t flags,
                        const uint8_t lineage[RM_HASH_BYTES]);

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
