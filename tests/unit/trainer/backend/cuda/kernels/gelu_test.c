/* GELU on the emulated GPU against tanh in double precision.
 *
 * Tolerances: some roundings of fp32, of numbers up to 8; where bf16 is kept, the twin begins with what was
 * kept, and the output adds one rounding. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "model_case.h"
#include "trainer/backend/cuda/kernels/gelu.h"

static const double tolerance = 2e-6, cubic = 0.044715;

static double tanh_part(double x)
{
    return tanh(sqrt(2 / M_PI) * (x + cubic * x * x * x));
}

static double gelu_twin(double x)
{
    return x / 2 * (1 + tanh_part(x));
}

static double slope_twin(double x)
{
    const double t = tanh_part(x);
    return (1 + t) / 2 + x / 2 * (1 - t * t) * sqrt(2 / M_PI) * (1 + 3 * cubic * x * x);
}

static void check_forward(int rows, int64_t columns, int half, bool biased)
{
    const int64_t count = rows * columns;
    void *from = model_operands(count, 6, half, (uint64_t)count);
    float *bias = model_floats(columns, 2, 4);
    void *kept = model_empty(count, half ? 2 : 4), *to = model_empty(count, half ? 2 : 4);
    const struct gelu_args args = {from, biased ? bias : NULL, kept, to, columns, rows, half};
    const size_t bytes = (size_t)count * (half ? 2 : 4);
    const struct model_run run = {&emulated_gelu, &args, 1, true, {{kept, bytes}, {to, bytes}}};
    model_run_orders(&run, 0);
    for (int64_t i = 0; i < count; i++) {
        const double x = model_operand(from, i, half) + (biased ? (double)bias[i % columns] : 0);
        model_near(model_operand(kept, i, half), x, model_rounding(half, 1e-7), 0, "kept", i);
        model_near(model_operand(to, i, half), gelu_twin(model_operand(kept, i, half)),
                   model_rounding(half, tolerance), tolerance, "gelu", i);
    }
    free(from);
    free(bias);
    free(kept);
    free(to);
}

static void check_backward(int64_t count, int half)
{
    void *kept = model_operands(count, 8, half, (uint64_t)count);
    void *before = model_operands(count, 1, half, 9), *d = model_operands(count, 1, half, 9);
    const struct gelu_back_args args = {kept, d, count, half};
    const struct model_run run = {&emulated_gelu_back, &args, 1, true, {{d, (size_t)count * (half ? 2 : 4)}}};
    model_run_orders(&run, 0);
    for (int64_t i = 0; i < count; i++)
        model_near(model_operand(d, i, half),
                   model_operand(before, i, half) * slope_twin(model_operand(kept, i, half)),
                   model_rounding(half, tolerance), tolerance, "slope", i);
    free(kept);
    free(before);
    free(d);
}

Test(gelu, both_ways_are_those_in_double_precision_at_every_small_size)
{
    for (int size = 1; size <= 70; size++) {
        check_forward(1 + size % 4, size, size % 2, size % 3);
        check_backward(size, size % 2);
    }
}

Test(gelu, both_ways_are_right_for_wide_rows)
{
    check_forward(3, 320, 0, true);
    check_forward(3, 257, 1, true);
    check_backward(2000, 1);
    check_backward(2000, 0);
}
