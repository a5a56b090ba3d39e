/* A pass on a GPU: what lanes.c is to the CPU. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "trainer/backend/cuda/gpu/gpu_parts.h"
#include "trainer/backend/cuda/kernels/prove.h"

/* After a state was received, loaded or made: nobody has seen all of its bits yet. */
static int prove_state(struct backend_gpu *g, struct error *err)
{
    struct state *s = g->state;
    const struct state_place *at = &s->place[STATE_HOME];
    const struct prove_args args = {.params = at->params,
                                    .m = at->m,
                                    .v = at->v,
                                    .piece = gpu_at(g->tables.piece),
                                    .proof = s->proof,
                                    .pieces = s->pieces};
    if (state_proven(s))
        return 0;
    if (gpu_launch(g, GPU_PROVE, s->pieces, &args, err) < 0 || cuda_stream_wait(&g->stream, err) < 0)
        return -1;
    state_set_proven(s);
    return 0;
}

static void set_scale(struct backend_gpu *g, const int32_t *k)
{
    const struct state *s = g->state;
    struct gpu_pass *p = &g->pass;
    for (int t = 0; t < g->layout->tensors; t++) {
        p->k[t] = k[t];
        p->scale[t] = (float)((s->shape.fast ? 1 : ldexp(1, k[t])) / s->shape.lanes);
    }
}

int gpu_begin(struct backend *b, const struct backend_pass *pass, struct error *err)
{
    struct backend_gpu *g = gpu_of(b);
    struct state *s = g->state;
    struct gpu_pass *p = &g->pass;
    if (cuda_device_use(g->device, err) < 0 || prove_state(g, err) < 0)
        return -1;
    const uint32_t lane_us = p->lane_us;
    const int from = state_take_spare(s);
    *p = (struct gpu_pass){.given = *pass,
                           .from = from,
                           .to = pass->world > 1 ? !from : from,
                           .first = true,
                           .lane_us = lane_us};
    set_scale(g, pass->k ? pass->k : state_current(s)->k);
    memset(g->header, 0, (size_t)s->header_words * sizeof *g->header);
    return 0;
}

/* ---- lanes ---- */

static struct cuda_lane_sums sums_of(const struct backend_gpu *g, int buffer)
{
    return (struct cuda_lane_sums){.words = gpu_address(g->state->words[buffer]),
                                   .max = g->tables.said + offsetof(struct gpu_said, max),
                                   .proof = g->tables.said + offsetof(struct gpu_said, proof),
                                   .scale = g->pass.scale,
                                   .store = g->pass.first,
                                   .floats = g->state->shape.fast};
}

static int forget_said(struct backend_gpu *g, struct error *err)
{
    if (cuda_set_words(&g->stream, g->tables.said, 0, sizeof(struct gpu_said) / sizeof(uint32_t), err) < 0)
        return -1;
    return cuda_stream_wait(&g->stream, err);
}

static int fetch_said(struct backend_gpu *g, struct error *err)
{
    if (cuda_copy_out(&g->stream, g->tables.said_here, g->tables.said, sizeof(struct gpu_said), err) < 0)
        return -1;
    return cuda_stream_wait(&g->stream, err);
}

static int check_tokens(const struct backend_gpu *g, const int32_t *tokens, int sequences, struct error *err)
{
    const struct model_shape *m = &g->layout->shape;
    for (int64_t i = 0; i < (int64_t)sequences * (m->context + 1); i++)
        if (tokens[i] < 0 || tokens[i] >= m->vocabulary)
            return err_set(err, ERR_DATA, "token %d at %lld lies outside the vocabulary of %d",
                           (int)tokens[i], (long long)i, m->vocabulary);
    return 0;
}

static int check_asked(const struct backend_gpu *g, const int32_t *tokens, int sequences,
                       const atomic_int *stop, struct error *err)
{
    if (stop && atomic_load(stop))
        return err_set(err, ERR_ABORTED, "the pass was stopped");
    return check_tokens(g, tokens, sequences, err);
}

int gpu_lane(struct backend *b, int lane, const int32_t *tokens, const atomic_int *stop, struct error *err)
{
    struct backend_gpu *g = gpu_of(b);
    const int tensors = g->layout->tensors;
    const struct gpu_said *said = g->tables.said_here;
    double loss;
    if (check_asked(g, tokens, g->sequences, stop, err) < 0 || cuda_device_use(g->device, err) < 0)
        return -1;
    const struct cuda_lane_sums sums = sums_of(g, g->pass.from);
    if (forget_said(g, err) < 0 || cuda_lane_run(g->lane, tokens, &sums, &loss, err) < 0 ||
        fetch_said(g, err) < 0)
        return -1;
    g->pass.first = false;
    const struct header_lane own = {
        .loss = (float)loss, .tokens = g->pass.given.tokens, .proof = said->proof};
    memcpy(g->header + header_lane_at(tensors, lane) + 1, said->max, (size_t)tensors * sizeof *said->max);
    header_lane_write(g->header, tensors, lane, &own);
    return 0;
}

/* ---- what is said of it ---- */

static int clear_words(struct backend_gpu *g, struct error *err)
{
    const CUdeviceptr words = gpu_address(g->state->words[g->pass.from]);
    if (cuda_set_words(&g->stream, words, 0, (size_t)g->layout->parameters, err) < 0)
        return -1;
    return cuda_stream_wait(&g->stream, err);
}

static int fetch_proof(struct backend_gpu *g, struct error *err)
{
    const struct state *s = g->state;
    const size_t bytes = (size_t)s->pieces * sizeof *s->proof;
    if (cuda_copy_out(&g->stream, g->tables.proof_here, gpu_address(s->proof), bytes, err) < 0)
        return -1;
    return cuda_stream_wait(&g->stream, err);
}

int gpu_image_sum(struct backend *b, uint64_t *ret, struct error *err)
{
    struct backend_gpu *g = gpu_of(b);
    *ret = 0;
    if (g->state->shape.fast)
        return 0;
    if (cuda_device_use(g->device, err) < 0 || prove_state(g, err) < 0 || fetch_proof(g, err) < 0)
        return -1;
    *ret = state_sum_of(g->state, g->tables.proof_here);
    return 0;
}

int gpu_end(struct backend *b, uint32_t lane_us, struct backend_sums *ret, struct error *err)
{
    struct backend_gpu *g = gpu_of(b);
    struct state *s = g->state;
    struct gpu_pass *p = &g->pass;
    if (lane_us)
        p->lane_us = lane_us;
    if (cuda_device_use(g->device, err) < 0 || (p->first && clear_words(g, err) < 0) ||
        fetch_proof(g, err) < 0)
        return -1;
    struct header_rank said = {.flags = p->given.flags | LANES_HOLDS,
                               .lane_us = p->lane_us,
                               .state_sum = state_sum_of(s, g->tables.proof_here),
                               .audited = -1};
    memcpy(said.lineage, state_current(s)->lineage, sizeof said.lineage);
    header_rank_write(g->header, g->layout->tensors, s->shape.lanes, p->given.rank, &said);
    *ret = (struct backend_sums){.in = s->in,
                                 .words = far_here(s->words[p->from]),
                                 .header = g->header,
                                 .header_to = g->sum,
                                 .words_count = g->layout->parameters,
                                 .header_count = s->header_words,
                                 .floats = s->shape.fast};
    return 0;
}

void gpu_decide(struct backend *b, struct verdict *ret)
{
    struct backend_gpu *g = gpu_of(b);
    const struct state *s = g->state;
    g->pass.all_inside = true;
    verdict_decide(ret, g->sum, g->layout->tensors, s->shape.lanes, s->shape.fast, g->pass.k);
    g->pass.fits = ret->kind == VERDICT_FITS;
}

bool gpu_words_to(struct backend *b, struct far *ret)
{
    struct backend_gpu *g = gpu_of(b);
    struct state *s = g->state;
    const struct gpu_pass *p = &g->pass;
    RM_ASSERT(p->all_inside, "words of step %lld before all headers are there",
              (long long)state_current(s)->step + 1);
    RM_ASSERT(p->fits, "words of step %lld, whose pass does not fit", (long long)state_current(s)->step + 1);
    state_update_begin(s, p->to, g->sum, p->k);
    *ret = far_here(s->words[p->to]);
    return p->to != p->from;
}

/* ---- forward only, and for nothing ---- */

int gpu_losses(struct backend *b, const int32_t *tokens, int n, float *losses, const atomic_int *stop,
               struct error *err)
{
    struct backend_gpu *g = gpu_of(b);
    if (cuda_device_use(g->device, err) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        const int32_t *own = tokens + (int64_t)i * (g->layout->shape.context + 1);
        double loss;
        if (check_asked(g, own, 1, stop, err) < 0 || cuda_lane_loss(g->lane, own, &loss, err) < 0)
            return -1;
        losses[i] = (float)loss;
    }
    return 0;
}

/* Into the buffer that keeps no update. What fails here fails again where it is told. */
void gpu_warm_up(struct backend *b, struct far params)
{
    struct backend_gpu *g = gpu_of(b);
    struct error ignored = {0};
    const struct cuda_lane_sums sums = sums_of(g, state_received_buffer(g->state));
    int32_t *tokens = calloc((size_t)g->sequences * (size_t)(g->layout->shape.context + 1), sizeof *tokens);
    double loss;
    if (tokens && cuda_device_use(g->device, &ignored) == 0 &&
        cuda_lane_weights(g->lane, params.at, &ignored) == 0)
        cuda_lane_run(g->lane, tokens, &sums, &loss, &ignored);
    free(tokens);
}
