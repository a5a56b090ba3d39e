/* Works out a step's norm and constants, and changes the state piece by piece, so that whoever dies in
 * between leaves what can be repaired. */
#include "trainer/backend/cpu/sums/update.h"

#include <math.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/os/fault.h"
#include "trainer/backend/cpu/sums/kernels.h"
#include "trainer/backend/cpu/sums/pieces.h"
#include "trainer/exact/lineage.h"
#include "trainer/exact/verdict.h"
#include "trainer/state/state_file.h"

/* Everything that the passes over the pieces share. */
struct update {
    struct state *state;
    const struct update_rule *rule;
    struct pool *pool;
    const struct kernels *kernels;
    const struct state_record_update *record;
    int64_t step; /* that it leads to */
    const uint32_t *words;
    const struct state_place *from, *to; /* the same: in place */
    struct verdict verdict;
    double norm, clip, rate;
    uint64_t proof;                /* of the words */
    struct kernel_adamw constants; /* but unit and keep, which are the tensor's */
    float keep;                    /* of tensors with weight decay */
};

/* ---- norm and sums ---- */

static void sum_piece(void *ctx, int i, int thread)
{
    (void)thread;
    struct update *u = ctx;
    struct state *s = u->state;
    const struct state_piece *p = &s->piece[i];
    const struct kernel_sums_args args = {u->words + p->first, p->count, s->shape.fast, (uint64_t)p->first};
    struct kernel_sums sums = kernel_sums(u->kernels, &args);
    s->scratch[i] = (struct state_scratch){sums.square, sums.square_fixed, sums.sum, sums.proof, 0};
}

/* Integers add up exactly in each tensor, whoever adds what in which order; the tensors follow in their
 * order. */
static double square_of_fixed(const struct update *u)
{
    const struct state *s = u->state;
    struct wide square[RM_TENSORS_MAX] = {{0}};
    double sum = 0;
    for (int i = 0; i < s->pieces; i++) {
        struct wide *tensor = &square[s->piece[i].tensor];
        *tensor = wide_add(*tensor, s->scratch[i].square_fixed);
    }
    for (int t = 0; t < s->shape.layout->tensors; t++)
        sum += ldexp(wide_to_double(square[t]), -2 * u->record->k[t]);
    return sum;
}

/* Sums in fp32 are added piece by piece in the pieces' order, whoever worked them out. */
static double square_of_floats(const struct update *u)
{
    const struct state *s = u->state;
    double sum = 0;
    for (int i = 0; i < s->pieces; i++)
        sum += s->scratch[i].square;
    return sum;
}

static void find_norm(struct update *u, uint64_t *tensor_sums)
{
    struct state *s = u->state;
    pieces_run(s, u->pool, sum_piece, u);
    memset(tensor_sums, 0, (size_t)s->shape.layout->tensors * sizeof *tensor_sums);
    u->proof = 0;
    for (int i = 0; i < s->pieces; i++) {
        tensor_sums[s->piece[i].tensor] += s->scratch[i].sum;
        u->proof += s->scratch[i].proof;
    }
    u->norm = sqrt(s->shape.fast ? square_of_floats(u) : square_of_fixed(u));
    u->clip = 1;
    if (u->rule->clip_norm > 0 && u->rule->clip_norm < u->norm + 1e-6)
        u->clip = u->rule->clip_norm / (u->norm + 1e-6);
}

static void find_constants(struct update *u)
{
    const struct update_rule *r = u->rule;
    int64_t t = u->step;
    u->rate = schedule_rate(&r->schedule, t);
    u->keep = (float)(1 - u->rate * r->weight_decay);
    u->constants = (struct kernel_adamw){
        .clip = (float)u->clip,
        .beta1 = (float)r->beta1,
        .rest1 = (float)(1 - r->beta1),
        .beta2 = (float)r->beta2,
        .rest2 = (float)(1 - r->beta2),
        .bias2 = (float)(1 / sqrt(1 - schedule_power(r->beta2, t))),
        .epsilon = (float)r->epsilon,
        .rate = (float)(u->rate / (1 - schedule_power(r->beta1, t))),
    };
}

/* ---- the pass that changes the state ---- */

static void fill_slot(struct state *s, struct state_slot *slot, int i)
{
    const struct state_piece *p = &s->piece[i];
    const struct state_place *at = &s->place[STATE_HOME];
    size_t bytes = (size_t)p->count * sizeof(float);
    slot->piece = i;
    memcpy(slot->params, at->params + p->first, bytes);
    memcpy(slot->m, at->m + p->first, bytes);
    memcpy(slot->v, at->v + p->first, bytes);
    FAULT("slot-filled");
    atomic_store_explicit(&slot->valid, 1, memory_order_release);
    state_order();
    FAULT("slot-valid");
}

static void change_part(const struct update *u, const struct state_piece *p, int begin, int count)
{
    struct state *s = u->state;
    const struct state_place *from = u->from, *to = u->to;
    int64_t at = p->first + begin;
    bool decays = s->shape.layout->tensor[p->tensor].decay;
    const struct kernel_adamw_args args = {u->words + at, from->params + at, from->m + at, from->v + at,
                                           count};
    struct kernel_adamw constants = u->constants;
    constants.unit = (float)ldexp(1, s->shape.fast ? 0 : -u->record->k[p->tensor]);
    constants.keep = decays ? u->keep : 1;
    if (to == from) {
        kernel_adamw(u->kernels, &args, &constants, s->shape.fast);
        return;
    }
    const struct kernel_adamw_to away = {to->params + at, to->m + at, to->v + at};
    kernel_adamw_to(u->kernels, &args, &away, &constants, s->shape.fast);
}

/* In two parts, so that a fault point can lie between new and old values of one piece. */
static void change_and_stamp(const struct update *u, int i)
{
    struct state *s = u->state;
    const struct state_piece *p = &s->piece[i];
    int half = p->count / 2;
    change_part(u, p, 0, half);
    FAULT("piece-half");
    change_part(u, p, half, p->count - half);
    const struct state_place *to = u->to;
    s->proof[i] =
        kernel_prove(u->kernels, to->params + p->first, to->m + p->first, to->v + p->first, p->count);
    FAULT("piece-updated");
    atomic_store_explicit(&s->stamp[i], u->step, memory_order_release);
    FAULT("piece-stamped");
}

static void change_piece(void *ctx, int i, int thread)
{
    struct update *u = ctx;
    struct state *s = u->state;
    struct state_slot *slot = &s->slot[thread];
    if (atomic_load_explicit(&s->stamp[i], memory_order_relaxed) == u->step)
        return;
    if (u->to != u->from) { /* the old values stay where they are */
        change_and_stamp(u, i);
        return;
    }
    fill_slot(s, slot, i);
    change_and_stamp(u, i);
    atomic_store_explicit(&slot->valid, 0, memory_order_release);
    state_order();
    FAULT("slot-cleared");
}

/* ---- both ---- */

static void find_next(struct update *u, struct state_point *next)
{
    const struct state *s = u->state;
    int tensors = s->shape.layout->tensors;
    uint64_t sums[RM_TENSORS_MAX];
    find_norm(u, sums);
    find_constants(u);
    const struct lineage_step add = {
        .step = u->step,
        .tensors = tensors,
        .sums = sums,
        .k = u->record->k,
        .norm = u->norm,
        .clip = u->clip,
    };
    memset(next, 0, sizeof *next);
    next->step = u->step;
    memcpy(next->k, u->verdict.k, (size_t)tensors * sizeof *next->k);
    next->loss = u->verdict.loss;
    next->loss_known = true;
    lineage_next(state_current(s)->lineage, &add, next->lineage);
}

static void begin_update(struct update *u, struct state *s, int b, const struct update_rule *rule,
                         struct pool *pool)
{
    *u = (struct update){
        .state = s,
        .rule = rule,
        .pool = pool,
        .kernels = kernels_best(),
        .record = &s->header->update[b],
        .step = state_current(s)->step + 1,
        .words = s->words[b],
        .from = &s->place[state_placed(s)],
    };
    verdict_decide(&u->verdict, state_header_words(s, b), s->shape.layout->tensors, s->shape.lanes,
                   s->shape.fast, u->record->k);
}

int update_check_received(struct state *s, const struct update_rule *rule, struct pool *pool,
                          const struct state_point *wanted, struct error *err)
{
    struct state_point next;
    struct update u;
    if (state_update_fits(s, wanted->step, err) < 0)
        return -1;
    begin_update(&u, s, state_received_buffer(s), rule, pool);
    find_next(&u, &next);
    if (!memcmp(next.lineage, wanted->lineage, RM_HASH_BYTES))
        return 0;
    return err_set(err, ERR_PROTOCOL,
                   "the update to step %lld that was received leads from the state held here to another "
                   "history than the one asked for",
                   (long long)wanted->step);
}

/* The update is sealed, and known to lead to `next`. */
static void finish(struct update *u, const struct state_point *next, struct update_info *info)
{
    struct state *s = u->state;
    u->to = &s->place[u->record->to];
    pieces_run(s, u->pool, change_piece, u);
    state_commit(s, next, (enum state_place_of)u->record->to);
    if (info)
        *info = (struct update_info){next->step, u->verdict.loss, u->norm, u->clip, u->rate};
}

void update_apply(struct state *s, const struct update_rule *rule, struct pool *pool,
                  struct update_info *info)
{
    struct state_point next;
    struct update u;
    begin_update(&u, s, state_pending_buffer(s), rule, pool);
    find_next(&u, &next);
    finish(&u, &next, info);
}

/* What is wrong with the words must show before they are sealed: from then on a successor would apply them.
 */
void update_commit(struct lanes *l, const struct update_rule *rule, struct update_info *info)
{
    struct state *s = lanes_state(l);
    struct state_point next;
    struct update u;
    uint64_t wanted;
    begin_update(&u, s, lanes_update_buffer(l), rule, lanes_pool(l));
    find_next(&u, &next);
    RM_ASSERT(lanes_prove(l, u.proof, &wanted) && (s->shape.fast || u.proof == wanted),
              "the words of step %lld add up to %016llx, their lanes' checksums to %016llx: this machine's "
              "memory or processor changed some",
              (long long)next.step, (unsigned long long)u.proof, (unsigned long long)wanted);
    state_seal(s, lanes_update_buffer(l));
    finish(&u, &next, info);
}
