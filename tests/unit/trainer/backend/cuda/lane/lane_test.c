/* A whole lane on the stand-in driver and cuBLASLt: its gradient beside that of the CPU's model in fp32, and
 * its bits.
 *
 * Tolerance: each tensor's gradient may differ from that of fp32 by 1.5 % of its length; the CPU's own bf16
 * may by 3 (docs/model.md). Up to 0.6 % was seen. Only the shape's own weights are used, not far from their
 * start: where softmax is saturated the model itself multiplies what bf16 rounds. */
#include "trainer/backend/cuda/lane/lane.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/prng.h"
#include "gpu_case.h"
#include "tests/unit/trainer/backend/cpu/model/world.h"
#include "trainer/backend/cuda/lane/lane_parts.h"
#include "trainer/backend/cuda/needs.h"

enum { SEQUENCES = 2 };

static const double share = 0.015;

/* Odd where a shape may be: a head of 12, a context of 37, a vocabulary of 61. */
static const struct model_shape small = {
    .layers = 2, .heads = 2, .width = 24, .context = 37, .vocabulary = 61};
static const struct model_shape tiny = {.layers = 1, .heads = 1, .width = 8, .context = 5, .vocabulary = 7};
static const struct model_shape deep = {.layers = 3, .heads = 2, .width = 16, .context = 9, .vocabulary = 13};

struct rig {
    struct gpu g;
    struct cuda_blas *blas;
    struct cuda_module exact, model;
    struct cuda_stream s;
    struct cuda_memory m; /* params, then words, then maxima, then the proof */
    char *host;           /* pinned, the same */
    struct cuda_lane *lane;
    const struct world *w;
    size_t words, max, proof, bytes;
};

static struct world weights_of(const struct model_shape *shape)
{
    const struct gpt_options options = {.sequences = SEQUENCES, .isa = "Auto", .precision = GPT_FP32};
    struct world w = world_open(shape, &options, 1);
    uint64_t seed = 3;
    gpt_init_weights(&w.layout, 42, w.params);
    for (int64_t i = 0; i < w.layout.parameters; i++)
        w.params[i] += 0.1f * (float)(prng_unit(&seed) - 0.5);
    gpt_weights_changed(w.g, w.params);
    return w;
}

static void rig_place(struct rig *r)
{
    const size_t parameters = (size_t)r->w->layout.parameters * sizeof(float);
    r->words = (parameters + 255) / 256 * 256;
    r->max = r->words + (parameters + 255) / 256 * 256;
    r->proof = r->max + RM_TENSORS_MAX * sizeof(uint32_t);
    r->bytes = r->proof + sizeof(uint64_t);
}

static void rig_open_keeping(struct rig *r, const struct world *w, const char *script, bool graphs,
                             enum cuda_keep keep)
{
    struct error err = {0};
    const struct cuda_lane_options options = {.layout = &w->layout,
                                              .sequences = SEQUENCES,
                                              .exact = &r->exact,
                                              .model = &r->model,
                                              .graphs = graphs,
                                              .keep = keep};
    *r = (struct rig){.w = w};
    rig_place(r);
    gpu_blas_at(STANDIN_CUBLASLT);
    gpu_open(&r->g, script);
    GPU_OK(cuda_blas_open(&r->blas, r->g.device, &gpu_err));
    GPU_OK(cuda_module_open(&r->exact, r->g.device, on_gpu_image("exact"), "exact", &gpu_err));
    GPU_OK(cuda_module_open(&r->model, r->g.device, on_gpu_image("model"), "model", &gpu_err));
    r->s = gpu_stream(&r->g);
    r->m = gpu_memory(&r->g, r->bytes);
    r->host = gpu_pinned(&r->g, r->bytes);
    cr_assert_eq(cuda_lane_open(&r->lane, r->blas, &options, &err), 0, "%s", err.text);
    memset(r->host, 0, r->bytes);
    memcpy(r->host, w->params, (size_t)w->layout.parameters * sizeof(float));
    GPU_OK(cuda_copy_in(&r->s, r->m.at, r->host, r->bytes, &gpu_err));
    GPU_OK(cuda_stream_wait(&r->s, &gpu_err));
    GPU_OK(cuda_lane_weights(r->lane, r->m.at, &gpu_err));
}

static void rig_open_with(struct rig *r, const struct world *w, const char *script, bool graphs)
{
    rig_open_keeping(r, w, script, graphs, CUDA_KEEP_ALL);
}

static void rig_open(struct rig *r, const struct world *w, const char *script)
{
    rig_open_with(r, w, script, false);
}

static void rig_close(struct rig *r)
{
    cuda_lane_free(r->lane);
    cuda_pinned_free(r->g.device, r->host);
    cuda_stream_clear(&r->s);
    cuda_memory_clear(&r->m);
    cuda_module_clear(&r->exact);
    cuda_module_clear(&r->model);
    cuda_blas_free(r->blas);
    gpu_close(&r->g);
}

/* The lane of the world's tokens; the words, maxima and proof are here then. */
static double run(struct rig *r, float scale, bool store, bool floats)
{
    float scales[RM_TENSORS_MAX];
    double loss = NAN;
    for (int t = 0; t < r->w->layout.tensors; t++)
        scales[t] = scale;
    const struct cuda_lane_sums sums = {
        r->m.at + r->words, r->m.at + r->max, r->m.at + r->proof, scales, store, floats};
    GPU_OK(cuda_lane_run(r->lane, r->w->tokens, &sums, &loss, &gpu_err));
    GPU_OK(cuda_copy_out(&r->s, r->host, r->m.at, r->bytes, &gpu_err));
    GPU_OK(cuda_stream_wait(&r->s, &gpu_err));
    return loss;
}

static const float *floats_of(const struct rig *r)
{
    return (const float *)(const void *)(r->host + r->words);
}

/* ---- beside the CPU ---- */

static void check_tensor(const struct rig *r, const struct model_tensor *t)
{
    double length = 0, off = 0;
    for (int64_t i = t->first; i < t->first + t->count; i++) {
        const double wanted = (double)r->w->grads[i], d = (double)floats_of(r)[i] - wanted;
        length += wanted * wanted;
        off += d * d;
    }
    cr_assert_leq(sqrt(off), share * sqrt(length), "%s: off by %g of %g", t->name, sqrt(off), sqrt(length));
}

static void as_the_cpu(const struct model_shape *shape)
{
    struct world w = weights_of(shape);
    struct rig r;
    rig_open(&r, &w, "seed=1");
    const double wanted = (double)world_lane(&w), loss = run(&r, 1, true, true);
    cr_assert_float_eq(loss, wanted, 0.01 * wanted, "%g, not %g", loss, wanted);
    for (int t = 0; t < w.layout.tensors; t++)
        check_tensor(&r, &w.layout.tensor[t]);
    rig_close(&r);
    world_close(&w);
}

Test(lane, loss_and_gradient_of_each_tensor_are_the_cpus_within_what_bf16_rounds)
{
    as_the_cpu(&small);
    as_the_cpu(&tiny);
}

/* ---- bits ---- */

static void same_bits(struct rig *r, const char *wanted, double loss, double wanted_loss, const char *what)
{
    cr_assert(loss == wanted_loss, "%s: %a, not %a", what, loss, wanted_loss);
    for (size_t i = r->words; i < r->bytes; i += sizeof(uint32_t))
        cr_assert(!memcmp(r->host + i, wanted + i, sizeof(uint32_t)), "%s: word %zu", what,
                  (i - r->words) / 4);
}

/* Also on another number of processors, and so of blocks: our kernels' sums do not know it. cuBLASLt's may.
 */
Test(lane, words_maxima_and_proof_have_the_same_bits_in_ten_orders)
{
    struct world w = weights_of(&tiny);
    char *wanted = NULL;
    double wanted_loss = 0;
    for (int seed = 0; seed < 10; seed++) {
        struct rig r;
        char script[64];
        snprintf(script, sizeof script, "seed=%d,sms=%d", seed, 1 + seed % 3);
        rig_open(&r, &w, script);
        const double loss = run(&r, 0x1p20f, true, false);
        if (!wanted) {
            wanted = malloc(r.bytes);
            memcpy(wanted, r.host, r.bytes);
            wanted_loss = loss;
        }
        same_bits(&r, wanted, loss, wanted_loss, script);
        rig_close(&r);
    }
    free(wanted);
    world_close(&w);
}

/* What fp32 words hold is the gradient itself, so the whole numbers follow from it; a second lane of the same
 * tokens adds the same once more. */
Test(lane, words_are_the_gradient_rounded_once_and_lanes_add_up)
{
    struct world w = weights_of(&tiny);
    struct rig r;
    rig_open(&r, &w, "seed=2");
    run(&r, 1, true, true);
    float *grads = malloc((size_t)w.layout.parameters * sizeof *grads);
    memcpy(grads, floats_of(&r), (size_t)w.layout.parameters * sizeof *grads);
    for (int lanes = 1; lanes <= 2; lanes++) {
        run(&r, 0x1p20f, lanes == 1, false);
        const int32_t *words = (const int32_t *)(const void *)(r.host + r.words);
        for (int64_t i = 0; i < w.layout.parameters; i++)
            cr_assert_eq(words[i], lanes * (int32_t)rintf(grads[i] * 0x1p20f), "%d lanes, %d", lanes, (int)i);
    }
    free(grads);
    rig_close(&r);
    world_close(&w);
}

/* ---- computed again ---- */

/* Two lanes of a pass, and a sequence by itself between them. */
static void as_if_all_were_kept(const struct world *w, enum cuda_keep keep, bool graphs)
{
    struct rig r, all;
    double alone, wanted;
    rig_open(&all, w, "seed=8");
    rig_open_keeping(&r, w, "seed=9", graphs, keep);
    cr_assert_lt(r.lane->at.bytes, all.lane->at.bytes);
    for (int lane = 0; lane < 2; lane++) {
        const double loss = run(&r, 0x1p20f, lane == 0, false);
        same_bits(&all, r.host, run(&all, 0x1p20f, lane == 0, false), loss, "computed again");
        GPU_OK(cuda_lane_loss(r.lane, w->tokens, &alone, &gpu_err));
        GPU_OK(cuda_lane_loss(all.lane, w->tokens, &wanted, &gpu_err));
        cr_assert_eq(alone, wanted);
    }
    rig_close(&r);
    rig_close(&all);
}

Test(lane, what_is_computed_again_has_the_same_bits_and_takes_less_memory)
{
    struct world w = weights_of(&deep);
    for (int i = 0; i < 4; i++)
        as_if_all_were_kept(&w, i < 2 ? CUDA_KEEP_PRODUCTS : CUDA_KEEP_INPUTS, i % 2);
    world_close(&w);
}

/* The control: each kernel that runs again for a block has a say. Three runs, or six of norms and one behind
 * all blocks, are of the way forward. */
Test(lane, what_is_not_computed_again_is_missed)
{
    GPU_BY_SCRIPT();
    static const struct {
        const char *script;
        enum cuda_keep keep;
    } left_out[] = {{"skip:gelu@4", CUDA_KEEP_PRODUCTS},      {"skip:norm_rows@8", CUDA_KEEP_PRODUCTS},
                    {"skip:norm_rows@9", CUDA_KEEP_PRODUCTS}, {"skip:attend_64@4", CUDA_KEEP_INPUTS},
                    {"skip:norm_rows@9", CUDA_KEEP_INPUTS},   {"skip:gelu@5", CUDA_KEEP_INPUTS}};
    struct world w = weights_of(&deep);
    struct rig r;
    rig_open(&r, &w, "seed=8");
    run(&r, 0x1p20f, true, false);
    char *wanted = malloc(r.bytes);
    memcpy(wanted, r.host, r.bytes);
    rig_close(&r); /* a script is read where no GPU is open */
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
        rig_open_keeping(&r, &w, left_out[i].script, false, left_out[i].keep);
        run(&r, 0x1p20f, true, false);
        cr_assert(memcmp(r.host + r.words, wanted + r.words, r.bytes - r.words), "%s", left_out[i].script);
        rig_close(&r);
    }
    free(wanted);
    world_close(&w);
}

/* ---- graphs ---- */

/* A pass of two lanes with one scale and then another, twice: each lane of other tokens. */
enum { LANES = 8 };

static float scale_of(int lane)
{
    return lane / 2 % 2 ? 0x1p20f : 0x1p18f;
}

Test(lane, as_a_graph_it_has_the_same_bits_and_is_noted_once_for_each_scale_and_place_in_a_pass)
{
    struct world w = weights_of(&tiny);
    struct rig graphs, plain;
    rig_open_with(&graphs, &w, "seed=5", true);
    rig_open_with(&plain, &w, "seed=6", false);
    for (int lane = 0; lane < LANES; lane++) {
        w.tokens[lane] = (w.tokens[lane] + 1) % tiny.vocabulary;
        const double loss = run(&graphs, scale_of(lane), lane % 2 == 0, false);
        same_bits(&plain, graphs.host, run(&plain, scale_of(lane), lane % 2 == 0, false), loss,
                  "with graphs");
    }
    cr_assert_eq(graphs.lane->noted, 4);
    cr_assert_eq(plain.lane->noted, 0);
    rig_close(&graphs);
    rig_close(&plain);
    world_close(&w);
}

/* One thing at a time is another than where the first graph was noted. */
Test(lane, a_graph_is_for_the_places_and_the_kind_of_words_that_it_was_noted_with)
{
    enum { CHANGES = 5 };
    struct world w = weights_of(&tiny);
    struct rig r;
    float scales[RM_TENSORS_MAX];
    double loss;
    rig_open_with(&r, &w, "seed=4", true);
    struct cuda_memory other = gpu_memory(&r.g, r.bytes);
    for (int t = 0; t < w.layout.tensors; t++)
        scales[t] = 0x1p18f;
    const struct cuda_lane_sums first = {r.m.at + r.words, r.m.at + r.max, r.m.at + r.proof,
                                         scales,           true,           false};
    struct cuda_lane_sums changed[CHANGES] = {first, first, first, first, first};
    changed[0].words = other.at + r.words;
    changed[1].max = other.at + r.max;
    changed[2].proof = other.at + r.proof;
    changed[3].store = false;
    changed[4].floats = true;
    for (int turn = 0; turn < 2; turn++) {
        GPU_OK(cuda_lane_run(r.lane, w.tokens, &first, &loss, &gpu_err));
        cr_assert_eq(r.lane->noted, 1);
    }
    for (int i = 0; i < CHANGES; i++) {
        GPU_OK(cuda_lane_run(r.lane, w.tokens, &changed[i], &loss, &gpu_err));
        cr_assert_eq(r.lane->noted, 2 + i, "change %d", i);
    }
    GPU_OK(cuda_lane_weights(r.lane, other.at, &gpu_err));
    GPU_OK(cuda_lane_run(r.lane, w.tokens, &changed[4], &loss, &gpu_err));
    cr_assert_eq(r.lane->noted, 2 + CHANGES, "weights that lie elsewhere");
    cuda_memory_clear(&other);
    rig_close(&r);
    world_close(&w);
}

Test(lane, more_graphs_than_have_room_are_noted_again)
{
    struct world w = weights_of(&tiny);
    struct rig r, plain;
    rig_open_with(&r, &w, "", true);
    rig_open_with(&plain, &w, "", false);
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i <= LANE_GRAPHS; i++) {
            const double loss = run(&r, ldexpf(1, 10 + i), true, false);
            same_bits(&plain, r.host, run(&plain, ldexpf(1, 10 + i), true, false), loss, "of another scale");
        }
    cr_assert_eq(r.lane->noted, 2 * (LANE_GRAPHS + 1));
    rig_close(&r);
    rig_close(&plain);
    world_close(&w);
}

/* Both lanes have launched six kernels for their weights, and this one three of its own. */
Test(lane, a_graph_that_could_not_be_noted_leaves_nothing_behind)
{
    GPU_BY_SCRIPT();
    struct world w = weights_of(&tiny);
    struct rig r, plain;
    float scales[RM_TENSORS_MAX] = {0};
    double loss;
    rig_open_with(&r, &w, "fail:cuLaunchKernel@16=OUT_OF_MEMORY", true);
    rig_open_with(&plain, &w, "", false);
    const struct cuda_lane_sums sums = {r.m.at + r.words, r.m.at + r.max, r.m.at + r.proof,
                                        scales,           true,           false};
    struct error err = {0};
    cr_assert_eq(cuda_lane_run(r.lane, w.tokens, &sums, &loss, &err), -1);
    cr_assert_eq(r.lane->noted, 0);
    const double after = run(&r, 0x1p20f, true, false);
    same_bits(&plain, r.host, run(&plain, 0x1p20f, true, false), after, "after an error");
    rig_close(&r);
    rig_close(&plain);
    world_close(&w);
}

/* ---- forward only ---- */

/* The rows of a lane behind the sequence hold what was computed before: that must have no say. */
Test(lane, the_loss_of_a_sequence_by_itself_is_the_cpus_and_depends_on_no_other)
{
    struct world w = weights_of(&small);
    struct rig r;
    const int length = small.context + 1;
    float wanted[SEQUENCES];
    double alone[SEQUENCES], again;
    rig_open(&r, &w, "seed=3");
    cr_assert_eq(gpt_losses(w.g, w.params, w.tokens, SEQUENCES, wanted, NULL, NULL), 0);
    for (int i = 0; i < SEQUENCES; i++) {
        GPU_OK(cuda_lane_loss(r.lane, w.tokens + i * length, &alone[i], &gpu_err));
        cr_assert_float_eq(alone[i], (double)wanted[i], 0.01 * (double)wanted[i], "%g, not %g", alone[i],
                           (double)wanted[i]);
    }
    const double lane = run(&r, 1, true, true);
    cr_assert_float_eq(lane, (alone[0] + alone[1]) / 2, 1e-6, "a lane is all of its sequences");
    GPU_OK(cuda_lane_loss(r.lane, w.tokens, &again, &gpu_err));
    cr_assert_eq(again, alone[0], "%a, not %a", again, alone[0]);
    cr_assert_eq(run(&r, 1, true, true), lane, "and a lane after it is the one before");
    rig_close(&r);
    world_close(&w);
}

/* ---- the choice of algorithms ---- */

static void choice_of(const struct world *w, const char *script, uint8_t out[RM_HASH_BYTES])
{
    struct rig r;
    setenv("RINGMASTER_STANDIN_CUBLASLT", script, 1);
    rig_open(&r, w, "");
    cuda_lane_choice(r.lane, out);
    rig_close(&r);
}

Test(lane, what_was_chosen_for_its_products_has_a_hash)
{
    GPU_BY_SCRIPT();
    struct world w = weights_of(&tiny), other = weights_of(&small);
    uint8_t first[RM_HASH_BYTES], again[RM_HASH_BYTES];
    choice_of(&w, "", first);
    choice_of(&w, "", again);
    cr_assert(!memcmp(first, again, sizeof first));
    choice_of(&w, "version=130100", again);
    cr_assert(memcmp(first, again, sizeof first));
    choice_of(&other, "", again);
    cr_assert(memcmp(first, again, sizeof first));
    world_close(&w);
    world_close(&other);
}

/* ---- memory ---- */

static void as_planned(const struct model_shape *shape, int sequences, enum cuda_keep keep)
{
    static struct model_layout layout;
    static struct cuda_lane l;
    struct cuda_needs needs;
    model_layout_init(&layout, shape);
    l = (struct cuda_lane){.layout = &layout, .sequences = sequences, .keep = keep};
    lane_measure(&l);
    lane_place(&l, 0);
    const struct cuda_needs_shape wish = {.layout = &layout, .lane_sequences = sequences, .keep = keep};
    cuda_needs_make(&needs, &wish);
    const int64_t planned = needs.bytes[CUDA_NEEDS_HALF] + needs.bytes[CUDA_NEEDS_GRADIENT] +
                            needs.bytes[CUDA_NEEDS_ACTIVATIONS] + needs.bytes[CUDA_NEEDS_LOGITS] +
                            needs.bytes[CUDA_NEEDS_WORKSPACE];
    cr_assert_leq((int64_t)l.at.bytes, planned, "%zu, and %lld were planned", l.at.bytes, (long long)planned);
    cr_assert_geq((int64_t)l.at.bytes, planned / 1000 * 995, "%zu, and %lld were planned", l.at.bytes,
                  (long long)planned);
}

Test(lane, takes_the_memory_that_the_plan_has_for_it)
{
    const struct model_shape gpt2 = {
        .layers = 12, .heads = 12, .width = 768, .context = 1024, .vocabulary = 50257};
    const struct model_shape large = {
        .layers = 48, .heads = 25, .width = 1600, .context = 1024, .vocabulary = 50257};
    for (int keep = CUDA_KEEP_ALL; keep <= CUDA_KEEP_INPUTS; keep++) {
        as_planned(&gpt2, 1, (enum cuda_keep)keep);
        as_planned(&gpt2, 16, (enum cuda_keep)keep);
        as_planned(&large, 4, (enum cuda_keep)keep);
    }
}

/* ---- refused ---- */

Test(lane, a_shape_that_the_kernels_are_not_made_for_is_refused)
{
    const struct model_shape shape = {.layers = 1, .heads = 1, .width = 136, .context = 5, .vocabulary = 7};
    struct model_layout layout;
    struct gpu g;
    struct cuda_blas *blas;
    struct cuda_lane *lane;
    struct error err = {0};
    model_layout_init(&layout, &shape);
    const struct cuda_lane_options options = {.layout = &layout, .sequences = SEQUENCES};
    gpu_blas_at(STANDIN_CUBLASLT);
    gpu_open(&g, "");
    GPU_OK(cuda_blas_open(&blas, g.device, &gpu_err));
    cr_assert_eq(cuda_lane_open(&lane, blas, &options, &err), -1);
    cr_assert_str_eq(
        err.text, "a model of width 136 with 1 heads can't be trained on a GPU: heads are 136 wide, at most "
                  "128 are possible, and the width must be a multiple of 8");
    cuda_blas_free(blas);
    gpu_close(&g);
}
