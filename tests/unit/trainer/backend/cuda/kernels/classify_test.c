/* The classifier on the emulated GPU against double precision.
 *
 * Tolerances: a loss is a logarithm of a sum in fp32 and a difference of logits: some roundings of numbers up
 * to 30. Gradients are of size `scale`; each is e^x with an error of some 1e-6 of it, and bf16 rounds once.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model_case.h"
#include "trainer/backend/cuda/kernels/classify.h"

static const double loss_tolerance = 4e-6, tolerance = 4e-6;

struct classify_case {
    struct classify_args args;
    void *logits, *before;
    int32_t *targets;
    float *losses;
    size_t bytes;
};

/* Behind the vocabulary lies what would be seen. */
static void classify_case_init(struct classify_case *c, int rows, int64_t vocabulary, int64_t stride,
                               int half)
{
    const uint64_t seed = (uint64_t)(rows * 1000 + vocabulary);
    c->bytes = (size_t)(rows * stride) * (half ? 2 : 4);
    c->logits = model_operands(rows * stride, 15, half, seed);
    c->before = model_operands(rows * stride, 15, half, seed);
    c->targets = model_empty(rows, sizeof *c->targets);
    c->losses = model_empty(rows, sizeof *c->losses);
    for (int r = 0; r < rows; r++)
        c->targets[r] = (int32_t)(r % 3 == 0 ? vocabulary - 1 : r % vocabulary);
    c->args =
        (struct classify_args){c->logits, c->targets, c->losses, vocabulary, stride, rows, half, 0.125f};
}

static void classify_case_clear(struct classify_case *c)
{
    free(c->logits);
    free(c->before);
    free(c->targets);
    free(c->losses);
}

static struct model_run classify_run(const struct classify_case *c)
{
    return (struct model_run){&emulated_classify,
                              &c->args,
                              1,
                              true,
                              {{c->logits, c->bytes}, {c->losses, (size_t)c->args.rows * sizeof(float)}}};
}

static double logit(const struct classify_case *c, int r, int64_t j)
{
    return model_operand(c->before, r * c->args.stride + j, c->args.half);
}

static void check_row(const struct classify_case *c, int r)
{
    const struct classify_args *a = &c->args;
    double most = logit(c, r, 0), sum = 0;
    for (int64_t j = 1; j < a->vocabulary; j++)
        most = fmax(most, logit(c, r, j));
    for (int64_t j = 0; j < a->vocabulary; j++)
        sum += exp(logit(c, r, j) - most);
    model_near((double)c->losses[r], log(sum) + most - logit(c, r, c->targets[r]), loss_tolerance,
               loss_tolerance, "loss", r);
    for (int64_t j = 0; j < a->stride && a->scale != 0; j++) {
        const double p = j < a->vocabulary ? exp(logit(c, r, j) - most) / sum : 0;
        const double d = (p - (j == c->targets[r])) * (double)a->scale;
        model_near(model_operand(c->logits, r * a->stride + j, a->half), d,
                   model_rounding(a->half, tolerance), tolerance * (double)a->scale, "gradient", j);
    }
}

static void check(int rows, int64_t vocabulary, int64_t stride, int half, int orders)
{
    struct classify_case c;
    classify_case_init(&c, rows, vocabulary, stride, half);
    struct model_run run = classify_run(&c);
    c.args.scale = 0;
    model_run_some(&run, 1, orders);
    cr_assert(!memcmp(c.logits, c.before, c.bytes), "logits of an evaluation stay");
    for (int r = 0; r < rows; r++)
        check_row(&c, r);
    c.args.scale = 0.125f;
    model_run_some(&run, 1, orders);
    for (int r = 0; r < rows; r++)
        check_row(&c, r);
    classify_case_clear(&c);
}

Test(classify, loss_and_gradient_are_those_in_double_precision_at_every_small_size)
{
    for (int size = 1; size <= 70; size++)
        check(1 + size % 5, size, size + size % 3, size % 2, size % 7 ? 2 : MODEL_ORDERS);
}

Test(classify, loss_and_gradient_are_right_for_a_large_vocabulary)
{
    check(2, 50257, 50304, 1, MODEL_ORDERS);
    check(1, 50257, 50304, 0, MODEL_ORDERS);
    check(3, 2047, 2048, 1, MODEL_ORDERS);
    check(3, 2049, 2056, 0, MODEL_ORDERS);
}

Test(classify, each_barrier_is_missed)
{
    struct classify_case c;
    classify_case_init(&c, 3, 3000, 3000, 0);
    const struct model_run run = classify_run(&c);
    model_run_planted(&run);
    classify_case_clear(&c);
}

/* Whatever is not finite must be seen: such a step is never committed. */
Test(classify, a_logit_that_is_not_finite_makes_the_loss_not_finite)
{
    const float bad[] = {NAN, INFINITY};
    for (int i = 0; i < 2; i++) {
        struct classify_case c;
        classify_case_init(&c, 2, 700, 704, 0);
        ((float *)c.logits)[300] = bad[i];
        const struct model_run run = classify_run(&c);
        struct emulation e = {.blocks = 2, .seed = 3};
        cr_assert(emulate(&e, run.kernel, run.args), "%s", e.wrong);
        cr_assert_not(isfinite(c.losses[0]));
        cr_assert(isfinite(c.losses[1]));
        classify_case_clear(&c);
    }
}
