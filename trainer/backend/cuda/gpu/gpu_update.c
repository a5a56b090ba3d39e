/* The step from state(s) to state(s+1) on a GPU: what update.c is to the CPU, to the bit. The passes over the
 * pieces are kernels; what they come to is added up here, in the CPU's order. */
#include <math.h>
#include <string.h>

#include "trainer/backend/cuda/gpu/gpu_parts.h"
#include "trainer/exact/lineage.h"

struct update {
    struct backend_gpu *g;
    struct state *state;
    int buffer; /* of its words */
    const int32_t *k;
    int64_t step; /* that it leads to */
    struct verdict verdict;
    uint64_t tensor_sums[RM_TENSORS_MAX];
    uint64_t proof; /* of the words */
    double norm, clip, rate;
};

static struct update update_of(struct backend_gpu *g, int buffer)
{
    struct state *s = g->state;
    struct update u = {.g = g,
                       .state = s,
                       .buffer = buffer,
                       .k = s->header->update[buffer].k,
                       .step = state_current(s)->step + 1};
    verdict_decide(&u.verdict, state_header_words(s, buffer), g->layout->tensors, s->shape.lanes,
                   s->shape.fast, u.k);
    return u;
}

/* ---- norm and sums ---- */

static int sum_pieces(struct update *u, struct error *err)
{
    struct backend_gpu *g = u->g;
    const struct state *s = u->state;
    const struct sums_args args = {.words = s->words[u->buffer],
                                   .piece = gpu_at(g->tables.piece),
                                   .to = gpu_at(g->tables.sums),
                                   .pieces = s->pieces,
                                   .floats = s->shape.fast};
    const int64_t each = SUMS_THREADS / SUMS_COLUMNS;
    const size_t bytes = (size_t)s->pieces * sizeof(struct sums_of_piece);
    if (gpu_launch(g, GPU_SUMS, (s->pieces + each - 1) / each, &args, err) < 0 ||
        cuda_copy_out(&g->stream, g->tables.sums_here, g->tables.sums, bytes, err) < 0)
        return -1;
    return cuda_stream_wait(&g->stream, err);
}

/* Integers add up exactly in each tensor; the tensors follow in their order. */
static double square_of_fixed(const struct update *u)
{
    const struct state *s = u->state;
    const struct sums_of_piece *sums = u->g->tables.sums_here;
    struct wide square[RM_TENSORS_MAX] = {{0}};
    double sum = 0;
    for (int i = 0; i < s->pieces; i++) {
        struct wide *tensor = &square[s->piece[i].tensor];
        *tensor = wide_add(*tensor, (struct wide){sums[i].square_high, sums[i].square_low});
    }
    for (int t = 0; t < s->shape.layout->tensors; t++)
        sum += ldexp(wide_to_double(square[t]), -2 * u->k[t]);
    return sum;
}

static double square_of_floats(const struct update *u)
{
    double sum = 0;
    for (int i = 0; i < u->state->pieces; i++)
        sum += u->g->tables.sums_here[i].square;
    return sum;
}

static int find_sums(struct update *u, struct error *err)
{
    const struct state *s = u->state;
    if (sum_pieces(u, err) < 0)
        return -1;
    for (int i = 0; i < s->pieces; i++) {
        u->tensor_sums[s->piece[i].tensor] += u->g->tables.sums_here[i].sum;
        u->proof += u->g->tables.sums_here[i].proof;
    }
    return 0;
}

static int find_norm(struct update *u, struct error *err)
{
    const struct state *s = u->state;
    const double most = u->g->rule.clip_norm;
    if (find_sums(u, err) < 0)
        return -1;
    u->norm = sqrt(s->shape.fast ? square_of_floats(u) : square_of_fixed(u));
    u->clip = most > 0 && most < u->norm + 1e-6 ? most / (u->norm + 1e-6) : 1;
    u->rate = schedule_rate(&u->g->rule.schedule, u->step);
    return 0;
}

static struct update_constants constants_of(const struct update *u, int tensor)
{
    const struct backend_rule *r = &u->g->rule;
    const struct state *s = u->state;
    return (struct update_constants){
        .unit = (float)ldexp(1, s->shape.fast ? 0 : -u->k[tensor]),
        .clip = (float)u->clip,
        .beta1 = (float)r->beta1,
        .rest1 = (float)(1 - r->beta1),
        .beta2 = (float)r->beta2,
        .rest2 = (float)(1 - r->beta2),
        .bias2 = (float)(1 / sqrt(1 - schedule_power(r->beta2, u->step))),
        .epsilon = (float)r->epsilon,
        .rate = (float)(u->rate / (1 - schedule_power(r->beta1, u->step))),
        .keep = s->shape.layout->tensor[tensor].decay ? (float)(1 - u->rate * r->weight_decay) : 1,
    };
}

static int find_next(struct update *u, struct state_point *next, struct error *err)
{
    const struct state *s = u->state;
    const int tensors = s->shape.layout->tensors;
    if (find_norm(u, err) < 0)
        return -1;
    const struct lineage_step add = {.step = u->step,
                                     .tensors = tensors,
                                     .sums = u->tensor_sums,
                                     .k = u->k,
                                     .norm = u->norm,
                                     .clip = u->clip};
    *next = (struct state_point){.step = u->step, .loss_known = true, .loss = u->verdict.loss};
    memcpy(next->k, u->verdict.k, (size_t)tensors * sizeof *next->k);
    lineage_next(state_current(s)->lineage, &add, next->lineage);
    return 0;
}

/* ---- the pass that changes the state ---- */

static int change_pieces(struct update *u, struct error *err)
{
    struct backend_gpu *g = u->g;
    struct state *s = u->state;
    struct gpu_tables *t = &g->tables;
    const struct state_place *at = &s->place[STATE_HOME];
    const size_t tensors = (size_t)g->layout->tensors;
    const struct update_args args = {.words = s->words[u->buffer],
                                     .params = at->params,
                                     .m = at->m,
                                     .v = at->v,
                                     .to_params = at->params,
                                     .to_m = at->m,
                                     .to_v = at->v,
                                     .piece = gpu_at(t->piece),
                                     .constants = gpu_at(t->constants),
                                     .slot = (void *)s->slot,
                                     .stamp = (void *)s->stamp,
                                     .proof = s->proof,
                                     .step = u->step,
                                     .pieces = s->pieces,
                                     .floats = s->shape.fast};
    for (size_t i = 0; i < tensors; i++)
        t->constants_here[i] = constants_of(u, (int)i);
    if (cuda_copy_in(&g->stream, t->constants, t->constants_here, tensors * sizeof *t->constants_here, err) <
            0 ||
        gpu_launch(g, GPU_UPDATE, s->pieces, &args, err) < 0)
        return -1;
    return cuda_stream_wait(&g->stream, err);
}

/* The update is sealed, and known to lead to `next`. */
static int apply(struct update *u, const struct state_point *next, struct error *err)
{
    if (change_pieces(u, err) < 0)
        return -1;
    state_commit(u->state, next, STATE_HOME);
    return 0;
}

/* ---- from the table ---- */

static uint64_t wanted_proof(const struct update *u)
{
    const struct state *s = u->state;
    return header_words_proof(state_header_words(s, u->buffer), s->shape.layout->tensors, s->shape.lanes);
}

/* What is wrong with the words must show before they are sealed. */
static int check_words(const struct update *u, struct error *err)
{
    const uint64_t wanted = wanted_proof(u);
    if (u->state->shape.fast || u->proof == wanted)
        return 0;
    err_set(
        err, ERR_MACHINE,
        "the words of step %lld add up to %016llx, their lanes' checksums to %016llx: the GPU's memory, or "
        "the way to it, changed some",
        (long long)u->step, (unsigned long long)u->proof, (unsigned long long)wanted);
    return err_class(err, CLASS_MACHINE);
}

int gpu_words_are_whole(struct backend_gpu *g, int buffer, bool *ret, struct error *err)
{
    struct update u = update_of(g, buffer);
    if (find_sums(&u, err) < 0)
        return -1;
    *ret = g->state->shape.fast || u.proof == wanted_proof(&u);
    return 0;
}

int gpu_commit(struct backend *b, struct backend_info *ret, struct error *err)
{
    struct backend_gpu *g = gpu_of(b);
    struct update u = update_of(g, g->pass.to);
    struct state_point next;
    if (cuda_device_use(g->device, err) < 0 || find_next(&u, &next, err) < 0 || check_words(&u, err) < 0)
        return -1;
    state_seal(g->state, u.buffer);
    if (apply(&u, &next, err) < 0)
        return -1;
    *ret = (struct backend_info){next.step, u.verdict.loss, u.norm, u.clip, u.rate};
    return 0;
}

int gpu_check(struct backend *b, const struct state_point *wanted, struct error *err)
{
    struct backend_gpu *g = gpu_of(b);
    struct state_point next;
    if (cuda_device_use(g->device, err) < 0 || state_update_fits(g->state, wanted->step, err) < 0)
        return -1;
    struct update u = update_of(g, state_received_buffer(g->state));
    if (find_next(&u, &next, err) < 0)
        return -1;
    if (!memcmp(next.lineage, wanted->lineage, RM_HASH_BYTES))
        return 0;
    return err_set(err, ERR_PROTOCOL,
                   "the update to step %lld that was received leads from the state held here to another "
                   "history than the one asked for",
                   (long long)wanted->step);
}

int gpu_finish(struct backend *b, struct error *err)
{
    struct backend_gpu *g = gpu_of(b);
    struct state_point next;
    struct update u = update_of(g, state_pending_buffer(g->state));
    if (cuda_device_use(g->device, err) < 0 || find_next(&u, &next, err) < 0)
        return -1;
    return apply(&u, &next, err);
}
