/* The contract of who computes (trainer/backend/backend.h), asked of the backend on CPUs and of the stand-in
 * for a device: a step by the table is a step by the functions behind it, to the bit. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/prng.h"
#include "common/os/crypto.h"
#include "common/os/file.h"
#include "tests/unit/trainer/backend/stand_in.h"
#include "trainer/backend/cpu/backend_cpu.h"
#include "trainer/backend/cpu/model/gpt.h"
#include "trainer/backend/cpu/sums/update.h"
#include "trainer/state/state.h"

enum {
    LANES = 3,
    SEQUENCES = 2,
    CONTEXT = 12,
    VOCABULARY = 100,
    TOKENS = SEQUENCES * (CONTEXT + 1),
    SEED = 7
};

typedef int open_backend(struct backend **ret, const struct backend_options *options, struct error *err);
static open_backend *const backends[] = {backend_cpu_open, device_open};
enum { BACKENDS = (int)(sizeof backends / sizeof *backends) };

static struct model_layout layout;
static const struct backend_rule rule = {.schedule = {.rate = 1e-2, .steps = 10},
                                         .beta1 = 0.9,
                                         .beta2 = 0.95,
                                         .epsilon = 1e-8,
                                         .weight_decay = 0.1,
                                         .clip_norm = 1};

static void begin(void)
{
    const struct model_shape shape = {2, 2, 24, CONTEXT, VOCABULARY};
    model_layout_init(&layout, &shape);
}

/* A backend with a state of its own. */
struct one {
    struct backend *b;
    const struct backend_ops *ops;
    struct state *state;
    int fd;
};

static size_t bytes_of(void)
{
    return (size_t)layout.parameters * sizeof(float);
}

static float *first_weights(void)
{
    float *params = malloc(bytes_of());
    gpt_init_weights(&layout, SEED, params);
    return params;
}

static struct far params_of(struct one *o)
{
    struct state_arrays a = state_arrays(o->state);
    return state_array_named(&a, "params")->at;
}

static void hold(struct one *o, const float *params)
{
    struct state_point point = {.lineage = {9}};
    state_receive_begin(o->state);
    cr_assert_eq(o->ops->copy_in(o->b, params_of(o), params, bytes_of(), NULL), 0);
    cr_assert_eq(state_zero_moments(o->state, NULL), 0);
    cr_assert_eq(state_receive_end(o->state, &point, NULL), 0);
}

static struct one one_open(open_backend *open, int threads)
{
    const struct backend_options options = {
        .layout = &layout, .sequences = SEQUENCES, .threads = threads, .isa = "Auto", .rule = rule};
    struct state_shape shape = {.layout = &layout, .lanes = LANES};
    struct one o = {.fd = -1};
    struct error err = {0};
    float *params = first_weights();
    cr_assert_eq(open(&o.b, &options, &err), 0, "%s", err.text);
    o.ops = o.b->ops;
    if (o.ops->memory)
        cr_assert_eq(o.ops->memory(o.b, state_bulk_bytes(&shape), &shape.in, &shape.at, &err), 0);
    cr_assert_eq(file_memory(&o.fd, "state", 0, &err), 0);
    cr_assert_eq(state_open(&o.state, o.fd, &shape, &err), 0, "%s", err.text);
    cr_assert_eq(o.ops->attach(o.b, o.state, &err), 0);
    hold(&o, params);
    free(params);
    return o;
}

static void one_close(struct one *o)
{
    o->ops->free(o->b);
    state_free(o->state);
    close(o->fd);
}

static const int32_t *tokens_of(int lane)
{
    static _Thread_local int32_t tokens[TOKENS];
    uint64_t seed = (uint64_t)lane + 1;
    for (int i = 0; i < TOKENS; i++)
        tokens[i] = (int32_t)prng_below(&seed, VOCABULARY);
    return tokens;
}

/* A pass over the lanes in that order. */
static void pass(struct one *o, const int *order, const int32_t *k, struct backend_sums *sums)
{
    const struct backend_pass p = {.world = 1, .tokens = SEQUENCES * CONTEXT, .k = k};
    cr_assert_eq(o->ops->begin(o->b, &p, NULL), 0);
    for (int i = 0; i < LANES; i++)
        cr_assert_eq(o->ops->lane(o->b, order[i], tokens_of(order[i]), NULL, NULL), 0);
    cr_assert_eq(o->ops->end(o->b, 0, sums, NULL), 0);
}

static const int in_order[LANES] = {0, 1, 2}, backwards[LANES] = {2, 1, 0};

/* Up to the commit: the words of the next step stand. */
static struct verdict decided(struct one *o, const int *order)
{
    struct backend_sums sums;
    struct verdict v = {.kind = VERDICT_FITS};
    struct far to;
    cr_assert_eq(o->ops->weights(o->b, params_of(o), NULL), 0);
    do {
        const struct verdict last = v;
        pass(o, order, last.kind == VERDICT_RESCALE ? last.k : NULL, &sums);
        memcpy(sums.header_to, sums.header, (size_t)sums.header_count * sizeof *sums.header);
        o->ops->decide(o->b, &v);
    } while (v.kind == VERDICT_RESCALE);
    cr_assert_eq(v.kind, VERDICT_FITS);
    cr_assert_not(o->ops->words_to(o->b, &to), "alone, the own words are everybody's");
    return v;
}

static struct backend_info step(struct one *o, const int *order)
{
    struct backend_info info;
    decided(o, order);
    cr_assert_eq(o->ops->commit(o->b, &info, NULL), 0);
    return info;
}

struct bits {
    uint8_t of[RM_HASH_BYTES];
};

static void add(void *ctx, const void *at, size_t bytes)
{
    sha256_add(ctx, at, bytes);
}

/* Of all that a state is made of, and of its lineage. */
static struct bits bits_of(struct state *s)
{
    struct state_arrays a = state_arrays(s);
    struct state_point point;
    struct bits out;
    struct sha256 *h = sha256_open();
    cr_assert(state_holds(s, &point));
    for (int i = 0; i < a.arrays; i++)
        cr_assert_eq(memory_visit(a.in, a.array[i].at, bytes_of(), add, h, NULL), 0);
    sha256_add(h, point.lineage, sizeof point.lineage);
    sha256_finish(h, out.of);
    return out;
}

static bool same(struct bits a, struct bits b)
{
    return !memcmp(a.of, b.of, sizeof a.of);
}

/* The step by the functions behind the table. */
static struct bits by_hand(int steps, struct update_info *ret)
{
    struct one o = one_open(backend_cpu_open, 1);
    struct lanes *l;
    struct gpt *gpt;
    struct pool *pool;
    const struct update_rule r = {rule.schedule, rule.beta1,        rule.beta2,
                                  rule.epsilon,  rule.weight_decay, rule.clip_norm};
    const struct gpt_options options = {.sequences = SEQUENCES, .isa = "Auto"};
    float *grads = malloc(bytes_of()), loss;
    cr_assert_eq(pool_open(&pool, 1, NULL), 0);
    cr_assert_eq(gpt_open(&gpt, &layout, &options, pool, NULL), 0);
    cr_assert_eq(lanes_open(&l, o.state, NULL, NULL), 0);
    for (int i = 0; i < steps; i++) {
        const float *params = memory_near(memory_here(), params_of(&o));
        struct verdict v = {.kind = VERDICT_FITS};
        struct lanes_sums sums;
        gpt_weights_changed(gpt, params);
        do {
            const struct verdict last = v;
            lanes_begin(l, &(struct lanes_pass){.tokens = SEQUENCES * CONTEXT,
                                                .k = last.kind == VERDICT_RESCALE ? last.k : NULL});
            for (int lane = 0; lane < LANES; lane++) {
                cr_assert_eq(gpt_lane(gpt, params, tokens_of(lane), grads, &loss, NULL, NULL), 0);
                lanes_add(l, lane, grads, loss);
            }
            lanes_end(l, &sums);
            memcpy(sums.header_to, sums.header, (size_t)sums.header_count * sizeof *sums.header);
            lanes_decide(l, &v);
        } while (v.kind == VERDICT_RESCALE);
        lanes_words_to(l);
        update_commit(l, &r, ret);
    }
    struct bits out = bits_of(o.state);
    lanes_free(l);
    gpt_free(gpt);
    pool_free(pool);
    free(grads);
    one_close(&o);
    return out;
}

Test(backend, a_step_by_the_table_is_a_step_by_hand, .init = begin)
{
    struct update_info wanted;
    struct bits expected = by_hand(2, &wanted);
    for (int which = 0; which < BACKENDS; which++)
        for (int threads = 1; threads <= 3; threads += 2) {
            struct one o = one_open(backends[which], threads);
            cr_assert_eq(step(&o, in_order).step, 1);
            struct backend_info info = step(&o, threads > 1 ? backwards : in_order);
            cr_assert_eq(info.step, 2);
            cr_assert_eq(info.loss, wanted.loss);
            cr_assert_gt(info.norm, 0);
            cr_assert_eq(info.norm, wanted.norm);
            cr_assert_eq(info.clip, wanted.clip);
            cr_assert_eq(info.rate, wanted.rate);
            cr_assert(info.clip > 0 && info.clip <= 1 && info.rate > 0);
            cr_assert(same(bits_of(o.state), expected), "backend %d with %d threads", which, threads);
            one_close(&o);
        }
}

Test(backend, a_pass_that_is_given_up_leaves_the_next_one_as_it_would_be, .init = begin)
{
    struct update_info ignored;
    struct bits expected = by_hand(1, &ignored);
    for (int which = 0; which < BACKENDS; which++) {
        struct one o = one_open(backends[which], 1);
        struct error err = {0};
        struct backend_sums sums;
        atomic_int stop = 1;
        int32_t wrong[TOKENS] = {VOCABULARY};
        cr_assert_eq(o.ops->weights(o.b, params_of(&o), NULL), 0);
        pass(&o, backwards, NULL, &sums);
        cr_assert_eq(o.ops->begin(o.b, &(struct backend_pass){.world = 1}, NULL), 0);
        cr_assert_eq(o.ops->lane(o.b, 0, tokens_of(0), &stop, &err), -1);
        cr_assert_eq(err.code, ERR_ABORTED);
        cr_assert_eq(o.ops->lane(o.b, 0, wrong, NULL, &err), -1);
        cr_assert_eq(err.code, ERR_DATA, "%s", err.text);
        step(&o, in_order);
        cr_assert(same(bits_of(o.state), expected), "backend %d", which);
        one_close(&o);
    }
}

/* The update of one is received by another, who lacks it: check, then finish. */
static void give_update(struct one *from, struct one *to)
{
    struct state_update kept, got;
    cr_assert(state_kept(from->state, &kept));
    state_update_receive_begin(to->state, &got);
    uint32_t *words = malloc((size_t)kept.words_count * sizeof *words);
    cr_assert_eq(memory_read(kept.in, words, kept.words, (size_t)kept.words_count * sizeof *words, NULL), 0);
    cr_assert_eq(memory_write(got.in, got.words, words, (size_t)kept.words_count * sizeof *words, NULL), 0);
    memcpy(got.header, kept.header, (size_t)kept.header_count * sizeof *got.header);
    memcpy(got.k, kept.k, (size_t)layout.tensors * sizeof *got.k);
    free(words);
}

Test(backend, an_update_that_was_received_is_checked_and_then_finished, .init = begin)
{
    for (int which = 0; which < BACKENDS * BACKENDS; which++) {
        struct one source = one_open(backends[which / BACKENDS], 1),
                   o = one_open(backends[which % BACKENDS], 1);
        struct state_point wanted, other;
        struct error err = {0};
        step(&source, in_order);
        cr_assert(state_holds(source.state, &wanted));
        other = wanted;
        other.lineage[0] ^= 1;
        struct bits before = bits_of(o.state);
        give_update(&source, &o);
        cr_assert_eq(o.ops->check(o.b, &other, &err), -1);
        cr_assert_eq(err.code, ERR_PROTOCOL);
        cr_assert(same(bits_of(o.state), before));
        cr_assert_eq(o.ops->check(o.b, &wanted, &err), 0, "%s", err.text);
        cr_assert_eq(state_update_receive_end(o.state, wanted.step, &err), 0);
        cr_assert(state_pending(o.state));
        cr_assert_eq(o.ops->finish(o.b, &err), 0);
        cr_assert(same(bits_of(o.state), bits_of(source.state)), "pair %d", which);
        one_close(&source);
        one_close(&o);
    }
}

Test(backend, what_runs_forward_only_says_what_the_model_says, .init = begin)
{
    struct pool *pool;
    struct gpt *gpt;
    const struct gpt_options options = {.sequences = SEQUENCES, .isa = "Auto"};
    float *params = first_weights(), *own = malloc(bytes_of()), expected[SEQUENCES], losses[SEQUENCES],
          logits[2][VOCABULARY];
    char fingerprint[2][RM_FINGERPRINT_MAX];
    cr_assert_eq(pool_open(&pool, 1, NULL), 0);
    cr_assert_eq(gpt_open(&gpt, &layout, &options, pool, NULL), 0);
    gpt_weights_changed(gpt, params);
    cr_assert_eq(gpt_losses(gpt, params, tokens_of(0), SEQUENCES, expected, NULL, NULL), 0);
    gpt_next_logits(gpt, params, tokens_of(0), 5, logits[0]);
    gpt_fingerprint("Auto", GPT_FP32, fingerprint[0]);
    for (int which = 0; which < BACKENDS; which++) {
        struct one o = one_open(backends[which], 1);
        o.ops->warm_up(o.b, params_of(&o));
        cr_assert_eq(o.ops->weights(o.b, params_of(&o), NULL), 0);
        cr_assert_eq(o.ops->losses(o.b, tokens_of(0), SEQUENCES, losses, NULL, NULL), 0);
        cr_assert_eq(memcmp(losses, expected, sizeof losses), 0);
        cr_assert_eq(o.ops->logits(o.b, tokens_of(0), 5, 0, logits[1], NULL), 0);
        cr_assert_eq(memcmp(logits[0], logits[1], sizeof logits[0]), 0);
        cr_assert_eq(o.ops->logits(o.b, tokens_of(0), 4, 0, logits[1], NULL), 0);
        cr_assert_eq(o.ops->logits(o.b, tokens_of(0), 5, 4, logits[1], NULL), 0);
        for (int v = 0; v < VOCABULARY; v++)
            cr_assert_float_eq(logits[1][v], logits[0][v], 1e-4,
                               "one more token, behind those that are known");
        o.ops->fingerprint(o.b, fingerprint[1]);
        cr_assert_str_eq(fingerprint[1], fingerprint[0]);
        cr_assert_eq(o.ops->init(o.b, SEED, own, NULL), 0);
        cr_assert_eq(memcmp(own, params, bytes_of()), 0);
        one_close(&o);
    }
    gpt_free(gpt);
    pool_free(pool);
    free(own);
    free(params);
}

static struct bits probe_of(open_backend *open, int threads, bool bf16)
{
    const struct backend_options options = {
        .layout = &layout, .sequences = 1, .threads = threads, .isa = "Auto", .bf16 = bf16};
    struct backend *b;
    struct bits out;
    struct error err = {0};
    cr_assert_eq(open(&b, &options, &err), 0, "%s", err.text);
    cr_assert_eq(b->ops->probe(b, out.of, &err), 0, "%s", err.text);
    b->ops->free(b);
    return out;
}

Test(backend, a_probe_is_the_machines_and_the_precisions_and_of_nothing_else, .init = begin)
{
    struct bits probe = probe_of(backend_cpu_open, 1, false);
    cr_assert(same(probe, probe_of(backend_cpu_open, 3, false)), "threads change no bit");
    cr_assert(same(probe, probe_of(device_open, 1, false)));
    cr_assert(!same(probe, probe_of(backend_cpu_open, 1, true)), "precision does");
    const struct model_shape other = {1, 1, 16, CONTEXT, VOCABULARY};
    model_layout_init(&layout, &other);
    cr_assert(same(probe, probe_of(backend_cpu_open, 1, false)), "the job's model has no say");
}

Test(backend, a_plan_is_no_less_than_what_is_taken, .init = begin)
{
    for (int which = 0; which < BACKENDS; which++) {
        struct one o = one_open(backends[which], 1);
        struct backend_needs needs = o.ops->needs(o.b);
        cr_assert_gt(needs.lane, bytes_of());
        cr_assert_geq(needs.state, 5 * bytes_of());
        one_close(&o);
    }
}

Test(backend, large_parts_are_copied_out_and_in_to_the_last_byte, .init = begin)
{
    const struct model_shape large = {2, 2, 256, CONTEXT, 1000}; /* several pieces of a copy */
    model_layout_init(&layout, &large);
    for (int which = 0; which < BACKENDS; which++) {
        struct one o = one_open(backends[which], 2);
        size_t bytes = bytes_of() - 8;
        uint8_t *there = calloc(1, bytes + 1), *expected = (uint8_t *)first_weights();
        cr_assert_gt(bytes, (size_t)4 << 20);
        cr_assert_eq(o.ops->copy_out(o.b, there, far_add(params_of(&o), 4), bytes, NULL), 0);
        cr_assert_eq(memcmp(there, expected + 4, bytes), 0);
        cr_assert_eq(there[bytes], 0, "nothing is written behind it");
        there[0] ^= 1, there[bytes - 1] ^= 1;
        cr_assert_eq(o.ops->copy_in(o.b, far_add(params_of(&o), 4), there, bytes, NULL), 0);
        memset(expected, 0, bytes);
        cr_assert_eq(o.ops->copy_out(o.b, expected, far_add(params_of(&o), 4), bytes, NULL), 0);
        cr_assert_eq(memcmp(there, expected, bytes), 0);
        cr_assert_eq(o.ops->copy_out(o.b, there, params_of(&o), 0, NULL), 0, "nothing may be asked for");
        free(there);
        free(expected);
        one_close(&o);
    }
}
