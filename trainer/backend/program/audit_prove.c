#include "trainer/backend/program/audit_prove.h"

#include <math.h>

#include "common/base/assert.h"
#include "trainer/backend/cpu/sums/kernels.h"
#include "trainer/backend/cpu/sums/pieces.h"
#include "trainer/state/state_file.h"

struct proving {
    struct state *state;
    const int32_t *k;
    const float *grads;
};

static void prove_piece(void *ctx, int i, int thread)
{
    (void)thread;
    const struct proving *proving = ctx;
    struct state *s = proving->state;
    const struct state_piece *p = &s->piece[i];
    uint32_t words[STATE_PIECE]; /* nobody's */
    const struct kernel_lane_args args = {
        .grads = proving->grads + p->first,
        .words = words,
        .count = p->count,
        .scale = (float)(ldexp(1, proving->k[p->tensor]) / s->shape.lanes), /* as in lanes.c */
        .store = true,
        .at = (uint64_t)p->first,
    };
    s->scratch[i].proof = kernel_add_fixed(kernels_best(), &args).proof;
}

uint64_t audit_prove(struct state *state, struct pool *pool, const int32_t *k, const float *grads)
{
    struct proving proving = {.state = state, .k = k ? k : state_current(state)->k, .grads = grads};
    uint64_t sum = 0;
    RM_ASSERT(!state->shape.fast, "plain sums of step %lld have no checksum",
              (long long)state_current(state)->step);
    pieces_run(state, pool, prove_piece, &proving);
    for (int i = 0; i < state->pieces; i++)
        sum += state->scratch[i].proof;
    return sum;
}
