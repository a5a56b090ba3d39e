/* Order-free sums: lanes in, words to reduce out, and the decision after the reduction.
 *
 * Each lane's gradient becomes integers (or, in `fast`, is added as fp32), summed over this rank's lanes
 * into the state's spare buffer. One pass of a step:
 *
 *     lanes_begin(l, &(struct lanes_pass){.rank = r, .flags = stop ? LANES_STOP : 0});
 *     for each own lane: gpt_lane(...); lanes_add(l, lane, grads, loss);
 *     lanes_end(l, &buffer);                      sums of this rank, to be reduced over all ranks in place
 *     collective reduce: buffer.words (u32, or f32 where buffer.floats) and buffer.header (u32)
 *     lanes_decide(l, &verdict);
 *       VERDICT_FITS      update_commit (update.h)
 *       VERDICT_RESCALE   lanes_begin with .k = verdict.k and run the same lanes once more
 *       VERDICT_NOT_FINITE, VERDICT_LINEAGE  nothing may be committed; see verdict.h
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
    int rank;
    uint32_t flags;   /* LANES_STOP | LANES_SAVE (verdict.h); every rank sees the union in verdict.flags */
    const int32_t *k; // (tensors) NULL: the state's own; else those of a VERDICT_RESCALE
};

/* What a pass leaves to be reduced: in place, sums over all ranks. header follows words in memory. */
struct lanes_buffer {
    uint32_t *words;  // (words_count)
    uint32_t *header; // (header_count)
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
void lanes_end(struct lanes *l, struct lanes_buffer *out);
/* After the reduction of that buffer succeeded. */
void lanes_decide(struct lanes *l, struct verdict *out);

#endif
