/* Order-free sums: lanes in, words to reduce out, and the decision after the reduction.
 *
 * Each lane's gradient becomes integers (or, in `fast`, is added as fp32), summed over this rank's lanes
 * into that of the state's buffers which does not hold the kept update. One pass of a step:
 *
 *     lanes_begin(l, &(struct lanes_pass){.rank = r, .world = n, .flags = stop ? LANES_STOP : 0});
 *     for each own lane: gpt_lane(...); lanes_add(l, lane, grads, loss);
 *     lanes_end(l, &sums);
 *     collective reduce: sums.header to sums.header_to (u32)
 *     lanes_decide(l, &verdict);                  all ranks are in this step: none can lack the one before
 *       VERDICT_FITS      this pass fits. to = lanes_words_to(l): the kept update is gone. Not NULL: reduce
 *                         sums.words to `to` (u32, or f32 where sums.floats). Then update_commit (update.h)
 *       VERDICT_RESCALE   lanes_begin with .k = verdict.k and run the same lanes once more; no words move
 *       VERDICT_NOT_FINITE, VERDICT_LINEAGE  nothing may be committed; see verdict.h
 *
 * The header goes first, in a reduction of its own, because the words of one step are written over the update
 * that led to the one before: only when every rank has sent its header, each after committing that update,
 * does nobody need it any more. Until then header and k of the pass lie in memory of their own here.
 *
 * A pass may be given up at any point: begin starts anew. The state itself is never touched here. */
#ifndef RM_TRAINER_LANES_H
#define RM_TRAINER_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/os/pool.h"
#include "trainer/exact/verdict.h"
#include "trainer/state/state.h"

struct lanes;

struct lanes_pass {
    int rank, world;  /* 0 and 1 (or 0) where there is nobody else */
    uint32_t flags;   /* LANES_STOP | LANES_SAVE | LANES_READY (header.h); what all say is in verdict.flags */
    uint32_t tokens;  /* that a lane learns from */
    const int32_t *k; // (tensors) NULL: the state's own; else those of a VERDICT_RESCALE
};

/* What this rank adds in a pass; valid until the next one begins. */
struct lanes_sums {
    const uint32_t *words;  // (words_count)
    const uint32_t *header; // (header_count)
    uint32_t *header_to;    // (header_count) for the sum of all ranks'
    int64_t words_count, header_count;
    bool floats; /* words are fp32 (reduction: fast); header never is */
};

/* Works on that state; pool NULL: one thread. Both must outlive it. */
int lanes_open(struct lanes **ret, struct state *state, struct pool *pool, struct error *err);
void lanes_free(struct lanes *l);

/* The state must hold a step. The kept update stays, its elder's buffer is taken. */
void lanes_begin(struct lanes *l, const struct lanes_pass *pass);
/* grads (parameters): gradient of lane `lane`'s mean loss. Each lane once per pass, any order. */
void lanes_add(struct lanes *l, int lane, const float *grads, float loss);
/* How long this rank's lanes took, each; of the pass before where nobody says. */
void lanes_took(struct lanes *l, uint32_t lane_us);
void lanes_end(struct lanes *l, struct lanes_sums *out);
/* After the reduction of the header succeeded: all ranks are in this step. */
void lanes_decide(struct lanes *l, struct verdict *out);
/* This pass fits (that is asserted): where the sum of all ranks' words belongs. NULL in a world of 1, whose
 * own words are that sum. */
uint32_t *lanes_words_to(struct lanes *l);

#endif
