#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/trainer/backend/cpu/model/reference.h"
#include "tests/unit/trainer/backend/cpu/model/world.h"
#include "trainer/backend/cpu/model/matmul.h"

static const struct model_shape tiny = {.layers = 2, .heads = 2, .width = 16, .context = 8, .vocabulary = 29};
static const struct model_shape odd = {
    .layers = 2, .heads = 5, .width = 80, .context = 37, .vocabulary = 257};
static const struct model_shape long_one = {
    .layers = 1, .heads = 1, .width = 32, .context = 130, .vocabulary = 256};

static struct world open_world_for(const char *isa, const struct model_shape *shape, int sequences,
                                   int threads)
{
    struct gpt_options options = {.sequences = sequences, .isa = isa};
    return world_open(shape, &options, threads);
}

static struct world open_world(const struct model_shape *shape, int sequences, int threads)
{
    return open_world_for("Auto", shape, sequences, threads);
}

static void assert_loss_agrees(const struct model_shape *shape, int sequences)
{
    struct world w = open_world(shape, sequences, 2);
    double *params = world_doubles(&w);
    double wanted = world_reference(&w, params), got = world_lane(&w);
    cr_assert(fabs(got - wanted) < 2e-6 * wanted, "loss %.9g, in fp64 %.9g", got, wanted);
    free(params);
    world_close(&w);
}

Test(gpt, the_loss_of_a_lane_agrees_with_double_precision)
{
    assert_loss_agrees(&tiny, 3);
    assert_loss_agrees(&odd, 2);
    assert_loss_agrees(&long_one, 1);
}

#ifdef __x86_64__ /* elsewhere oneDNN lets nothing be chosen (isa.h) */
Test(gpt, lower_instruction_sets_agree_with_double_precision_too)
{
    struct world w = open_world_for("SSE41", &odd, 2, 2);
    double *params = world_doubles(&w);
    double wanted = world_reference(&w, params), got = world_lane(&w);
    cr_assert(fabs(got - wanted) < 2e-6 * wanted, "loss %.9g, in fp64 %.9g", got, wanted);
    free(params);
    world_close(&w);
}
#endif

/* Every tensor: its largest gradient, and elements spread over it. */
static void assert_tensor_agrees(const struct world *w, double *params, const struct model_tensor *t,
                                 int samples)
{
    int64_t largest = t->first;
    for (int64_t i = t->first; i < t->first + t->count; i++)
        if (fabsf(w->grads[i]) > fabsf(w->grads[largest]))
            largest = i;
    double scale = fabs(w->grads[largest]);
    cr_assert(scale > 1e-6, "%s: no gradient to speak of", t->name);
    for (int s = 0; s <= samples; s++) {
        int64_t at = s == samples ? largest : t->first + t->count * s / samples;
        double wanted = world_difference(w, params, at), got = w->grads[at];
        cr_assert(fabs(got - wanted) < 1e-4 * scale + 1e-7,
                  "%s[%lld]: %.9g, by differences %.9g (largest %.3g)", t->name, (long long)(at - t->first),
                  got, wanted, scale);
    }
}

static void assert_gradients_agree(const struct model_shape *shape, int sequences, int samples)
{
    struct world w = open_world(shape, sequences, 2);
    double *params = world_doubles(&w);
    world_lane(&w);
    for (int64_t i = 0; i < w.layout.parameters; i++)
        cr_assert(isfinite(w.grads[i]), "gradient %lld was not written", (long long)i);
    for (int i = 0; i < w.layout.tensors; i++)
        assert_tensor_agrees(&w, params, &w.layout.tensor[i], samples);
    free(params);
    world_close(&w);
}

Test(gpt, gradients_agree_with_finite_differences_for_every_tensor)
{
    assert_gradients_agree(&tiny, 3, 16);
}

Test(gpt, gradients_agree_for_odd_shapes)
{
    assert_gradients_agree(&odd, 1, 2);
}

Test(gpt, gradients_agree_where_attention_takes_several_blocks)
{
    assert_gradients_agree(&long_one, 1, 3);
}

static void assert_same_bits(const struct model_shape *shape, int sequences)
{
    struct world first = open_world(shape, sequences, 1);
    float loss = world_lane(&first);
    for (int threads = 1; threads <= 3; threads++) {
        struct world w = open_world(shape, sequences, threads);
        for (int again = 0; again < 2; again++) {
            float other = world_lane(&w);
            cr_assert_eq(memcmp(&loss, &other, sizeof loss), 0, "%d threads: another loss", threads);
            cr_assert_eq(memcmp(first.grads, w.grads, (size_t)w.layout.parameters * sizeof(float)), 0,
                         "%d threads: other gradients", threads);
        }
        world_close(&w);
    }
    world_close(&first);
}

Test(gpt, bits_do_not_depend_on_threads_or_on_what_ran_before)
{
    const struct model_shape wide = {
        .layers = 1, .heads = 4, .width = 256, .context = 128, .vocabulary = 256};
    assert_same_bits(&tiny, 1);
    assert_same_bits(&odd, 3);
    assert_same_bits(&long_one, 2);
    assert_same_bits(&wide, 2);
}

/* The same step with parameters and gradients that lie one float further. */
Test(gpt, bits_do_not_depend_on_where_memory_lies)
{
    struct world w = open_world(&odd, 2, 1);
    size_t bytes = (size_t)w.layout.parameters * sizeof(float);
    float *params = malloc(bytes + sizeof(float)), *grads = malloc(bytes + sizeof(float)), moved;
    struct error err = {0};
    memcpy(params + 1, w.params, bytes);
    float loss = world_lane(&w);
    cr_assert_eq(gpt_lane(w.g, params + 1, w.tokens, grads + 1, &moved, NULL, &err), 0, "%s", err.text);
    cr_assert_eq(memcmp(&loss, &moved, sizeof loss), 0);
    cr_assert_eq(memcmp(grads + 1, w.grads, bytes), 0);
    free(params);
    free(grads);
    world_close(&w);
}

Test(gpt, a_sequence_s_loss_does_not_depend_on_its_company)
{
    struct world w = open_world(&odd, 4, 2);
    struct error err = {0};
    float together[4], alone;
    int stride = odd.context + 1;
    cr_assert_eq(gpt_losses(w.g, w.params, w.tokens, 4, together, NULL, &err), 0, "%s", err.text);
    double *params = world_doubles(&w);
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(gpt_losses(w.g, w.params, w.tokens + i * stride, 1, &alone, NULL, &err), 0);
        cr_assert_eq(memcmp(&alone, &together[i], sizeof alone), 0);
        double wanted = reference_loss(&w.layout, params, w.tokens + i * stride, odd.context);
        cr_assert(fabs(alone - wanted) < 2e-6 * wanted);
    }
    free(params);
    world_close(&w);
}

Test(gpt, next_logits_are_those_of_the_last_token)
{
    struct world w = open_world(&odd, 1, 2);
    double *params = world_doubles(&w), *wanted = calloc((size_t)37 * 257, sizeof *wanted);
    float got[257];
    for (int length = 1; length <= 37; length += 9) {
        reference_logits(&w.layout, params, w.tokens, length, wanted);
        gpt_next_logits(w.g, w.params, w.tokens, length, got);
        for (int v = 0; v < 257; v++)
            cr_assert(fabs(got[v] - wanted[(length - 1) * 257 + v]) < 1e-4);
    }
    free(params);
    free(wanted);
    world_close(&w);
}

Test(gpt, a_stopped_lane_says_so_and_the_next_one_is_whole)
{
    struct world w = open_world(&odd, 2, 2);
    float before = world_lane(&w), loss;
    atomic_int stop = 1;
    struct error err = {0};
    cr_assert_eq(gpt_lane(w.g, w.params, w.tokens, w.grads, &loss, &stop, &err), -1);
    cr_assert_eq(err.code, ERR_ABORTED);
    cr_assert_eq(gpt_losses(w.g, w.params, w.tokens, 1, &loss, &stop, &err), -1);
    cr_assert_eq(world_lane(&w), before);
    world_close(&w);
}

Test(gpt, a_token_outside_the_vocabulary_is_refused)
{
    struct world w = open_world(&odd, 2, 1);
    struct error err = {0};
    float loss;
    w.tokens[5] = odd.vocabulary;
    cr_assert_eq(gpt_lane(w.g, w.params, w.tokens, w.grads, &loss, NULL, &err), -1);
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert_str_eq(err.text, "token 257 at 5 lies outside the vocabulary of 257");
    world_close(&w);
}

Test(gpt, weights_that_are_not_numbers_give_a_loss_that_is_none)
{
    struct world w = open_world(&odd, 1, 1);
    int fc = model_layout_find(&w.layout, "h.1.mlp.c_fc.weight");
    w.params[w.layout.tensor[fc].first + 3] = NAN;
    cr_assert(isnan(world_lane(&w)));
    world_close(&w);
}

Test(gpt, initial_weights_depend_on_seed_and_name_only)
{
    struct model_layout small, large;
    struct model_shape deeper = odd;
    deeper.layers = 3;
    model_layout_init(&small, &odd);
    model_layout_init(&large, &deeper);
    float *a = calloc((size_t)small.parameters, sizeof *a), *b = calloc((size_t)large.parameters, sizeof *b);
    gpt_init_weights(&small, 1, a);
    gpt_init_weights(&large, 1, b);
    const struct model_tensor *ta = &small.tensor[model_layout_find(&small, "wte.weight")];
    const struct model_tensor *tb = &large.tensor[model_layout_find(&large, "wte.weight")];
    cr_assert_eq(memcmp(a + ta->first, b + tb->first, (size_t)ta->count * sizeof *a), 0);
    gpt_init_weights(&large, 2, b);
    cr_assert_neq(memcmp(a + ta->first, b + tb->first, (size_t)ta->count * sizeof *a), 0);
    double sum = 0, squares = 0, most = 0;
    for (int64_t i = 0; i < ta->count; i++) {
        sum += a[ta->first + i];
        squares += (double)a[ta->first + i] * a[ta->first + i];
        most = fmax(most, fabs(a[ta->first + i]));
    }
    cr_assert(fabs(sum / (double)ta->count) < 0.0005);
    cr_assert(fabs(sqrt(squares / (double)ta->count) - 0.02) < 0.0004);
    cr_assert(most > 0.06 && most < 0.14);
    free(a);
    free(b);
}

Test(gpt, a_fresh_model_guesses_evenly)
{
    struct world w = open_world(&odd, 1, 1);
    gpt_init_weights(&w.layout, 3, w.params);
    cr_assert(fabs(world_lane(&w) - log(257)) < 0.1);
    world_close(&w);
}

Test(gpt, the_fingerprint_names_numerics_processor_and_library)
{
    char first[RM_FINGERPRINT_MAX], second[RM_FINGERPRINT_MAX];
    gpt_fingerprint("Auto", GPT_FP32, first);
    gpt_fingerprint("Auto", GPT_FP32, second);
    cr_assert_str_eq(first, second);
    cr_assert_not_null(strstr(first, "numerics "));
    cr_assert_not_null(strstr(first, "fp32"));
    cr_assert_not_null(strstr(first, "oneDNN"));
}

#ifdef __x86_64__
Test(gpt, a_lower_instruction_set_is_another_fingerprint)
{
    char text[RM_FINGERPRINT_MAX];
    gpt_fingerprint("SSE41", GPT_FP32, text);
    cr_assert_not_null(strstr(text, ", sse41, "), "%s", text);
}
#else
Test(gpt, an_instruction_set_of_x86_64_is_refused)
{
    struct error err = {0};
    cr_assert_lt(matmul_use_isa("SSE41", &err), 0);
    cr_assert_str_eq(err.text, "oneDNN does not take instruction set SSE41");
}
#endif

Test(gpt, an_unknown_instruction_set_is_refused_by_name)
{
    struct model_layout layout;
    struct pool *pool;
    struct gpt *g;
    struct gpt_options options = {.sequences = 1, .isa = "MMX"};
    struct error err = {0};
    model_layout_init(&layout, &tiny);
    cr_assert_eq(pool_open(&pool, 1, &err), 0);
    cr_assert_eq(gpt_open(&g, &layout, &options, pool, &err), -1);
    cr_assert_eq(err.code, ERR_USAGE);
    cr_assert_not_null(strstr(err.text, "MMX"));
    pool_free(pool);
}
