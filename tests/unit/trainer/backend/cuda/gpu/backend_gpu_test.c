/* The contract of who computes (trainer/backend/backend.h), asked of the backend on a GPU: words, norm,
 * update and lineage are, bit for bit, what the CPU's sums make of the same gradients; in whatever order the
 * stand-in does its work. */
#include "trainer/backend/cuda/gpu/backend_gpu.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "gpu_case.h"
#include "tests/unit/trainer/backend/one.h"
#include "trainer/backend/cpu/backend_cpu.h"
#include "trainer/backend/cpu/sums/update.h"
#include "trainer/backend/cuda/gpu/gpu_parts.h"
#include "trainer/state/state.h"

#define LABEL "Stand-in GPU GPU-5eed0000-0000-0000-0000-000000000000"

enum { CONTEXT = 5, VOCABULARY = 13, TOKENS = ONE_SEQUENCES * (CONTEXT + 1) };

static struct model_layout layout;
static const struct model_shape tiny = {
    .layers = 1, .heads = 2, .width = 16, .context = CONTEXT, .vocabulary = VOCABULARY};
static void prepare(void)
{
    model_layout_init(&layout, &tiny);
    gpu_blas_at(STANDIN_CUBLASLT);
}

static struct backend_options wished(void)
{
    return (struct backend_options){.layout = &layout,
                                    .sequences = ONE_SEQUENCES,
                                    .threads = 1,
                                    .isa = "Auto",
                                    .bf16 = true,
                                    .rule = one_rule};
}

static int open_gpu(struct backend **ret, const struct backend_options *options, struct error *err)
{
    const struct backend_gpu_parts parts = {on_gpu_image("exact"), on_gpu_image("model"), true};
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
    const struct backend_gpu_parts parts = {on_gpu_image("exact"), on_gpu_image("model"), false};
    return backend_gpu_open_with(ret, options, &parts, err);
}

static struct one opened(one_opener *open, const char *script, bool fast)
{
    const struct backend_options options = wished();
    gpu_script(script);
    return one_open(open, &options, fast);
}

static size_t bytes_of(void)
{
    return one_bytes(&layout);
}

static const int32_t *tokens_of(int lane)
{
    return one_tokens(&layout, lane);
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
    GPU_OK(gpu->ops->copy_in(gpu->b, one_params(gpu), params, bytes_of(), &gpu_err));
    GPU_OK(gpu->ops->weights(gpu->b, one_params(gpu), &gpu_err));
    GPU_OK(cuda_lane_run(g->lane, tokens, &sums, &loss, &gpu_err));
    GPU_OK(gpu->ops->copy_out(gpu->b, grads, far_here(gpu->state->words[0]), bytes_of(), &gpu_err));
    return (float)loss;
}

static void pass_by_hand(struct lanes *l, struct one *gpu, const float *params, const struct verdict *last,
                         struct lanes_sums *sums)
{
    float *grads = malloc(bytes_of());
    lanes_begin(l, &(struct lanes_pass){.tokens = ONE_SEQUENCES * CONTEXT,
                                        .k = last->kind == VERDICT_RESCALE ? last->k : NULL});
    for (int lane = 0; lane < ONE_LANES; lane++) {
        const float loss = gradient(gpu, params, tokens_of(lane), grads);
        lanes_add(l, lane, grads, loss);
    }
    lanes_end(l, sums);
    memcpy(sums->header_to, sums->header, (size_t)sums->header_count * sizeof *sums->header);
    free(grads);
}

/* Steps by the CPU's lanes and update, of the GPU's gradients. */
static struct one_bits by_hand(int steps, bool fast, struct update_info *ret)
{
    struct one cpu = opened(backend_cpu_open, "", fast), gpu = opened(open_without_graphs, "", false);
    const struct update_rule r = {one_rule.schedule, one_rule.beta1,        one_rule.beta2,
                                  one_rule.epsilon,  one_rule.weight_decay, one_rule.clip_norm};
    struct lanes *l;
    GPU_OK(lanes_open(&l, cpu.state, NULL, &gpu_err));
    for (int i = 0; i < steps; i++) {
        const float *params = memory_near(memory_here(), one_params(&cpu));
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
    struct one_bits out = one_bits(&cpu);
    lanes_free(l);
    one_close(&cpu);
    one_close(&gpu);
    return out;
}

static void as_by_hand(bool fast)
{
    static const char *const scripts[] = {"seed=0", "seed=1,sms=3", "seed=2", "seed=4,sms=7"};
    struct update_info wanted;
    struct one_bits expected = by_hand(2, fast, &wanted);
    for (int i = 0; i < 4; i++) {
        struct one o = opened(i % 2 ? open_without_graphs : open_gpu, scripts[i], fast);
        one_step(&o, one_in_order);
        struct backend_info info = one_step(&o, i > 1 && !fast ? one_backwards : one_in_order);
        cr_assert_eq(info.step, 2);
        cr_assert_eq(info.loss, wanted.loss);
        cr_assert_gt(info.norm, 0);
        cr_assert_eq(info.norm, wanted.norm);
        cr_assert_eq(info.clip, wanted.clip);
        cr_assert_eq(info.rate, wanted.rate);
        cr_assert(one_same(one_bits(&o), expected), "%s", scripts[i]);
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
    const struct backend_pass p = {.world = world, .tokens = 1 << 20}; /* so many that all weights are read */
    struct backend_sums sums;
    struct header_rank said;
    GPU_OK(o->ops->begin(o->b, &p, &gpu_err));
    GPU_OK(o->ops->end(o->b, 5, &sums, &gpu_err));
    cr_assert(header_rank_read(sums.header, layout.tensors, ONE_LANES, 0, &said));
    return said;
}

/* The header's sum over a state's bits is that of the CPU, which can touch them; but for what it read at
 * rest, which is said where all ranks can. */
Test(gpu, what_a_rank_says_of_its_state_is_what_a_cpu_says_of_the_same, .init = prepare)
{
    struct one gpu = opened(open_gpu, "seed=3", false), among = opened(open_cpu_among_others, "", false),
               cpu = opened(backend_cpu_open, "", false);
    struct error err = {0};
    for (int world = 1; world <= 2; world++) {
        struct header_rank of_gpu = said_by(&gpu, world), of_cpu = said_by(&among, world);
        cr_assert_eq(of_gpu.state_sum, of_cpu.state_sum, "world %d", world);
        cr_assert_neq(of_gpu.state_sum, 0);
        cr_assert_eq(of_gpu.flags, of_cpu.flags);
        cr_assert_eq(of_gpu.lane_us, 5);
        cr_assert_eq(said_by(&cpu, world).state_sum == of_gpu.state_sum, world == 1);
    }
    for (int steps = 0; steps < 2; steps++) { /* of a state that no pass has seen, and of one that was made */
        struct one fresh = opened(open_gpu, "seed=3", false), here = opened(backend_cpu_open, "", false);
        uint64_t of_gpu = 0, of_cpu = 0;
        for (int i = 0; i < steps; i++)
            cr_assert_eq(said_by(&fresh, 1).state_sum, said_by(&here, 1).state_sum);
        cr_assert_eq(fresh.ops->image_sum(fresh.b, &of_gpu, &err), 0, "%s", err.text);
        cr_assert_eq(here.ops->image_sum(here.b, &of_cpu, &err), 0);
        cr_assert(of_gpu && of_gpu == of_cpu, "after %d passes", steps);
        one_close(&fresh);
        one_close(&here);
    }
    one_close(&gpu);
    one_close(&among);
    one_close(&cpu);
}

Test(gpu, a_rank_without_lanes_adds_nothing, .init = prepare)
{
    struct one o = opened(open_gpu, "seed=2", false);
    const struct backend_pass p = {.rank = 1, .world = 2};
    struct backend_sums sums;
    uint32_t *words = malloc(bytes_of());
    one_step(&o, one_in_order);
    one_step(&o, one_in_order); /* both buffers hold words now */
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
    struct one fresh = opened(open_gpu, "", false), o = opened(open_gpu, "seed=6", false);
    struct error err = {0};
    struct backend_sums sums;
    atomic_int stop = 1;
    int32_t wrong[TOKENS] = {VOCABULARY};
    one_step(&fresh, one_in_order);
    one_step(&o, one_in_order); /* from here on a pass with the state's exponents leaves words that count */
    o.ops->warm_up(o.b, one_params(&o));
    GPU_OK(o.ops->weights(o.b, one_params(&o), &gpu_err));
    one_pass(&o, one_backwards, NULL, &sums);
    GPU_OK(o.ops->begin(o.b, &(struct backend_pass){.world = 1}, &gpu_err));
    cr_assert_eq(o.ops->lane(o.b, 0, tokens_of(0), &stop, &err), -1);
    cr_assert_eq(err.code, ERR_ABORTED);
    cr_assert_eq(o.ops->lane(o.b, 0, wrong, NULL, &err), -1);
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert_str_eq(err.text, "token 13 at 0 lies outside the vocabulary of 13");
    one_step(&o, one_in_order);
    one_step(&fresh, one_in_order);
    cr_assert(one_same(one_bits(&o), one_bits(&fresh)));
    one_close(&fresh);
    one_close(&o);
}

/* ---- an update that was received ---- */

/* Also by a CPU, which makes the same state of it. */
Test(gpu, an_update_that_was_received_is_checked_and_then_finished, .init = prepare)
{
    static one_opener *const who[] = {open_gpu, backend_cpu_open};
    for (int i = 0; i < 2; i++) {
        struct one source = opened(open_gpu, "seed=1", false), o = opened(who[i], "seed=2", false);
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
        GPU_OK(o.ops->check(o.b, &wanted, &gpu_err));
        GPU_OK(state_update_receive_end(o.state, wanted.step, &gpu_err));
        cr_assert(state_pending(o.state));
        GPU_OK(o.ops->finish(o.b, &gpu_err));
        cr_assert(one_same(one_bits(&o), one_bits(&source)), "receiver %d", i);
        one_close(&source);
        one_close(&o);
    }
}

/* ---- what goes wrong ---- */

/* A flipped bit of the words, as of a memory that is not sound: nothing is sealed. */
Test(gpu, words_that_are_not_what_the_lanes_made_are_not_committed, .init = prepare)
{
    struct one o = opened(open_gpu, "", false);
    struct backend_info info;
    struct error err = {0};
    uint32_t word;
    one_decided(&o, one_in_order);
    const struct far at = far_here(o.state->words[gpu_of(o.b)->pass.to]);
    struct memory *m = o.state->in;
    struct one_bits before = one_bits(&o);
    GPU_OK(memory_read(m, &word, at, sizeof word, &gpu_err));
    word ^= 1 << 9;
    GPU_OK(memory_write(m, at, &word, sizeof word, &gpu_err));
    cr_assert_eq(o.ops->commit(o.b, &info, &err), -1);
    cr_assert_eq(err.code, ERR_MACHINE);
    cr_assert_eq(err.class, CLASS_MACHINE);
    cr_assert_eq(strncmp(err.text, "the words of step 1 add up to ", 30), 0, "%s", err.text);
    cr_assert(!state_pending(o.state) && one_same(one_bits(&o), before));
    one_close(&o);
}

Test(gpu, a_device_that_is_lost_in_a_pass_is_said_and_nothing_is_committed, .init = prepare)
{
    GPU_BY_SCRIPT();
    struct one o = opened(open_gpu, "lost:kernel@40=ECC_UNCORRECTABLE", false);
    struct error err = {0};
    int failed = 0;
    const struct backend_pass p = {.world = 1};
    struct state_point point;
    failed |= o.ops->weights(o.b, one_params(&o), &err);
    failed |= o.ops->begin(o.b, &p, &err);
    for (int lane = 0; lane < ONE_LANES && !failed; lane++)
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
    struct one gpu = opened(open_gpu, "seed=5", false), cpu = opened(backend_cpu_open, "", false);
    float wanted[ONE_SEQUENCES], losses[ONE_SEQUENCES], alone, *params = one_first_weights(&layout),
                                                               *own = malloc(bytes_of());
    GPU_OK(cpu.ops->weights(cpu.b, one_params(&cpu), &gpu_err));
    GPU_OK(cpu.ops->losses(cpu.b, tokens_of(0), ONE_SEQUENCES, wanted, NULL, &gpu_err));
    GPU_OK(gpu.ops->weights(gpu.b, one_params(&gpu), &gpu_err));
    GPU_OK(gpu.ops->losses(gpu.b, tokens_of(0), ONE_SEQUENCES, losses, NULL, &gpu_err));
    for (int i = 0; i < ONE_SEQUENCES; i++)
        cr_assert_float_eq(losses[i], wanted[i], 0.01 * (double)wanted[i]);
    GPU_OK(gpu.ops->losses(gpu.b, tokens_of(0) + CONTEXT + 1, 1, &alone, NULL, &gpu_err));
    cr_assert_eq(alone, losses[1], "whoever comes before it has no say");
    GPU_OK(gpu.ops->init(gpu.b, ONE_SEED, own, &gpu_err));
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
    struct one o = opened(open_gpu, "seed=1", false);
    const size_t bytes = bytes_of() - 8;
    uint8_t *there = calloc(1, bytes + 1), *expected = (uint8_t *)one_first_weights(&layout);
    cr_assert_gt(bytes, (size_t)GPU_WINDOW);
    GPU_OK(o.ops->copy_out(o.b, there, far_add(one_params(&o), 4), bytes, &gpu_err));
    cr_assert_eq(memcmp(there, expected + 4, bytes), 0);
    cr_assert_eq(there[bytes], 0, "nothing is written behind it");
    there[0] ^= 1, there[bytes - 1] ^= 1;
    GPU_OK(o.ops->copy_in(o.b, far_add(one_params(&o), 4), there, bytes, &gpu_err));
    GPU_OK(o.ops->copy_out(o.b, expected, far_add(one_params(&o), 4), bytes, &gpu_err));
    cr_assert_eq(memcmp(there, expected, bytes), 0);
    cr_assert_null(memory_near(o.state->in, one_params(&o)), "nobody here may follow its addresses");
    free(there);
    free(expected);
    one_close(&o);
}

/* ---- what it says that it is ---- */

static void fingerprint_of(const char *script, char out[RM_FINGERPRINT_MAX])
{
    struct one o = opened(open_gpu, script, false);
    o.ops->fingerprint(o.b, out);
    one_close(&o);
}

Test(gpu, its_fingerprint_names_all_that_decides_bits, .init = prepare)
{
    GPU_BY_SCRIPT();
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

static struct one_bits probe_of(const char *script)
{
    const struct backend_options options = wished();
    struct backend *b;
    struct one_bits out;
    gpu_script(script);
    GPU_OK(open_gpu(&b, &options, &gpu_err));
    GPU_OK(b->ops->probe(b, out.of, &gpu_err));
    b->ops->free(b);
    return out;
}

static struct one_bits probe_for(int heads, int width, const char *script)
{
    const struct model_shape shape = {1, heads, width, CONTEXT, 7};
    model_layout_init(&layout, &shape);
    return probe_of(script);
}

Test(gpu, a_probe_is_the_same_in_any_order_of_work_and_for_any_job_with_such_heads, .init = prepare)
{
    struct one_bits probe = probe_for(2, 64, "seed=0");
    cr_assert(one_same(probe, probe_for(2, 64, "seed=3")));
    cr_assert(one_same(probe, probe_for(1, 32, "seed=1")), "of the job's model its heads' width has a say");
    cr_assert_not(one_same(probe, probe_for(1, 40, "seed=1")));
}

/* 3 % of each tensor's length is enough for bf16, whatever heads a job has. */
Test(gpu, a_probe_passes_with_heads_of_any_width, .init = prepare)
{
    static const struct {
        int heads, width;
    } jobs[] = {{8, 8}, {1, 8}, {2, 40}, {1, 80}, {1, 128}};
    GPU_BY_SCRIPT();
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
        probe_for(jobs[i].heads, jobs[i].width, "seed=1");
}

/* One kernel that does nothing once; which tensor shows it is another matter. */
static void probe_fails(const char *script)
{
    const struct backend_options options = wished();
    struct backend *b;
    struct one_bits out;
    struct error err = {0};
    gpu_script(script);
    GPU_OK(open_gpu(&b, &options, &gpu_err));
    cr_assert_eq(b->ops->probe(b, out.of, &err), -1, "%s", script);
    cr_assert_not_null(strstr(err.text, "computes something else than a CPU ("), "%s: %s", script, err.text);
    cr_assert_not_null(strstr(err.text, "train with trainer.device: cpu"), "%s: %s", script, err.text);
    cr_assert_eq(err.code, ERR_MACHINE);
    b->ops->free(b);
}

/* Heads wider than 64 have kernels of their own, which those of 64 say nothing of. */
Test(gpu, one_that_computes_attention_of_wide_heads_wrongly_is_refused_where_a_job_has_them, .init = prepare)
{
    static const char *const kernels[] = {"attend_128", "attend_keys_128", "attend_queries_128"};
    const struct model_shape wide = {1, 1, 80, CONTEXT, 7};
    char script[64];
    GPU_BY_SCRIPT();
    model_layout_init(&layout, &wide);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        snprintf(script, sizeof script, "seed=1,skip:%s@1", kernels[i]);
        probe_fails(script);
    }
}

Test(gpu, one_that_computes_something_else_than_a_cpu_is_refused_by_its_probe, .init = prepare)
{
    static const char *const kernels[] = {"attend_64", "attend_keys_64", "attend_queries_64", "classify",
                                          "columns",   "embed",          "embed_tokens",      "gelu",
                                          "gelu_back", "norm_rows",      "norm_back"};
    char script[64];
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        snprintf(script, sizeof script, "seed=1,skip:%s@1", kernels[i]);
        probe_fails(script);
    }
}

/* ---- activations computed again ---- */

static struct backend_options wished_again(void)
{
    static const struct model_shape deep = {
        .layers = 3, .heads = 2, .width = 16, .context = CONTEXT, .vocabulary = VOCABULARY};
    struct backend_options options = wished();
    model_layout_init(&layout, &deep);
    options.recompute = true;
    return options;
}

/* So much memory that this is kept, and no byte more; the stand-in takes some for itself. */
enum { STANDIN_TAKES = 16 << 20 };
static const char *memory_for(const struct backend_options *options, enum cuda_keep keep)
{
    static char script[64];
    const struct cuda_needs_shape shape = {.layout = options->layout,
                                           .lane_sequences = options->sequences,
                                           .slots = STATE_THREADS_MAX,
                                           .keep = keep};
    struct cuda_needs needs;
    cuda_needs_make(&needs, &shape);
    snprintf(script, sizeof script, "seed=4,memory=%lld", (long long)needs.total + STANDIN_TAKES);
    return script;
}

/* Two steps where this is kept. */
static struct one_bits two_steps(one_opener *open, const struct backend_options *options, enum cuda_keep keep)
{
    gpu_script(memory_for(options, keep));
    struct one o = one_open(open, options, false);
    cr_assert_eq(gpu_of(o.b)->needs.keep, keep);
    one_step(&o, one_in_order);
    one_step(&o, one_in_order);
    struct one_bits bits = one_bits(&o);
    one_close(&o);
    return bits;
}

Test(gpu, what_is_computed_again_is_chosen_by_the_memory_and_changes_no_bit, .init = prepare)
{
    GPU_BY_SCRIPT();
    const struct backend_options again = wished_again();
    struct backend_options kept = again;
    kept.recompute = false;
    const struct one_bits wanted = two_steps(open_gpu, &kept, CUDA_KEEP_ALL);
    for (int keep = CUDA_KEEP_PRODUCTS; keep <= CUDA_KEEP_INPUTS; keep++) {
        cr_assert(one_same(wanted, two_steps(open_gpu, &again, (enum cuda_keep)keep)), "%d", keep);
        cr_assert(one_same(wanted, two_steps(open_without_graphs, &again, (enum cuda_keep)keep)), "%d", keep);
    }
}

Test(gpu, and_where_memory_is_short_without_it_that_is_said, .init = prepare)
{
    GPU_BY_SCRIPT();
    struct backend_options options = wished_again();
    struct backend *b;
    struct error err = {0};
    const int64_t least = backend_gpu_bytes(&options);
    gpu_script(memory_for(&options, CUDA_KEEP_INPUTS));
    options.recompute = false;
    cr_assert_lt(least, backend_gpu_bytes(&options), "what is said of it is the least that it takes");
    cr_assert_eq(open_gpu(&b, &options, &err), -1);
    cr_assert(strstr(err.text, "; trainer.recompute: true would fit"), "%s", err.text);
    cr_assert_eq(error_exit_code(err.code), EXIT_MACHINE);
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
    struct backend_options fp32 = wished();
    fp32.bf16 = false;
    refused("", fp32, EXIT_USAGE,
            "a GPU computes in bf16 so far: write trainer.precision: bf16, or trainer.device: cpu");
}

Test(gpu, too_little_memory_is_refused_before_any_is_taken, .init = prepare)
{
    GPU_BY_SCRIPT();
    refused("memory=300M", wished(), EXIT_MACHINE,
            LABEL ": training needs 0.5 GiB (code and driver 0.5, workspace 0.0, undo slots and tables 0.0 "
                  "GiB), and 0.3 of "
                  "0.3 are free; this model needs a GPU with more memory");
}

Test(gpu, no_driver_and_no_cublaslt_are_refused, .init = prepare)
{
    GPU_BY_SCRIPT();
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
    GPU_BY_SCRIPT();
    struct one o = opened(open_gpu, "", false);
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
