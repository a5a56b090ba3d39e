/* The contract of who computes (trainer/backend/backend.h), asked of the backend on a GPU: words, norm,
 * update and lineage are, bit for bit, what the CPU's sums make of the same gradients; in whatever order the
 * stand-in does its work. */
#include "trainer/backend/cuda/gpu/backend_gpu.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/prng.h"
#include "common/base/str.h"
#include "common/os/crypto.h"
#include "common/os/file.h"
#include "gpu_case.h"
#include "trainer/backend/cpu/backend_cpu.h"
#include "trainer/backend/cpu/model/gpt.h"
#include "trainer/backend/cpu/sums/update.h"
#include "trainer/backend/cuda/gpu/gpu_parts.h"
#include "trainer/state/state.h"

#define LABEL "Stand-in GPU GPU-5eed0000-0000-0000-0000-000000000000"

enum { LANES = 3, SEQUENCES = 2, CONTEXT = 5, VOCABULARY = 13, TOKENS = SEQUENCES * (CONTEXT + 1), SEED = 7 };

static struct model_layout layout;
static const struct model_shape tiny = {
    .layers = 1, .heads = 2, .width = 16, .context = CONTEXT, .vocabulary = VOCABULARY};
static const struct backend_rule rule = {.schedule = {.rate = 1e-2, .steps = 10},
                                         .beta1 = 0.9,
                                         .beta2 = 0.95,
                                         .epsilon = 1e-8,
                                         .weight_decay = 0.1,
                                         .clip_norm = 1};

static void prepare(void)
{
    model_layout_init(&layout, &tiny);
    setenv("RINGMASTER_CUBLASLT_LIBRARY", STANDIN_CUBLASLT, 1);
}

static struct backend_options wished(void)
{
    return (struct backend_options){
        .layout = &layout, .sequences = SEQUENCES, .threads = 1, .isa = "Auto", .bf16 = true, .rule = rule};
}

static int open_gpu(struct backend **ret, const struct backend_options *options, struct error *err)
{
    const struct backend_gpu_parts parts = {gpu_image, gpu_image, true};
    return backend_gpu_open_with(ret, options, &parts, err);
}

static int open_cpu_among_others(struct backend **ret, const struct backend_options *options,
                                 struct error *err)
{
    struct backend_options among = *options;
    among.mixed = true;
    return backend_cpu_open(ret, &among, err);
}

static int open_without_graphs(struct backend **ret, const struct backend_options *options, struct error *err)
{
    const struct backend_gpu_parts parts = {gpu_image, gpu_image, false};
    return backend_gpu_open_with(ret, options, &parts, err);
}

typedef int open_backend(struct backend **ret, const struct backend_options *options, struct error *err);

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
    GPU_OK(o->ops->copy_in(o->b, params_of(o), params, bytes_of(), &gpu_err));
    GPU_OK(state_zero_moments(o->state, &gpu_err));
    GPU_OK(state_receive_end(o->state, &point, &gpu_err));
}

static struct one one_open(open_backend *open, const char *script, bool fast)
{
    const struct backend_options options = wished();
    struct state_shape shape = {.layout = &layout, .lanes = LANES, .fast = fast};
    struct one o = {.fd = -1};
    float *params = first_weights();
    gpu_script(script);
    GPU_OK(open(&o.b, &options, &gpu_err));
    o.ops = o.b->ops;
    if (o.ops->memory)
        GPU_OK(o.ops->memory(o.b, state_bulk_bytes(&shape), &shape.in, &shape.at, &gpu_err));
    GPU_OK(file_memory(&o.fd, "state", 0, &gpu_err));
    GPU_OK(state_open(&o.state, o.fd, &shape, &gpu_err));
    GPU_OK(o.ops->attach(o.b, o.state, &gpu_err));
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

static const int in_order[LANES] = {0, 1, 2}, backwards[LANES] = {2, 1, 0};

static void pass(struct one *o, const int *order, const int32_t *k, struct backend_sums *sums)
{
    const struct backend_pass p = {.world = 1, .tokens = SEQUENCES * CONTEXT, .k = k};
    GPU_OK(o->ops->begin(o->b, &p, &gpu_err));
    for (int i = 0; i < LANES; i++)
        GPU_OK(o->ops->lane(o->b, order[i], tokens_of(order[i]), NULL, &gpu_err));
    GPU_OK(o->ops->end(o->b, 0, sums, &gpu_err));
}

/* Up to the commit. */
static void decided(struct one *o, const int *order)
{
    struct backend_sums sums;
    struct verdict v = {.kind = VERDICT_FITS};
    struct far to;
    GPU_OK(o->ops->weights(o->b, params_of(o), &gpu_err));
    do {
        const struct verdict last = v;
        pass(o, order, last.kind == VERDICT_RESCALE ? last.k : NULL, &sums);
        memcpy(sums.header_to, sums.header, (size_t)sums.header_count * sizeof *sums.header);
        o->ops->decide(o->b, &v);
    } while (v.kind == VERDICT_RESCALE);
    cr_assert_eq(v.kind, VERDICT_FITS);
    cr_assert_not(o->ops->words_to(o->b, &to), "alone, the own words are everybody's");
}

static struct backend_info step(struct one *o, const int *order)
{
    struct backend_info info;
    decided(o, order);
    GPU_OK(o->ops->commit(o->b, &info, &gpu_err));
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
        GPU_OK(memory_visit(a.in, a.array[i].at, bytes_of(), add, h, &gpu_err));
    sha256_add(h, point.lineage, sizeof point.lineage);
    sha256_finish(h, out.of);
    return out;
}

static bool same(struct bits a, struct bits b)
{
    return !memcmp(a.of, b.of, sizeof a.of);
}

/* ---- beside the CPU's sums ---- */

/* The gradient of a lane's mean loss at these weights (parameters), from a GPU that keeps no sums of it: its
 * words are fp32, stored, of scale 1. */
static float gradient(struct one *gpu, const float *params, const int32_t *tokens, float *grads)
{
    struct backend_gpu *g = gpu_of(gpu->b);
    float scale[RM_TENSORS_MAX];
    double loss;
    for (int t = 0; t < layout.tensors; t++)
        scale[t] = 1;
    const struct cuda_lane_sums sums = {gpu_address(gpu->state->words[0]),
                                        g->tables.said + offsetof(struct gpu_said, max),
                                        g->tables.said + offsetof(struct gpu_said, proof),
                                        scale,
                                        true,
                                        true};
    GPU_OK(gpu->ops->copy_in(gpu->b, params_of(gpu), params, bytes_of(), &gpu_err));
    GPU_OK(gpu->ops->weights(gpu->b, params_of(gpu), &gpu_err));
    GPU_OK(cuda_lane_run(g->lane, tokens, &sums, &loss, &gpu_err));
    GPU_OK(gpu->ops->copy_out(gpu->b, grads, far_here(gpu->state->words[0]), bytes_of(), &gpu_err));
    return (float)loss;
}

static void pass_by_hand(struct lanes *l, struct one *gpu, const float *params, const struct verdict *last,
                         struct lanes_sums *sums)
{
    float *grads = malloc(bytes_of());
    lanes_begin(l, &(struct lanes_pass){.tokens = SEQUENCES * CONTEXT,
                                        .k = last->kind == VERDICT_RESCALE ? last->k : NULL});
    for (int lane = 0; lane < LANES; lane++) {
        const float loss = gradient(gpu, params, tokens_of(lane), grads);
        lanes_add(l, lane, grads, loss);
    }
    lanes_end(l, sums);
    memcpy(sums->header_to, sums->header, (size_t)sums->header_count * sizeof *sums->header);
    free(grads);
}

/* Steps by the CPU's lanes and update, of the GPU's gradients. */
static struct bits by_hand(int steps, bool fast, struct update_info *ret)
{
    struct one cpu = one_open(backend_cpu_open, "", fast), gpu = one_open(open_without_graphs, "", false);
    const struct update_rule r = {rule.schedule, rule.beta1,        rule.beta2,
                                  rule.epsilon,  rule.weight_decay, rule.clip_norm};
    struct lanes *l;
    GPU_OK(lanes_open(&l, cpu.state, NULL, &gpu_err));
    for (int i = 0; i < steps; i++) {
        const float *params = memory_near(memory_here(), params_of(&cpu));
        struct verdict v = {.kind = VERDICT_FITS};
        struct lanes_sums sums;
        do {
            const struct verdict last = v;
            pass_by_hand(l, &gpu, params, &last, &sums);
            lanes_decide(l, &v);
        } while (v.kind == VERDICT_RESCALE);
        cr_assert_eq(v.kind, VERDICT_FITS);
        lanes_words_to(l);
        update_commit(l, &r, ret);
    }
    struct bits out = bits_of(cpu.state);
    lanes_free(l);
    one_close(&cpu);
    one_close(&gpu);
    return out;
}

static void as_by_hand(bool fast)
{
    static const char *const scripts[] = {"seed=0", "seed=1,sms=3", "seed=2", "seed=4,sms=7"};
    struct update_info wanted;
    struct bits expected = by_hand(2, fast, &wanted);
    for (int i = 0; i < 4; i++) {
        struct one o = one_open(i % 2 ? open_without_graphs : open_gpu, scripts[i], fast);
        step(&o, in_order);
        struct backend_info info = step(&o, i > 1 && !fast ? backwards : in_order);
        cr_assert_eq(info.step, 2);
        cr_assert_eq(info.loss, wanted.loss);
        cr_assert_gt(info.norm, 0);
        cr_assert_eq(info.norm, wanted.norm);
        cr_assert_eq(info.clip, wanted.clip);
        cr_assert_eq(info.rate, wanted.rate);
        cr_assert(same(bits_of(o.state), expected), "%s", scripts[i]);
        one_close(&o);
    }
}

Test(gpu, a_step_has_the_bits_of_the_cpus_sums_and_update_of_the_same_gradients, .init = prepare)
{
    as_by_hand(false);
}

Test(gpu, and_so_it_has_where_words_are_fp32, .init = prepare)
{
    as_by_hand(true);
}

/* What a rank of a world says of the state that it holds. */
static struct header_rank said_by(struct one *o, int world)
{
    const struct backend_pass p = {.world = world};
    struct backend_sums sums;
    struct header_rank said;
    GPU_OK(o->ops->begin(o->b, &p, &gpu_err));
    GPU_OK(o->ops->end(o->b, 5, &sums, &gpu_err));
    cr_assert(header_rank_read(sums.header, layout.tensors, LANES, 0, &said));
    return said;
}

/* The header's sum over a state's bits is that of the CPU, which can touch them; but for what it read at
 * rest, which is said where all ranks can. */
Test(gpu, what_a_rank_says_of_its_state_is_what_a_cpu_says_of_the_same, .init = prepare)
{
    struct one gpu = one_open(open_gpu, "seed=3", false), among = one_open(open_cpu_among_others, "", false),
               cpu = one_open(backend_cpu_open, "", false);
    for (int world = 1; world <= 2; world++) {
        struct header_rank of_gpu = said_by(&gpu, world), of_cpu = said_by(&among, world);
        cr_assert_eq(of_gpu.state_sum, of_cpu.state_sum, "world %d", world);
        cr_assert_neq(of_gpu.state_sum, 0);
        cr_assert_eq(of_gpu.flags, of_cpu.flags);
        cr_assert_eq(of_gpu.lane_us, 5);
        cr_assert_eq(said_by(&cpu, world).state_sum == of_gpu.state_sum, world == 1);
    }
    one_close(&gpu);
    one_close(&among);
    one_close(&cpu);
}

Test(gpu, a_rank_without_lanes_adds_nothing, .init = prepare)
{
    struct one o = one_open(open_gpu, "seed=2", false);
    const struct backend_pass p = {.rank = 1, .world = 2};
    struct backend_sums sums;
    uint32_t *words = malloc(bytes_of());
    step(&o, in_order);
    step(&o, in_order); /* both buffers hold words now */
    GPU_OK(o.ops->begin(o.b, &p, &gpu_err));
    GPU_OK(o.ops->end(o.b, 0, &sums, &gpu_err));
    GPU_OK(memory_read(sums.in, words, sums.words, bytes_of(), &gpu_err));
    for (int64_t i = 0; i < layout.parameters; i++)
        cr_assert_eq(words[i], 0, "word %lld", (long long)i);
    free(words);
    one_close(&o);
}

/* ---- passes that come to nothing ---- */

Test(gpu, a_pass_that_is_given_up_leaves_the_next_one_as_it_would_be, .init = prepare)
{
    struct one fresh = one_open(open_gpu, "", false), o = one_open(open_gpu, "seed=6", false);
    struct error err = {0};
    struct backend_sums sums;
    atomic_int stop = 1;
    int32_t wrong[TOKENS] = {VOCABULARY};
    step(&fresh, in_order);
    step(&o, in_order); /* from here on a pass with the state's exponents leaves words that count */
    o.ops->warm_up(o.b, params_of(&o));
    GPU_OK(o.ops->weights(o.b, params_of(&o), &gpu_err));
    pass(&o, backwards, NULL, &sums);
    GPU_OK(o.ops->begin(o.b, &(struct backend_pass){.world = 1}, &gpu_err));
    cr_assert_eq(o.ops->lane(o.b, 0, tokens_of(0), &stop, &err), -1);
    cr_assert_eq(err.code, ERR_ABORTED);
    cr_assert_eq(o.ops->lane(o.b, 0, wrong, NULL, &err), -1);
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert_str_eq(err.text, "token 13 at 0 lies outside the vocabulary of 13");
    step(&o, in_order);
    step(&fresh, in_order);
    cr_assert(same(bits_of(o.state), bits_of(fresh.state)));
    one_close(&fresh);
    one_close(&o);
}

/* ---- an update that was received ---- */

static void give_update(struct one *from, struct one *to)
{
    struct state_update kept, got;
    cr_assert(state_kept(from->state, &kept));
    state_update_receive_begin(to->state, &got);
    uint32_t *words = malloc(bytes_of());
    GPU_OK(memory_read(kept.in, words, kept.words, bytes_of(), &gpu_err));
    GPU_OK(memory_write(got.in, got.words, words, bytes_of(), &gpu_err));
    memcpy(got.header, kept.header, (size_t)kept.header_count * sizeof *got.header);
    memcpy(got.k, kept.k, (size_t)layout.tensors * sizeof *got.k);
    free(words);
}

/* Also by a CPU, which makes the same state of it. */
Test(gpu, an_update_that_was_received_is_checked_and_then_finished, .init = prepare)
{
    static open_backend *const who[] = {open_gpu, backend_cpu_open};
    for (int i = 0; i < 2; i++) {
        struct one source = one_open(open_gpu, "seed=1", false), o = one_open(who[i], "seed=2", false);
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
        GPU_OK(o.ops->check(o.b, &wanted, &gpu_err));
        GPU_OK(state_update_receive_end(o.state, wanted.step, &gpu_err));
        cr_assert(state_pending(o.state));
        GPU_OK(o.ops->finish(o.b, &gpu_err));
        cr_assert(same(bits_of(o.state), bits_of(source.state)), "receiver %d", i);
        one_close(&source);
        one_close(&o);
    }
}

/* ---- what goes wrong ---- */

/* A flipped bit of the words, as of a memory that is not sound: nothing is sealed. */
Test(gpu, words_that_are_not_what_the_lanes_made_are_not_committed, .init = prepare)
{
    struct one o = one_open(open_gpu, "", false);
    struct backend_info info;
    struct error err = {0};
    uint32_t word;
    decided(&o, in_order);
    const struct far at = far_here(o.state->words[gpu_of(o.b)->pass.to]);
    struct memory *m = o.state->in;
    struct bits before = bits_of(o.state);
    GPU_OK(memory_read(m, &word, at, sizeof word, &gpu_err));
    word ^= 1 << 9;
    GPU_OK(memory_write(m, at, &word, sizeof word, &gpu_err));
    cr_assert_eq(o.ops->commit(o.b, &info, &err), -1);
    cr_assert_eq(err.code, ERR_MACHINE);
    cr_assert_eq(err.class, CLASS_MACHINE);
    cr_assert_eq(strncmp(err.text, "the words of step 1 add up to ", 30), 0, "%s", err.text);
    cr_assert(!state_pending(o.state) && same(bits_of(o.state), before));
    one_close(&o);
}

Test(gpu, a_device_that_is_lost_in_a_pass_is_said_and_nothing_is_committed, .init = prepare)
{
    struct one o = one_open(open_gpu, "lost:kernel@40=ECC_UNCORRECTABLE", false);
    struct error err = {0};
    int failed = 0;
    const struct backend_pass p = {.world = 1};
    struct state_point point;
    failed |= o.ops->weights(o.b, params_of(&o), &err);
    failed |= o.ops->begin(o.b, &p, &err);
    for (int lane = 0; lane < LANES && !failed; lane++)
        failed |= o.ops->lane(o.b, lane, tokens_of(lane), NULL, &err);
    cr_assert(failed);
    cr_assert_eq(error_exit_code(err.code), EXIT_MACHINE);
    cr_assert(strstr(err.text, "ECC_UNCORRECTABLE"), "%s", err.text);
    cr_assert(state_holds(o.state, &point) && point.step == 0);
    one_close(&o);
}

/* ---- forward only, first weights, copies ---- */

Test(gpu, losses_are_the_cpus_within_what_bf16_rounds_and_first_weights_are_the_cpus, .init = prepare)
{
    struct one gpu = one_open(open_gpu, "seed=5", false), cpu = one_open(backend_cpu_open, "", false);
    float wanted[SEQUENCES], losses[SEQUENCES], alone, *params = first_weights(), *own = malloc(bytes_of());
    GPU_OK(cpu.ops->weights(cpu.b, params_of(&cpu), &gpu_err));
    GPU_OK(cpu.ops->losses(cpu.b, tokens_of(0), SEQUENCES, wanted, NULL, &gpu_err));
    GPU_OK(gpu.ops->weights(gpu.b, params_of(&gpu), &gpu_err));
    GPU_OK(gpu.ops->losses(gpu.b, tokens_of(0), SEQUENCES, losses, NULL, &gpu_err));
    for (int i = 0; i < SEQUENCES; i++)
        cr_assert_float_eq(losses[i], wanted[i], 0.01 * (double)wanted[i]);
    GPU_OK(gpu.ops->losses(gpu.b, tokens_of(0) + CONTEXT + 1, 1, &alone, NULL, &gpu_err));
    cr_assert_eq(alone, losses[1], "whoever comes before it has no say");
    GPU_OK(gpu.ops->init(gpu.b, SEED, own, &gpu_err));
    cr_assert_eq(memcmp(own, params, bytes_of()), 0);
    free(own);
    free(params);
    one_close(&gpu);
    one_close(&cpu);
}

/* More than one window. */
Test(gpu, large_parts_are_copied_out_and_in_to_the_last_byte, .init = prepare)
{
    const struct model_shape large = {1, 2, 256, CONTEXT, 2000};
    model_layout_init(&layout, &large);
    struct one o = one_open(open_gpu, "seed=1", false);
    const size_t bytes = bytes_of() - 8;
    uint8_t *there = calloc(1, bytes + 1), *expected = (uint8_t *)first_weights();
    cr_assert_gt(bytes, (size_t)GPU_WINDOW);
    GPU_OK(o.ops->copy_out(o.b, there, far_add(params_of(&o), 4), bytes, &gpu_err));
    cr_assert_eq(memcmp(there, expected + 4, bytes), 0);
    cr_assert_eq(there[bytes], 0, "nothing is written behind it");
    there[0] ^= 1, there[bytes - 1] ^= 1;
    GPU_OK(o.ops->copy_in(o.b, far_add(params_of(&o), 4), there, bytes, &gpu_err));
    GPU_OK(o.ops->copy_out(o.b, expected, far_add(params_of(&o), 4), bytes, &gpu_err));
    cr_assert_eq(memcmp(there, expected, bytes), 0);
    cr_assert_null(memory_near(o.state->in, params_of(&o)), "nobody here may follow its addresses");
    free(there);
    free(expected);
    one_close(&o);
}

/* ---- what it says that it is ---- */

static void fingerprint_of(const char *script, char out[RM_FINGERPRINT_MAX])
{
    struct one o = one_open(open_gpu, script, false);
    o.ops->fingerprint(o.b, out);
    one_close(&o);
}

Test(gpu, its_fingerprint_names_all_that_decides_bits, .init = prepare)
{
    char first[RM_FINGERPRINT_MAX], other[RM_FINGERPRINT_MAX], *behind;
    fingerprint_of("", first);
    cr_assert_eq(strncmp(first, "numerics ", 9), 0);
    behind = strstr(first, ", ");
    cr_assert(behind && !strncmp(behind, ", bf16, sm_90, ", 15), "%s", first);
    cr_assert(strstr(first, " processors, algorithms "), "%s", first);
    cr_assert(strstr(first, ", cuBLASLt 13."), "%s", first);
    fingerprint_of("seed=9,name=Another GPU", other);
    cr_assert_str_eq(other, first, "a product's name decides nothing");
    fingerprint_of("sms=3", other);
    cr_assert_str_neq(other, first);
    fingerprint_of("capability=10.0", other);
    cr_assert_str_neq(other, first);
}

static struct bits probe_of(const char *script)
{
    const struct backend_options options = wished();
    struct backend *b;
    struct bits out;
    gpu_script(script);
    GPU_OK(open_gpu(&b, &options, &gpu_err));
    GPU_OK(b->ops->probe(b, out.of, &gpu_err));
    b->ops->free(b);
    return out;
}

Test(gpu, a_probe_is_the_same_in_any_order_of_work_and_for_any_job, .init = prepare)
{
    struct bits probe = probe_of("seed=0");
    const struct model_shape other = {1, 1, 8, CONTEXT, 7};
    cr_assert(same(probe, probe_of("seed=3")));
    model_layout_init(&layout, &other);
    cr_assert(same(probe, probe_of("seed=1")), "the job's model has no say");
}

/* ---- refused ---- */

static void refused(const char *script, struct backend_options options, enum exit_code code,
                    const char *sentence)
{
    struct backend *b;
    struct error err = {0};
    gpu_script(script);
    cr_assert_eq(open_gpu(&b, &options, &err), -1, "%s", sentence);
    cr_assert_eq(error_exit_code(err.code), code, "%s", err.text);
    cr_assert_str_eq(err.text, sentence);
}

Test(gpu, what_a_gpu_can_not_do_yet_is_refused, .init = prepare)
{
    struct backend_options fp32 = wished(), again = wished();
    fp32.bf16 = false;
    refused("", fp32, EXIT_USAGE,
            "a GPU computes in bf16 so far: write trainer.precision: bf16, or trainer.device: cpu");
    again.recompute = true;
    refused(
        "", again, EXIT_USAGE,
        "a GPU can't compute activations again yet: leave trainer.recompute out, or write trainer.device: "
        "cpu");
}

Test(gpu, too_little_memory_is_refused_before_any_is_taken, .init = prepare)
{
    refused("memory=300M", wished(), EXIT_MACHINE,
            LABEL
            ": training needs 0.5 GiB (code and driver 0.5, workspace 0.0, undo slots 0.0 GiB), and 0.3 of "
            "0.3 are free; this model needs a GPU with more memory");
}

Test(gpu, no_driver_and_no_cublaslt_are_refused, .init = prepare)
{
    const struct backend_options options = wished();
    struct backend *b;
    struct error err = {0};
    setenv("RINGMASTER_CUBLASLT_LIBRARY", "/nowhere/libcublasLt.so.13", 1);
    gpu_script("");
    cr_assert_eq(open_gpu(&b, &options, &err), -1);
    cr_assert(strstr(err.text, "RINGMASTER_CUBLASLT_LIBRARY"), "%s", err.text);
    cr_assert_eq(error_exit_code(err.code), EXIT_MACHINE);
    setenv("RINGMASTER_CUDA_LIBRARY", "/nowhere/libcuda.so.1", 1);
    cr_assert_eq(open_gpu(&b, &options, &err), -1);
    cr_assert(strstr(err.text, "no NVIDIA driver"), "%s", err.text);
    cr_assert_eq(error_exit_code(err.code), EXIT_MACHINE);
}

/* ---- memory ---- */

Test(gpu, what_it_takes_is_what_it_says_it_will, .init = prepare)
{
    struct one o = one_open(open_gpu, "", false);
    const struct backend_gpu *g = gpu_of(o.b);
    const struct cuda_needs *n = &g->needs;
    const size_t state = (size_t)(n->bytes[CUDA_NEEDS_STATE] + n->bytes[CUDA_NEEDS_WORDS] +
                                  n->bytes[CUDA_NEEDS_UNDO]),
                 own = g->bulk.bytes + g->tables.memory.bytes, rounded = 3 * g->device->granularity;
    struct str out = str_init(4096);
    cr_assert_leq(own, state + rounded);
    cr_assert_geq(own, state);
    backend_gpu_report(o.b, &out);
    cr_assert(strstr(str_text(&out), " MiB  in all\n"));
    cr_assert_eq(strncmp(backend_gpu_name(o.b), LABEL ", cuBLASLt 13.", strlen(LABEL) + 14), 0, "%s",
                 backend_gpu_name(o.b));
    str_clear(&out);
    one_close(&o);
}
