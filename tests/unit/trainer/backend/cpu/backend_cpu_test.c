/* The contract of who computes (trainer/backend/backend.h), asked of the backend on CPUs and of the stand-in
 * for a device: a step by the table is a step by the functions behind it, to the bit. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/trainer/backend/one.h"
#include "tests/unit/trainer/backend/stand_in.h"
#include "trainer/backend/cpu/backend_cpu.h"
#include "trainer/backend/cpu/model/gpt.h"
#include "trainer/backend/cpu/sums/update.h"
#include "trainer/state/state.h"

enum { CONTEXT = 12, VOCABULARY = 100, TOKENS = ONE_SEQUENCES * (CONTEXT + 1) };

static one_opener *const backends[] = {backend_cpu_open, device_open};
enum { BACKENDS = (int)(sizeof backends / sizeof *backends) };

static struct model_layout layout;
static void begin(void)
{
    const struct model_shape shape = {2, 2, 24, CONTEXT, VOCABULARY};
    model_layout_init(&layout, &shape);
}

static struct one opened(one_opener *open, int threads)
{
    const struct backend_options options = {
        .layout = &layout, .sequences = ONE_SEQUENCES, .threads = threads, .isa = "Auto", .rule = one_rule};
    return one_open(open, &options, false);
}

static size_t bytes_of(void)
{
    return one_bytes(&layout);
}

static const int32_t *tokens_of(int lane)
{
    return one_tokens(&layout, lane);
}

/* The step by the functions behind the table. */
static struct one_bits by_hand(int steps, struct update_info *ret)
{
    struct one o = opened(backend_cpu_open, 1);
    struct lanes *l;
    struct gpt *gpt;
    struct pool *pool;
    const struct update_rule r = {one_rule.schedule, one_rule.beta1,        one_rule.beta2,
                                  one_rule.epsilon,  one_rule.weight_decay, one_rule.clip_norm};
    const struct gpt_options options = {.sequences = ONE_SEQUENCES, .isa = "Auto"};
    float *grads = malloc(bytes_of()), loss;
    cr_assert_eq(pool_open(&pool, 1, NULL), 0);
    cr_assert_eq(gpt_open(&gpt, &layout, &options, pool, NULL), 0);
    cr_assert_eq(lanes_open(&l, o.state, NULL, NULL), 0);
    for (int i = 0; i < steps; i++) {
        const float *params = memory_near(memory_here(), one_params(&o));
        struct verdict v = {.kind = VERDICT_FITS};
        struct lanes_sums sums;
        gpt_weights_changed(gpt, params);
        do {
            const struct verdict last = v;
            lanes_begin(l, &(struct lanes_pass){.tokens = ONE_SEQUENCES * CONTEXT,
                                                .k = last.kind == VERDICT_RESCALE ? last.k : NULL});
            for (int lane = 0; lane < ONE_LANES; lane++) {
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
    struct one_bits out = one_bits(&o);
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
    struct one_bits expected = by_hand(2, &wanted);
    for (int which = 0; which < BACKENDS; which++)
        for (int threads = 1; threads <= 3; threads += 2) {
            struct one o = opened(backends[which], threads);
            cr_assert_eq(one_step(&o, one_in_order).step, 1);
            struct backend_info info = one_step(&o, threads > 1 ? one_backwards : one_in_order);
            cr_assert_eq(info.step, 2);
            cr_assert_eq(info.loss, wanted.loss);
            cr_assert_gt(info.norm, 0);
            cr_assert_eq(info.norm, wanted.norm);
            cr_assert_eq(info.clip, wanted.clip);
            cr_assert_eq(info.rate, wanted.rate);
            cr_assert(info.clip > 0 && info.clip <= 1 && info.rate > 0);
            cr_assert(one_same(one_bits(&o), expected), "backend %d with %d threads", which, threads);
            one_close(&o);
        }
}

Test(backend, a_pass_that_is_given_up_leaves_the_next_one_as_it_would_be, .init = begin)
{
    struct update_info ignored;
    struct one_bits expected = by_hand(1, &ignored);
    for (int which = 0; which < BACKENDS; which++) {
        struct one o = opened(backends[which], 1);
        struct error err = {0};
        struct backend_sums sums;
        atomic_int stop = 1;
        int32_t wrong[TOKENS] = {VOCABULARY};
        cr_assert_eq(o.ops->weights(o.b, one_params(&o), NULL), 0);
        one_pass(&o, one_backwards, NULL, &sums);
        cr_assert_eq(o.ops->begin(o.b, &(struct backend_pass){.world = 1}, NULL), 0);
        cr_assert_eq(o.ops->lane(o.b, 0, tokens_of(0), &stop, &err), -1);
        cr_assert_eq(err.code, ERR_ABORTED);
        cr_assert_eq(o.ops->lane(o.b, 0, wrong, NULL, &err), -1);
        cr_assert_eq(err.code, ERR_DATA, "%s", err.text);
        one_step(&o, one_in_order);
        cr_assert(one_same(one_bits(&o), expected), "backend %d", which);
        one_close(&o);
    }
}

Test(backend, an_update_that_was_received_is_checked_and_then_finished, .init = begin)
{
    for (int which = 0; which < BACKENDS * BACKENDS; which++) {
        struct one source = opened(backends[which / BACKENDS], 1), o = opened(backends[which % BACKENDS], 1);
        struct state_point wanted, other;
        struct error err = {0};
        one_step(&source, one_in_order);
        cr_assert(state_holds(source.state, &wanted));
        other = wanted;
        other.lineage[0] ^= 1;
        struct one_bits before = one_bits(&o);
        one_give_update(&source, &o);
        cr_assert_eq(o.ops->check(o.b, &other, &err), -1);
        cr_assert_eq(err.code, ERR_PROTOCOL);
        cr_assert(one_same(one_bits(&o), before));
        cr_assert_eq(o.ops->check(o.b, &wanted, &err), 0, "%s", err.text);
        cr_assert_eq(state_update_receive_end(o.state, wanted.step, &err), 0);
        cr_assert(state_pending(o.state));
        cr_assert_eq(o.ops->finish(o.b, &err), 0);
        cr_assert(one_same(one_bits(&o), one_bits(&source)), "pair %d", which);
        one_close(&source);
        one_close(&o);
    }
}

Test(backend, what_runs_forward_only_says_what_the_model_says, .init = begin)
{
    struct pool *pool;
    struct gpt *gpt;
    const struct gpt_options options = {.sequences = ONE_SEQUENCES, .isa = "Auto"};
    float *params = one_first_weights(&layout), *own = malloc(bytes_of()), expected[ONE_SEQUENCES],
          losses[ONE_SEQUENCES], logits[2][VOCABULARY];
    char fingerprint[2][RM_FINGERPRINT_MAX];
    cr_assert_eq(pool_open(&pool, 1, NULL), 0);
    cr_assert_eq(gpt_open(&gpt, &layout, &options, pool, NULL), 0);
    gpt_weights_changed(gpt, params);
    cr_assert_eq(gpt_losses(gpt, params, tokens_of(0), ONE_SEQUENCES, expected, NULL, NULL), 0);
    gpt_next_logits(gpt, params, tokens_of(0), 5, logits[0]);
    gpt_fingerprint("Auto", GPT_FP32, fingerprint[0]);
    for (int which = 0; which < BACKENDS; which++) {
        struct one o = opened(backends[which], 1);
        o.ops->warm_up(o.b, one_params(&o));
        cr_assert_eq(o.ops->weights(o.b, one_params(&o), NULL), 0);
        cr_assert_eq(o.ops->losses(o.b, tokens_of(0), ONE_SEQUENCES, losses, NULL, NULL), 0);
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
        cr_assert_eq(o.ops->init(o.b, ONE_SEED, own, NULL), 0);
        cr_assert_eq(memcmp(own, params, bytes_of()), 0);
        one_close(&o);
    }
    gpt_free(gpt);
    pool_free(pool);
    free(own);
    free(params);
}

static struct one_bits probe_of(one_opener *open, int threads, bool bf16)
{
    const struct backend_options options = {
        .layout = &layout, .sequences = 1, .threads = threads, .isa = "Auto", .bf16 = bf16};
    struct backend *b;
    struct one_bits out;
    struct error err = {0};
    cr_assert_eq(open(&b, &options, &err), 0, "%s", err.text);
    cr_assert_eq(b->ops->probe(b, out.of, &err), 0, "%s", err.text);
    b->ops->free(b);
    return out;
}

Test(backend, a_probe_is_the_machines_and_the_precisions_and_of_nothing_else, .init = begin)
{
    struct one_bits probe = probe_of(backend_cpu_open, 1, false);
    cr_assert(one_same(probe, probe_of(backend_cpu_open, 3, false)), "threads change no bit");
    cr_assert(one_same(probe, probe_of(device_open, 1, false)));
    cr_assert(!one_same(probe, probe_of(backend_cpu_open, 1, true)), "precision does");
    const struct model_shape other = {1, 1, 16, CONTEXT, VOCABULARY};
    model_layout_init(&layout, &other);
    cr_assert(one_same(probe, probe_of(backend_cpu_open, 1, false)), "the job's model has no say");
}

Test(backend, a_plan_is_no_less_than_what_is_taken, .init = begin)
{
    for (int which = 0; which < BACKENDS; which++) {
        struct one o = opened(backends[which], 1);
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
        struct one o = opened(backends[which], 2);
        size_t bytes = bytes_of() - 8;
        uint8_t *there = calloc(1, bytes + 1), *expected = (uint8_t *)one_first_weights(&layout);
        cr_assert_gt(bytes, (size_t)4 << 20);
        cr_assert_eq(o.ops->copy_out(o.b, there, far_add(one_params(&o), 4), bytes, NULL), 0);
        cr_assert_eq(memcmp(there, expected + 4, bytes), 0);
        cr_assert_eq(there[bytes], 0, "nothing is written behind it");
        there[0] ^= 1, there[bytes - 1] ^= 1;
        cr_assert_eq(o.ops->copy_in(o.b, far_add(one_params(&o), 4), there, bytes, NULL), 0);
        memset(expected, 0, bytes);
        cr_assert_eq(o.ops->copy_out(o.b, expected, far_add(one_params(&o), 4), bytes, NULL), 0);
        cr_assert_eq(memcmp(there, expected, bytes), 0);
        cr_assert_eq(o.ops->copy_out(o.b, there, one_params(&o), 0, NULL), 0, "nothing may be asked for");
        free(there);
        free(expected);
        one_close(&o);
    }
}
