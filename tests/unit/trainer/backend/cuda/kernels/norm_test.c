/* Norms on the emulated GPU against sums in double precision, and sums of columns to the bit.
 *
 * Tolerances. Forward: a norm's output is of size 1, and a mean in fp32 of 600 numbers of size 1 is right to
 * some 1e-6; bf16 adds its rounding. Backward: the same, of gradients of size 1 by scales of size 2. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model_case.h"
#include "trainer/backend/cuda/kernels/columns.h"
#include "trainer/backend/cuda/kernels/norm.h"

static const double tolerance = 4e-6;
static const float epsilon = 1e-5f;

struct norm_case {
    int rows, half, rms;
    int64_t width, count;
    bool adds;
    float *stream, *weight, *bias, *to_stream;
    void *add, *to;
    struct norm_stats *stats;
};

static void norm_case_init(struct norm_case *c, int rows, int64_t width, int kind)
{
    const uint64_t seed = (uint64_t)(rows * 100 + width);
    *c = (struct norm_case){
        .rows = rows, .width = width, .half = kind & 1, .rms = kind >> 1 & 1, .adds = kind & 4};
    c->count = rows * width;
    c->stream = model_floats(c->count, 1, seed);
    c->weight = model_floats(width, 1, seed + 1);
    c->bias = model_floats(width, 1, seed + 2);
    c->add = model_operands(c->count, 1, c->half, seed + 3);
    c->to_stream = model_empty(c->count, sizeof(float));
    c->to = model_empty(c->count, c->half ? 2 : 4);
    c->stats = model_empty(rows, sizeof *c->stats);
}

static void norm_case_clear(struct norm_case *c)
{
    free(c->stream);
    free(c->weight);
    free(c->bias);
    free(c->add);
    free(c->to_stream);
    free(c->to);
    free(c->stats);
}

/* The bias goes with the layer norm and, before it, with what is added. */
static struct norm_rows_args forward_args(const struct norm_case *c)
{
    return (struct norm_rows_args){.stream = c->stream,
                                   .add = c->adds ? c->add : NULL,
                                   .add_bias = c->rms ? NULL : c->bias,
                                   .to_stream = c->adds ? c->to_stream : NULL,
                                   .weight = c->weight,
                                   .bias = c->rms ? NULL : c->bias,
                                   .to = c->to,
                                   .stats = c->stats,
                                   .width = c->width,
                                   .rows = c->rows,
                                   .half = c->half,
                                   .rms = c->rms,
                                   .epsilon = epsilon};
}

static struct model_run forward_run(const struct norm_case *c, const struct norm_rows_args *args)
{
    return (struct model_run){&emulated_norm_rows,
                              args,
                              1,
                              true,
                              {{c->to, (size_t)c->count * (c->half ? 2 : 4)},
                               {c->to_stream, (size_t)c->count * sizeof(float)},
                               {c->stats, (size_t)c->rows * sizeof *c->stats}}};
}

/* What is normalised: after forward it is the stream. */
static const float *stream_of(const struct norm_case *c)
{
    return c->adds ? c->to_stream : c->stream;
}

static void check_added(const struct norm_case *c)
{
    for (int64_t i = 0; c->adds && i < c->count; i++) {
        float delta = (float)model_operand(c->add, i, c->half);
        cr_assert_eq(c->to_stream[i], c->stream[i] + (c->rms ? delta : delta + c->bias[i % c->width]), "%d",
                     (int)i);
    }
}

static double mean_of(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t j = 0; j < n; j++)
        sum += (double)x[j];
    return sum / (double)n;
}

static void check_row(const struct norm_case *c, int r)
{
    const float *x = stream_of(c) + r * c->width;
    double mean = c->rms ? 0 : mean_of(x, c->width), squares = 0;
    for (int64_t j = 0; j < c->width; j++)
        squares += ((double)x[j] - mean) * ((double)x[j] - mean);
    double scale = 1 / sqrt(squares / (double)c->width + (double)epsilon);
    model_near((double)c->stats[r].mean, mean, tolerance, tolerance, "mean", r);
    model_near((double)c->stats[r].scale, scale, tolerance, 0, "scale", r);
    for (int64_t j = 0; j < c->width; j++) {
        double y = ((double)x[j] - mean) * scale * (double)c->weight[j] + (c->rms ? 0 : (double)c->bias[j]);
        model_near(model_operand(c->to, r * c->width + j, c->half), y, model_rounding(c->half, tolerance),
                   tolerance * scale, "norm", j);
    }
}

/* A row of one number has no variance, and its scale, 316, is what the mean's rounding is multiplied by. */
static void check_forward(struct norm_case *c)
{
    const struct norm_rows_args args = forward_args(c);
    const struct model_run run = forward_run(c, &args);
    model_run_orders(&run, 1);
    check_added(c);
    for (int r = 0; r < c->rows; r++)
        check_row(c, r);
}

struct back_case {
    void *dy;
    float *before, *dstream, *partial;
    uint16_t *rounded;
    int shares;
    bool store;
};

static void back_case_init(struct back_case *b, const struct norm_case *c)
{
    b->dy = model_operands(c->count, 1, c->half, 5);
    b->before = model_floats(c->count, 1, 6);
    b->dstream = model_floats(c->count, 1, 6);
    b->rounded = model_empty(c->count, sizeof *b->rounded);
    b->shares = (c->rows + NORM_ROWS - 1) / NORM_ROWS;
    b->partial = model_empty(b->shares * 2 * c->width, sizeof(float));
    b->store = c->rows % 2;
}

static void back_case_clear(struct back_case *b)
{
    free(b->dy);
    free(b->before);
    free(b->dstream);
    free(b->rounded);
    free(b->partial);
}

static struct norm_back_args backward_args(const struct norm_case *c, const struct back_case *b)
{
    return (struct norm_back_args){.dy = b->dy,
                                   .x = stream_of(c),
                                   .stats = c->stats,
                                   .weight = c->weight,
                                   .dstream = b->dstream,
                                   .rounded = b->rounded,
                                   .partial = b->partial,
                                   .width = c->width,
                                   .rows = c->rows,
                                   .half = c->half,
                                   .rms = c->rms,
                                   .store = b->store};
}

static struct model_run backward_run(const struct norm_case *c, const struct back_case *b,
                                     const struct norm_back_args *args)
{
    return (struct model_run){&emulated_norm_back,
                              args,
                              1,
                              true,
                              {{b->dstream, (size_t)c->count * sizeof(float)},
                               {b->rounded, (size_t)c->count * sizeof(uint16_t)},
                               {b->partial, (size_t)(b->shares * 2 * c->width) * sizeof(float)}}};
}

static double normed(const struct norm_case *c, int r, int64_t j)
{
    return ((double)stream_of(c)[r * c->width + j] - (double)c->stats[r].mean) * (double)c->stats[r].scale;
}

static void check_back_row(const struct norm_case *c, const struct back_case *b, int r)
{
    double sum = 0, sum_n = 0, scale = (double)c->stats[r].scale;
    for (int64_t j = 0; j < c->width; j++) {
        double g = model_operand(b->dy, r * c->width + j, c->half) * (double)c->weight[j];
        sum += c->rms ? 0 : g;
        sum_n += g * normed(c, r, j);
    }
    for (int64_t j = 0; j < c->width; j++) {
        const int64_t i = r * c->width + j;
        double g = model_operand(b->dy, i, c->half) * (double)c->weight[j];
        double d = scale * (g - sum / (double)c->width - normed(c, r, j) * sum_n / (double)c->width);
        model_near((double)b->dstream[i], d + (b->store ? 0 : (double)b->before[i]), tolerance,
                   tolerance * scale * 2, "gradient of the stream", i);
        model_near(model_half(b->rounded[i]), (double)b->dstream[i], 0x1p-8, 0x1p-126, "in bf16", i);
    }
}

static void check_shares(const struct norm_case *c, const struct back_case *b)
{
    for (int64_t j = 0; j < c->width; j++) {
        double weight = 0, bias = 0, weights = 0, biases = 0;
        for (int r = 0; r < c->rows; r++) {
            double d = model_operand(b->dy, r * c->width + j, c->half);
            weights += d * normed(c, r, j);
            biases += d;
        }
        for (int i = 0; i < b->shares; i++) {
            weight += (double)b->partial[2 * i * c->width + j];
            bias += (double)b->partial[(2 * i + 1) * c->width + j];
        }
        model_near(weight, weights, tolerance, tolerance * 10, "gradient of the weight", j);
        model_near(bias, biases, tolerance, tolerance * 10, "gradient of the bias", j);
    }
}

static void check_backward(const struct norm_case *c)
{
    struct back_case b;
    back_case_init(&b, c);
    const struct norm_back_args args = backward_args(c, &b);
    const struct model_run run = backward_run(c, &b, &args);
    const bool kept = c->width % 8 == 0 && c->width <= 1024; /* by a warp: norm.cu */
    model_run_orders(&run, kept ? 4 : 1);
    for (int r = 0; r < c->rows; r++)
        check_back_row(c, &b, r);
    check_shares(c, &b);
    back_case_clear(&b);
}

static void check(int rows, int64_t width, int kind)
{
    struct norm_case c;
    norm_case_init(&c, rows, width, kind);
    check_forward(&c);
    check_backward(&c);
    norm_case_clear(&c);
}

Test(norm, both_ways_are_those_in_double_precision_at_every_small_size)
{
    for (int size = 1; size <= 70; size++)
        check(1 + size * 3 % 7, size, size % 8);
}

Test(norm, both_ways_are_right_for_wide_rows_and_shares_of_rows)
{
    for (int kind = 0; kind < 8; kind++)
        check(3 + kind, 80, kind);
    check(37, 80, 5);
    check(3, 255, 5);
    check(3, 257, 4);
    check(34, 600, 1);
    check(35, 1024, 5);
    check(3, 1032, 4);
}

Test(norm, each_barrier_is_missed)
{
    struct norm_case c;
    struct back_case b;
    norm_case_init(&c, 3, 300, 0);
    const struct norm_rows_args args = forward_args(&c);
    const struct model_run run = forward_run(&c, &args);
    model_run_planted(&run);
    back_case_init(&b, &c);
    const struct norm_back_args back_args = backward_args(&c, &b);
    const struct model_run back = backward_run(&c, &b, &back_args);
    model_run_planted(&back);
    back_case_clear(&b);
    norm_case_clear(&c);
}

/* Of rows that a warp keeps only shares meet, and only a block with several of them uses its memory again. */
Test(norm, each_barrier_of_rows_that_a_warp_keeps_is_missed)
{
    struct norm_case c;
    struct back_case b;
    norm_case_init(&c, 70, 264, 0);
    check_forward(&c);
    back_case_init(&b, &c);
    const struct norm_back_args back_args = backward_args(&c, &b);
    const struct model_run back = backward_run(&c, &b, &back_args);
    model_run_planted(&back);
    back_case_clear(&b);
    norm_case_clear(&c);
}

/* ---- sums of columns ---- */

/* The slices of its rows, in order. */
static float column_twin(const struct columns_args *a, int part, int64_t column)
{
    const int first = part * a->each, end = first + a->each < a->rows ? first + a->each : a->rows;
    const int slice = (end - first + COLUMNS_SLICES - 1) / COLUMNS_SLICES;
    float all = 0;
    for (int w = 0; w < COLUMNS_SLICES; w++) {
        float sum = 0;
        for (int r = first + w * slice; r < end && r < first + (w + 1) * slice; r++)
            sum += (float)model_operand(a->from, r * a->stride + column, a->half);
        all = w ? all + sum : sum;
    }
    return all;
}

static void check_columns(int rows, int64_t columns, int each, int half)
{
    const int64_t stride = rows % 3 ? columns + 3 : (columns + 15) / 8 * 8; /* eights are read together */
    const int parts = (rows + each - 1) / each;
    void *from = model_operands(rows * stride, 1, half, (uint64_t)rows);
    float *to = model_empty(parts * columns, sizeof *to);
    const struct columns_args args = {from, to, stride, columns, rows, each, half};
    const struct model_run run = {
        &emulated_columns, &args, 1, true, {{to, (size_t)(parts * columns) * sizeof *to}}};
    model_run_orders(&run, 1);
    for (int64_t i = 0; i < parts * columns; i++)
        cr_assert_eq(to[i], column_twin(&args, (int)(i / columns), i % columns), "%d rows by %d: %d", rows,
                     each, (int)i);
    free(from);
    free(to);
}

Test(columns, each_barrier_is_missed)
{
    enum { ROWS = 90, COLUMNS = 400 };
    float *from = model_floats(ROWS * COLUMNS, 1, 3), *to = model_empty(2 * COLUMNS, sizeof *to);
    const struct columns_args args = {from, to, COLUMNS, COLUMNS, ROWS, 60, 0};
    const struct model_run run = {&emulated_columns, &args, 1, true, {{to, 2 * COLUMNS * sizeof *to}}};
    model_run_planted(&run);
    free(from);
    free(to);
}

Test(columns, each_is_the_sum_of_slices_in_order_of_rows)
{
    for (int size = 1; size <= 70; size++)
        check_columns(size, 1 + size * 7 % 70, 1 + size * 3 % 11, size % 2);
}

Test(columns, wide_ones_are_sums_of_slices_too)
{
    check_columns(100, 600, 32, 1);
    check_columns(100, 255, 100, 0);
    check_columns(9, 257, 64, 1);
}
