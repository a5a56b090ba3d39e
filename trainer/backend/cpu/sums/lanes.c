/* Makes whole numbers of each lane's gradient, adds them up, and lays the header beside them. */
#include "trainer/backend/cpu/sums/lanes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/os/fault.h"
#include "trainer/backend/cpu/sums/kernels.h"
#include "trainer/backend/cpu/sums/pieces.h"
#include "trainer/state/state_file.h"

struct lanes {
    struct state *state;
    struct pool *pool;
    struct lanes_pass pass;
    int32_t k[RM_TENSORS_MAX];
    int from, to;           /* buffers: what this rank adds, and the sum of all; the same where it is alone */
    uint32_t *header, *sum; // (header_words) what this rank says, and what all do
    bool all_in_step;       /* every rank has sent its header: none is a step behind */
    bool fits;              /* this pass may become an update */
    bool first;             /* no lane has been added yet: the next one is stored, not added */
    float scale[RM_TENSORS_MAX]; /* a lane's gradient times this is its share of the sum */
    const float *grads;          /* of the lane under way */
    uint32_t lane_us;
};

int lanes_open(struct lanes **ret, struct state *state, struct pool *pool, struct error *err)
{
    struct lanes *l = calloc(1, sizeof *l);
    if (!l)
        return err_set(err, ERR_MACHINE, "no memory for the lanes' sums");
    l->state = state;
    l->pool = pool;
    l->header = calloc(2 * (size_t)state->header_words, sizeof *l->header);
    if (!l->header) {
        free(l);
        return err_set(err, ERR_MACHINE, "no memory for the lanes' header words");
    }
    l->sum = l->header + state->header_words;
    *ret = l;
    return 0;
}

void lanes_free(struct lanes *l)
{
    if (l)
        free(l->header);
    free(l);
}

struct state *lanes_state(const struct lanes *l)
{
    return l->state;
}

struct pool *lanes_pool(const struct lanes *l)
{
    return l->pool;
}

int lanes_update_buffer(const struct lanes *l)
{
    return l->to;
}

static void prove_piece(void *ctx, int i, int thread)
{
    (void)thread;
    struct state *s = ctx;
    const struct state_piece *p = &s->piece[i];
    const struct state_place *at = &s->place[state_placed(s)];
    s->proof[i] =
        kernel_prove(kernels_best(), at->params + p->first, at->m + p->first, at->v + p->first, p->count);
}

/* After a state was received, loaded or made: nobody has seen all of its bits yet. */
static void prove_state(struct lanes *l)
{
    if (state_proven(l->state))
        return;
    pieces_run(l->state, l->pool, prove_piece, l->state);
    state_set_proven(l->state);
}

void lanes_begin(struct lanes *l, const struct lanes_pass *pass)
{
    struct state *s = l->state;
    int tensors = s->shape.layout->tensors;
    const int32_t *k = pass->k ? pass->k : state_current(s)->k;
    l->pass = *pass;
    prove_state(l);
    l->from = state_take_spare(s);
    l->to = pass->world > 1 ? !l->from : l->from;
    l->first = true;
    l->all_in_step = l->fits = false;
    memcpy(l->k, k, (size_t)tensors * sizeof *k);
    memset(l->header, 0, (size_t)s->header_words * sizeof *l->header);
    for (int t = 0; t < tensors; t++)
        l->scale[t] = (float)((s->shape.fast ? 1 : ldexp(1, k[t])) / s->shape.lanes);
}

static void add_piece(void *ctx, int i, int thread)
{
    (void)thread;
    struct lanes *l = ctx;
    struct state *s = l->state;
    const struct state_piece *p = &s->piece[i];
    const struct kernel_lane_args args = {
        .grads = l->grads + p->first,
        .words = s->words[l->from] + p->first,
        .count = p->count,
        .scale = l->scale[p->tensor],
        .store = l->first,
        .at = (uint64_t)p->first,
    };
    const struct kernels *kernels = kernels_best();
    struct kernel_lane seen =
        s->shape.fast ? kernel_add_float(kernels, &args) : kernel_add_fixed(kernels, &args);
    s->scratch[i].max = seen.max;
    s->scratch[i].proof = seen.proof;
}

void lanes_add(struct lanes *l, int lane, const float *grads, float loss)
{
    struct state *s = l->state;
    int tensors = s->shape.layout->tensors;
    struct header_lane said = {.loss = loss, .tokens = l->pass.tokens};
    uint32_t *max = l->header + header_lane_at(tensors, lane) + 1;
    l->grads = grads;
    pieces_run(s, l->pool, add_piece, l);
    l->first = false;
    for (int i = 0; i < s->pieces; i++) {
        int t = s->piece[i].tensor;
        max[t] = max[t] < s->scratch[i].max ? s->scratch[i].max : max[t];
        said.proof += s->scratch[i].proof;
    }
    header_lane_write(l->header, tensors, lane, &said);
}

void lanes_took(struct lanes *l, uint32_t lane_us)
{
    l->lane_us = lane_us;
}

void lanes_end(struct lanes *l, struct lanes_sums *out)
{
    struct state *s = l->state;
    const struct model_layout *layout = s->shape.layout;
    uint32_t *words = s->words[l->from];
    if (l->first)
        memset(words, 0, (size_t)layout->parameters * sizeof *words);
    struct header_rank said = {.flags = l->pass.flags | LANES_HOLDS,
                               .lane_us = l->lane_us,
                               .state_sum = state_sum(s),
                               .audited = -1};
    memcpy(said.lineage, state_current(s)->lineage, sizeof said.lineage);
    header_rank_write(l->header, layout->tensors, s->shape.lanes, l->pass.rank, &said);
    *out = (struct lanes_sums){words, l->header, l->sum, layout->parameters, s->header_words, s->shape.fast};
}

void lanes_decide(struct lanes *l, struct verdict *out)
{
    const struct state *s = l->state;
    FAULT("header-done");
    l->all_in_step = true;
    verdict_decide(out, l->sum, s->shape.layout->tensors, s->shape.lanes, s->shape.fast, l->k);
    l->fits = out->kind == VERDICT_FITS;
}

uint32_t *lanes_words_to(struct lanes *l)
{
    struct state *s = l->state;
    RM_ASSERT(l->all_in_step, "words of step %lld before all headers are there",
              (long long)state_current(s)->step + 1);
    RM_ASSERT(l->fits, "words of step %lld, whose pass does not fit", (long long)state_current(s)->step + 1);
    state_update_begin(s, l->to, l->sum, l->k);
    return l->to == l->from ? NULL : s->words[l->to];
}

bool lanes_prove(const struct lanes *l, uint64_t proof, uint64_t *ret_wanted)
{
    const struct state *s = l->state;
    uint64_t wanted = 0;
    for (int lane = 0; lane < s->shape.lanes; lane++)
        wanted += header_lane_read(l->sum, s->shape.layout->tensors, lane).proof;
    *ret_wanted = wanted;
    return s->shape.fast || l->to != l->from || proof == wanted;
}
