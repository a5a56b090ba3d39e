#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/prng.h"
#include "tests/unit/trainer/backend/cpu/model/reference.h"
#include "tests/unit/trainer/backend/cpu/model/world.h"
#include "trainer/backend/cpu/model/bf16.h"
#include "trainer/backend/cpu/model/matmul.h"
#include "trainer/backend/cpu/model/soft_blocks.h"

static const struct model_shape odd = {
    .layers = 2, .heads = 5, .width = 80, .context = 37, .vocabulary = 257};
static const struct model_shape long_one = {
    .layers = 1, .heads = 1, .width = 32, .context = 130, .vocabulary = 256};
static const struct model_shape many_words = {
    .layers = 1, .heads = 2, .width = 32, .context = 40, .vocabulary = 901};
static const struct model_shape wide = {
    .layers = 1, .heads = 4, .width = 256, .context = 128, .vocabulary = 256};

static struct world open_world(const struct model_shape *shape, int sequences, int threads,
                               enum gpt_precision precision, bool recompute)
{
    struct gpt_options options = {
        .sequences = sequences, .isa = "Auto", .precision = precision, .recompute = recompute};
    return world_open(shape, &options, threads);
}

/* ---- rounding ---- */

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint16_t narrow_one(float x)
{
    uint16_t half;
    bf16_narrow(&half, &x, 1);
    return half;
}

static float widen_one(uint16_t half)
{
    float x;
    bf16_widen(&x, &half, 1);
    return x;
}

Test(bf16, numbers_that_fit_stay_what_they_are)
{
    for (uint32_t half = 0; half < 1 << 16; half++) {
        float x = widen_one((uint16_t)half);
        cr_assert(isnan(x) || narrow_one(x) == half, "%04x", half);
        cr_assert(!isnan(x) || isnan(widen_one(narrow_one(x))), "%04x", half);
    }
}

Test(bf16, numbers_between_go_to_the_nearer_one_and_ties_to_the_even_one)
{
    for (uint32_t half = 0; half < 0x7F80; half++) {
        uint32_t low = half << 16;
        cr_assert_eq(narrow_one(float_of(low + 0x7FFF)), half);
        cr_assert_eq(narrow_one(float_of(low + 0x8000)), half + (half & 1));
        cr_assert_eq(narrow_one(float_of(low + 0x8001)), half + 1);
        cr_assert_eq(narrow_one(float_of((low + 0x8001) | 0x80000000u)), (half + 1) | 0x8000u);
    }
}

Test(bf16, what_is_no_number_stays_none)
{
    for (uint32_t bits = 0x7F800001; bits < 0x7F820000; bits += 0x7F)
        cr_assert(isnan(widen_one(narrow_one(float_of(bits)))), "%08x", bits);
    cr_assert(isnan(widen_one(narrow_one(float_of(0xFFFFFFFF)))));
    cr_assert(isinf(widen_one(narrow_one(INFINITY))));
}

Test(bf16, a_row_narrows_in_its_own_memory_for_every_length)
{
    for (int n = 1; n <= 70; n++) {
        float row[70];
        uint16_t wanted[70];
        uint64_t state = (uint64_t)n;
        for (int i = 0; i < n; i++)
            row[i] = (float)(prng_unit(&state) - 0.5);
        bf16_narrow(wanted, row, n);
        bf16_narrow(row, row, n);
        cr_assert_eq(memcmp(row, wanted, (size_t)n * sizeof *wanted), 0, "length %d", n);
    }
}

/* ---- products ---- */

struct operand {
    struct matrix matrix;
    uint16_t *data;
    double *meant; /* (rows, columns) */
};

static struct operand make_operand(int rows, int columns, bool transposed, uint64_t seed)
{
    struct operand o = {.data = calloc((size_t)rows * (size_t)columns, sizeof *o.data),
                        .meant = calloc((size_t)rows * (size_t)columns, sizeof *o.meant)};
    o.matrix = (struct matrix){o.data, transposed ? rows : columns, transposed};
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < columns; c++) {
            uint16_t half = narrow_one((float)(2 * prng_unit(&seed) - 1));
            o.data[transposed ? c * rows + r : r * columns + c] = half;
            o.meant[r * columns + c] = widen_one(half);
        }
    }
    return o;
}

static void free_operand(struct operand *o)
{
    free(o->data);
    free(o->meant);
}

static void run_tiles(const struct product *p)
{
    struct tiling tiles = matmul_tiling(p);
    for (int i = 0; i < tiles.tiles; i++) {
        int64_t row, column;
        struct product tile = matmul_tile(p, &tiles, i, &row, &column);
        cr_assert_eq(matmul(&tile), 0);
    }
}

static void assert_product_agrees(int m, int n, int k, int flags)
{
    struct operand a = make_operand(m, k, flags & 1, 1), b = make_operand(k, n, flags & 2, 2);
    float *c = calloc((size_t)m * (size_t)n, sizeof *c);
    for (int i = 0; i < m * n; i++)
        c[i] = flags & 4 ? 1 : NAN;
    struct product p = {.m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix, .bf16 = true};
    p.c = c;
    p.c_stride = n;
    p.add = flags & 4;
    run_tiles(&p);
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            double wanted = p.add;
            for (int x = 0; x < k; x++)
                wanted += a.meant[i * k + x] * b.meant[x * n + j];
            cr_assert(fabs(c[i * n + j] - wanted) < 2e-6 * (k + 1), "%d %d of %dx%dx%d, flags %d: %g not %g",
                      i, j, m, n, k, flags, c[i * n + j], wanted);
        }
    }
    free_operand(&a), free_operand(&b), free(c);
}

static void assert_products_agree(void)
{
    const int sizes[] = {1, 2, 17, 130};
    for (int i = 0; i < 4 * 4 * 4; i++)
        for (int flags = 0; flags < 8; flags++)
            assert_product_agrees(sizes[i % 4], sizes[i / 4 % 4], sizes[i / 16], flags);
    for (int flags = 0; flags < 4; flags++) {
        assert_product_agrees(300, 801, 40, flags);
        assert_product_agrees(21, 64, 1001, flags);
    }
}

Test(bf16, products_of_any_shape_are_summed_in_fp32)
{
    assert_products_agree();
}

Test(bf16, products_agree_without_instructions_for_bf16)
{
    matmul_widen_always(true);
    assert_products_agree();
}

/* Our own kernel's promise, on which nothing else may be built where oneDNN does the work. */
static void assert_cuts_change_no_bit(int m, int n, int k, int flags)
{
    struct operand a = make_operand(m, k, flags & 1, 3), b = make_operand(k, n, flags & 2, 4);
    float *whole = calloc((size_t)m * (size_t)n, sizeof *whole),
          *cut = calloc((size_t)m * (size_t)n, sizeof *cut);
    struct product p = {.m = m, .n = n, .k = k, .a = a.matrix, .b = b.matrix, .bf16 = true};
    p.c = whole;
    p.c_stride = n;
    cr_assert_eq(matmul(&p), 0);
    p.c = cut;
    for (int i = 0; i < m; i += 13) {
        for (int j = 0; j < n; j += 29) {
            struct tiling tiles = {.rows = 13, .columns = 29, .across = (n + 28) / 29};
            int64_t row, column;
            struct product tile = matmul_tile(&p, &tiles, i / 13 * tiles.across + j / 29, &row, &column);
            cr_assert_eq(matmul(&tile), 0);
        }
    }
    cr_assert_eq(memcmp(whole, cut, (size_t)m * (size_t)n * sizeof *cut), 0, "%dx%dx%d, flags %d", m, n, k,
                 flags);
    free_operand(&a), free_operand(&b), free(whole), free(cut);
}

Test(bf16, how_a_product_is_cut_changes_no_bit_of_our_own_kernel)
{
    if (!matmul_is_own())
        cr_skip("oneDNN's products are in use here; ours are for CPUs whose best is AVX512_BF16");
    for (int flags = 0; flags < 4; flags++) {
        assert_cuts_change_no_bit(70, 130, 1001, flags);
        assert_cuts_change_no_bit(150, 400, 64, flags);
    }
}

/* ---- softmax of logits that come in parts ---- */

enum { SOFT_ROWS = 3, SOFT_MOST = 70, SOFT_WIDE = 2 * SOFT_MOST };

/* One row of two parts, the second `offset` higher: what comes out against double precision. */
static void assert_soft_row(const float *x, const float *y, int n, const uint16_t *e, float loss,
                            float at_target)
{
    const float scale = 0.25f;
    double sum = 0;
    for (int j = 0; j < n; j++)
        sum += exp(x[j]) + exp(y[j]);
    cr_assert(fabs(loss - (log(sum) - y[n / 2])) < 2e-5, "length %d: loss %g", n, loss);
    cr_assert(fabs(at_target - scale * (exp(y[n / 2]) / sum - 1)) < 1e-6, "length %d", n);
    for (int j = 0; j < 2 * n; j++) {
        double wanted = scale * exp(j < n ? x[j] : y[j - n]) / sum;
        cr_assert(fabs(widen_one(e[j]) - wanted) < 0.01 * wanted + 1e-30, "length %d: %d: %g not %g", n, j,
                  widen_one(e[j]), wanted);
    }
}

static void assert_soft(int n, float offset)
{
    float x[SOFT_ROWS * SOFT_MOST], y[SOFT_ROWS * SOFT_MOST], top[2 * SOFT_ROWS], sum[2 * SOFT_ROWS];
    float aimed[SOFT_ROWS], losses[SOFT_ROWS], at_target[SOFT_ROWS];
    uint16_t e[SOFT_ROWS * SOFT_WIDE];
    uint64_t state = (uint64_t)n;
    for (int i = 0; i < SOFT_ROWS * n; i++) {
        x[i] = (float)(20 * prng_unit(&state) - 10);
        y[i] = (float)(20 * prng_unit(&state) - 10) + offset;
    }
    for (int r = 0; r < SOFT_ROWS; r++)
        aimed[r] = y[r * n + n / 2];
    soft_part(x, SOFT_ROWS, n, top, sum, e, SOFT_WIDE);
    soft_part(y, SOFT_ROWS, n, top + SOFT_ROWS, sum + SOFT_ROWS, e + n, SOFT_WIDE);
    struct soft soft = {SOFT_ROWS, 2, top, sum, aimed, losses, at_target, 0.25f};
    soft_gather(&soft, 0, SOFT_ROWS);
    struct soft_block block = {e, SOFT_ROWS, 2 * n, SOFT_WIDE, n, top};
    soft_scale(&block);
    for (int r = 0; r < SOFT_ROWS; r++)
        assert_soft_row(x + r * n, y + r * n, n, e + r * SOFT_WIDE, losses[r], at_target[r]);
}

Test(bf16, softmax_in_parts_agrees_with_double_precision_for_every_length)
{
    for (int n = 1; n <= SOFT_MOST; n++) {
        assert_soft(n, 0);
        assert_soft(n, 30);
        assert_soft(n, -30);
    }
}

/* ---- the model ---- */

static double length_of(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    return sqrt(sum);
}

static void assert_tensor_agrees(const struct world *w, const struct world *fp32,
                                 const struct model_tensor *t, double *params)
{
    const float *got = w->grads + t->first, *near = fp32->grads + t->first;
    double apart = 0, size = length_of(near, t->count);
    int64_t largest = 0;
    for (int64_t i = 0; i < t->count; i++) {
        apart += ((double)got[i] - near[i]) * ((double)got[i] - near[i]);
        largest = fabsf(near[i]) > fabsf(near[largest]) ? i : largest;
    }
    cr_assert(sqrt(apart) < 0.02 * size, "%s: %.3g of its length away", t->name, sqrt(apart) / size);
    cr_assert(apart > 0, "%s: the bits of fp32: nothing was rounded", t->name);
    double wanted = world_difference(w, params, t->first + largest);
    cr_assert(fabs(got[largest] - wanted) < 0.03 * fabs(wanted), "%s[%lld]: %g, by differences %g", t->name,
              (long long)largest, got[largest], wanted);
}

/* Fresh weights: where softmax is saturated, as with stirred ones, the model itself multiplies an error. */
static void start_afresh(struct world *w)
{
    gpt_init_weights(&w->layout, 42, w->params);
    gpt_weights_changed(w->g, w->params);
}

static void assert_model_agrees(const struct model_shape *shape, int sequences)
{
    struct world w = open_world(shape, sequences, 2, GPT_BF16, false);
    struct world fp32 = open_world(shape, sequences, 2, GPT_FP32, false);
    start_afresh(&w);
    start_afresh(&fp32);
    double *params = world_doubles(&w);
    double wanted = world_reference(&w, params), got = world_lane(&w);
    world_lane(&fp32);
    cr_assert(fabs(got - wanted) < 2e-4 * wanted, "loss %.9g, in fp64 %.9g", got, wanted);
    for (int i = 0; i < w.layout.tensors; i++)
        assert_tensor_agrees(&w, &fp32, &w.layout.tensor[i], params);
    free(params);
    world_close(&w);
    world_close(&fp32);
}

Test(bf16, losses_and_gradients_are_within_the_rounding_of_double_precision)
{
    assert_model_agrees(&odd, 2);
    assert_model_agrees(&long_one, 1);
    assert_model_agrees(&many_words, 2);
}

Test(bf16, losses_and_gradients_agree_without_instructions_for_bf16)
{
    matmul_widen_always(true);
    assert_model_agrees(&odd, 2);
    assert_model_agrees(&long_one, 1);
}

static void assert_same(const struct world *a, float loss_a, const struct world *b, float loss_b)
{
    cr_assert_eq(memcmp(&loss_a, &loss_b, sizeof loss_a), 0, "another loss");
    cr_assert_eq(memcmp(a->grads, b->grads, (size_t)a->layout.parameters * sizeof(float)), 0,
                 "other gradients");
}

static void assert_same_bits(const struct model_shape *shape, int sequences)
{
    struct world first = open_world(shape, sequences, 1, GPT_BF16, false);
    float loss = world_lane(&first);
    for (int threads = 1; threads <= 3; threads++) {
        struct world w = open_world(shape, sequences, threads, GPT_BF16, false);
        for (int again = 0; again < 2; again++)
            assert_same(&first, loss, &w, world_lane(&w));
        world_close(&w);
    }
    world_close(&first);
}

Test(bf16, bits_do_not_depend_on_threads_or_on_what_ran_before)
{
    assert_same_bits(&odd, 3);
    assert_same_bits(&long_one, 2);
    assert_same_bits(&wide, 2);
    assert_same_bits(&many_words, 3);
}

Test(bf16, bits_do_not_depend_on_where_memory_lies)
{
    struct world w = open_world(&odd, 2, 1, GPT_BF16, false);
    size_t bytes = (size_t)w.layout.parameters * sizeof(float);
    float *params = malloc(bytes + sizeof(float)), *grads = malloc(bytes + sizeof(float)), moved;
    struct error err = {0};
    memcpy(params + 1, w.params, bytes);
    float loss = world_lane(&w);
    gpt_weights_changed(w.g, params + 1);
    cr_assert_eq(gpt_lane(w.g, params + 1, w.tokens, grads + 1, &moved, NULL, &err), 0, "%s", err.text);
    cr_assert_eq(memcmp(&loss, &moved, sizeof loss), 0);
    cr_assert_eq(memcmp(grads + 1, w.grads, bytes), 0);
    free(params);
    free(grads);
    world_close(&w);
}

Test(bf16, a_sequence_s_loss_does_not_depend_on_its_company)
{
    struct world w = open_world(&odd, 4, 2, GPT_BF16, false);
    struct error err = {0};
    float together[4], alone;
    cr_assert_eq(gpt_losses(w.g, w.params, w.tokens, 4, together, NULL, &err), 0, "%s", err.text);
    for (int i = 0; i < 4; i++) {
        const int32_t *tokens = w.tokens + i * (odd.context + 1);
        cr_assert_eq(gpt_losses(w.g, w.params, tokens, 1, &alone, NULL, &err), 0);
        cr_assert_eq(memcmp(&alone, &together[i], sizeof alone), 0);
    }
    world_close(&w);
}

Test(bf16, next_logits_are_near_those_of_double_precision)
{
    struct world w = open_world(&odd, 1, 2, GPT_BF16, false);
    double *params = world_doubles(&w), *wanted = calloc((size_t)37 * 257, sizeof *wanted);
    float got[257];
    reference_logits(&w.layout, params, w.tokens, 20, wanted);
    gpt_next_logits(w.g, w.params, w.tokens, 20, got);
    double apart = 0, size = 0;
    for (int v = 0; v < 257; v++) {
        double right = wanted[19 * 257 + v];
        apart += (got[v] - right) * (got[v] - right);
        size += right * right;
    }
    cr_assert(sqrt(apart) < 0.02 * sqrt(size), "%g of their length away", sqrt(apart / size));
    free(params);
    free(wanted);
    world_close(&w);
}

Test(bf16, weights_that_are_not_numbers_give_a_loss_that_is_none)
{
    struct world w = open_world(&odd, 1, 1, GPT_BF16, false);
    int fc = model_layout_find(&w.layout, "h.1.mlp.c_fc.weight");
    w.params[w.layout.tensor[fc].first + 3] = NAN;
    gpt_weights_changed(w.g, w.params);
    cr_assert(isnan(world_lane(&w)));
    world_close(&w);
}

Test(bf16, the_fingerprint_says_so)
{
    char fp32[RM_FINGERPRINT_MAX], bf16[RM_FINGERPRINT_MAX];
    gpt_fingerprint("Auto", GPT_FP32, fp32);
    gpt_fingerprint("Auto", GPT_BF16, bf16);
    cr_assert_not_null(strstr(bf16, ", bf16, "), "%s", bf16);
    cr_assert_str_neq(bf16, fp32);
}

/* ---- computing activations again ---- */

static void assert_recomputing_changes_no_bit(const struct model_shape *shape, enum gpt_precision precision)
{
    struct world kept = open_world(shape, 2, 2, precision, false);
    struct world again = open_world(shape, 2, 2, precision, true);
    for (int i = 0; i < 2; i++) {
        float loss = world_lane(&kept);
        assert_same(&kept, loss, &again, world_lane(&again));
    }
    world_close(&kept);
    world_close(&again);
}

Test(recompute, changes_no_bit)
{
    struct model_shape deep = odd;
    deep.layers = 5;
    for (int precision = GPT_FP32; precision <= GPT_BF16; precision++) {
        assert_recomputing_changes_no_bit(&deep, precision);
        assert_recomputing_changes_no_bit(&long_one, precision);
    }
}

Test(recompute, keeps_each_block_s_input_only)
{
    struct model_shape deep = odd, deeper = odd;
    deep.layers = 5;
    deeper.layers = 6;
    struct world a = open_world(&deep, 2, 1, GPT_FP32, true), b = open_world(&deeper, 2, 1, GPT_FP32, true);
    struct world kept = open_world(&deep, 2, 1, GPT_FP32, false);
    size_t input = (size_t)2 * 37 * 80 * sizeof(float);
    cr_assert_eq(gpt_memory(b.g) - gpt_memory(a.g), input);
    cr_assert_lt(gpt_memory(a.g), gpt_memory(kept.g) - 4 * 12 * input);
    world_close(&a);
    world_close(&b);
    world_close(&kept);
}

/* ---- training ---- */

enum { STEPS = 300, LAST = 40 };

struct moments {
    float *m, *v;
};

/* AdamW without decay, as plainly as possible. */
static void update(struct world *w, struct moments *a, int step)
{
    const float rate = 3e-3f;
    float left_m = 1 - powf(0.9f, (float)step), left_v = 1 - powf(0.95f, (float)step);
    for (int64_t i = 0; i < w->layout.parameters; i++) {
        a->m[i] = 0.9f * a->m[i] + 0.1f * w->grads[i];
        a->v[i] = 0.95f * a->v[i] + 0.05f * w->grads[i] * w->grads[i];
        w->params[i] -= rate * (a->m[i] / left_m) / (sqrtf(a->v[i] / left_v) + 1e-8f);
    }
    gpt_weights_changed(w->g, w->params);
}

/* Pieces of a story in which each word allows some words after it. */
static void tell(struct world *w, uint64_t *state)
{
    int word = (int)prng_below(state, 32);
    for (int i = 0; i < w->sequences * (w->layout.shape.context + 1); i++) {
        w->tokens[i] = word;
        word = (word * 5 + 7 + (int)prng_below(state, 3)) % 32;
    }
}

/* Mean loss of the last steps. */
static double train(enum gpt_precision precision, uint64_t data, float *ret_first)
{
    const struct model_shape shape = {.layers = 2, .heads = 2, .width = 32, .context = 32, .vocabulary = 32};
    struct world w = open_world(&shape, 4, 2, precision, false);
    size_t count = (size_t)w.layout.parameters;
    struct moments a = {calloc(count, sizeof(float)), calloc(count, sizeof(float))};
    double sum = 0;
    gpt_init_weights(&w.layout, 1, w.params);
    gpt_weights_changed(w.g, w.params);
    for (int step = 1; step <= STEPS; step++) {
        tell(&w, &data);
        float loss = world_lane(&w);
        if (step == 1)
            *ret_first = loss;
        sum += step > STEPS - LAST ? loss : 0;
        update(&w, &a, step);
    }
    free(a.m), free(a.v);
    world_close(&w);
    return sum / LAST;
}

Test(bf16, the_loss_falls_as_in_fp32)
{
    float first, ignored;
    double fp32 = train(GPT_FP32, 5, &first), bf16 = train(GPT_BF16, 5, &ignored);
    double other = train(GPT_FP32, 6, &ignored), noise = fabs(other - fp32);
    cr_log_info("loss %.4f at first; at last %.4f in fp32 (%.4f with other data), %.4f in bf16", first, fp32,
                other, bf16);
    cr_assert(fp32 < 0.5 * first, "nothing was learned: %g to %g", first, fp32);
    cr_assert(fabs(bf16 - fp32) < noise + 0.01 * fp32, "%g in bf16, %g in fp32 (noise %g)", bf16, fp32,
              noise);
}
