/* What a program makes of a sum: the update of its state, as its trainer asks for it. */
#include "trainer/backend/program/apply.h"

#include <math.h>
#include <string.h>

#include "common/base/assert.h"
#include "trainer/backend/cpu/sums/kernels.h"
#include "trainer/backend/cpu/sums/pieces.h"
#include "trainer/backend/program/state_watch.h"
#include "trainer/exact/lineage.h"
#include "trainer/state/state_file.h"

static const struct state_record_update *record_of(const struct apply *a)
{
    return &a->state->header->update[a->buffer];
}

static void sum_piece(void *ctx, int i, int thread)
{
    const struct apply *a = ctx;
    struct state *s = a->state;
    const struct state_piece *p = &s->piece[i];
    const struct kernel_sums_args args = {s->words[a->buffer] + p->first, p->count, false,
                                          (uint64_t)p->first};
    struct kernel_sums sums = kernel_sums(kernels_best(), &args);
    (void)thread;
    s->scratch[i] = (struct state_scratch){sums.square, sums.square_fixed, sums.sum, sums.proof, 0};
}

/* Exact in each tensor, whoever adds what in which order; then in the order of the tensors. */
static double norm_of(const struct apply *a)
{
    const struct state *s = a->state;
    struct wide square[RM_TENSORS_MAX] = {{0}};
    double sum = 0;
    for (int i = 0; i < s->pieces; i++) {
        struct wide *tensor = &square[s->piece[i].tensor];
        *tensor = wide_add(*tensor, s->scratch[i].square_fixed);
    }
    for (int t = 0; t < s->shape.layout->tensors; t++)
        sum += ldexp(wide_to_double(square[t]), -2 * record_of(a)->k[t]);
    return sqrt(sum);
}

static void find_next(struct apply *a)
{
    struct state *s = a->state;
    int tensors = s->shape.layout->tensors;
    uint64_t sums[RM_TENSORS_MAX] = {0};
    struct verdict verdict;
    RM_ASSERT(!s->shape.fast, "a program's sums in %p are of fp32", (void *)s);
    pieces_run(s, a->pool, sum_piece, a);
    for (int i = 0; i < s->pieces; i++) {
        sums[s->piece[i].tensor] += s->scratch[i].sum;
        a->proof += s->scratch[i].proof;
    }
    a->norm = norm_of(a);
    verdict_decide(&verdict, state_header_words(s, a->buffer), tensors, s->shape.lanes, false,
                   record_of(a)->k);
    a->next =
        (struct state_point){.step = state_current(s)->step + 1, .loss = verdict.loss, .loss_known = true};
    memcpy(a->next.k, verdict.k, (size_t)tensors * sizeof *a->next.k);
    const struct lineage_step add = {.step = a->next.step,
                                     .tensors = tensors,
                                     .sums = sums,
                                     .k = record_of(a)->k,
                                     .norm = a->norm,
                                     .clip = 1};
    lineage_next(state_current(s)->lineage, &add, a->next.lineage);
    if (a->held)
        watch_mix(a->next.lineage, a->held);
}

static void begin_apply(struct apply *a, struct state *state, struct pool *pool, int buffer,
                        const uint8_t *held)
{
    RM_ASSERT(!held == !watch_is_due(state_current(state)->step), "the state of step %lld is%s told",
              (long long)state_current(state)->step, held ? "" : " not");
    *a = (struct apply){.state = state, .pool = pool, .held = held, .buffer = buffer};
    find_next(a);
}

/* What is wrong with the words must show before they are kept: others would get them. */
void apply_begin_own(struct apply *a, const struct lanes *lanes, const uint8_t *held)
{
    uint64_t wanted;
    begin_apply(a, lanes_state(lanes), lanes_pool(lanes), lanes_update_buffer(lanes), held);
    RM_ASSERT(lanes_prove(lanes, a->proof, &wanted) && a->proof == wanted,
              "the words of step %lld add up to %016llx, their lanes' checksums to %016llx: this machine's "
              "memory or processor changed some",
              (long long)a->next.step, (unsigned long long)a->proof, (unsigned long long)wanted);
}

void apply_begin_pending(struct apply *a, struct state *state, struct pool *pool, const uint8_t *held)
{
    begin_apply(a, state, pool, state_pending_buffer(state), held);
}

void apply_seal(const struct apply *a)
{
    state_seal(a->state, a->buffer);
}

struct mean {
    const struct apply *apply;
    float *to; // (parameters)
};

static void mean_piece(void *ctx, int i, int thread)
{
    const struct mean *m = ctx;
    const struct state *s = m->apply->state;
    const struct state_piece *p = &s->piece[i];
    const uint32_t *words = s->words[m->apply->buffer] + p->first;
    float unit = (float)ldexp(1, -record_of(m->apply)->k[p->tensor]), *to = m->to + p->first;
    (void)thread;
    for (int e = 0; e < p->count; e++)
        to[e] = (float)(int32_t)words[e] * unit;
}

void apply_mean(const struct apply *a, float *mean)
{
    struct mean m = {a, mean};
    pieces_run(a->state, a->pool, mean_piece, &m);
}

void apply_done(const struct apply *a)
{
    state_commit(a->state, &a->next, STATE_HOME);
}

int apply_check(struct state *s, struct pool *pool, const uint8_t *held, const struct state_point *wanted,
                struct error *err)
{
    struct apply a;
    if (state_update_fits(s, wanted->step, err) < 0)
        return -1;
    begin_apply(&a, s, pool, state_received_buffer(s), held);
    if (!memcmp(a.next.lineage, wanted->lineage, RM_HASH_BYTES))
        return 0;
    return err_set(err, ERR_PROTOCOL,
                   "the update to step %lld that was received leads from the state held here to another "
                   "history than the one asked for",
                   (long long)wanted->step);
}
