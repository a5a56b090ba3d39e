#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/prng.h"
#include "tests/unit/trainer/backend/cpu/model/reference.h"
#include "trainer/backend/cpu/model/attention.h"
#include "trainer/backend/cpu/model/bias.h"
#include "trainer/backend/cpu/model/cross_entropy.h"
#include "trainer/backend/cpu/model/embedding.h"
#include "trainer/backend/cpu/model/gelu.h"
#include "trainer/backend/cpu/model/layernorm.h"
#include "trainer/backend/cpu/model/matmul.h"
#include "trainer/backend/cpu/model/scalar.h"
#include "trainer/backend/cpu/model/vec.h"

/* Distance in units in the last place of the float that is nearest to `wanted`. */
static double ulps(float got, double wanted)
{
    float nearest = (float)wanted;
    double unit = nextafterf(fabsf(nearest), INFINITY) - (double)fabsf(nearest);
    return fabs(got - wanted) / unit;
}

static void fill(float *x, int n, double reach, uint64_t seed)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)(reach * (2 * prng_unit(&seed) - 1));
}

static float exp_of(float x)
{
    vec v = vec_exp(vec_set(x));
    return v[0];
}

Test(operations, exp_is_within_two_units_in_the_last_place)
{
    double worst = 0;
    for (double x = -87; x < 88; x += 0.00037)
        worst = fmax(worst, ulps(exp_of((float)x), exp((double)(float)x)));
    cr_assert(worst < 2, "%g units", worst);
    cr_assert_eq(exp_of(0), 1.0f);
}

Test(operations, exp_of_what_is_no_number_is_no_number)
{
    cr_assert(isnan(exp_of(NAN)));
    cr_assert(isnan(exp_of(-NAN)));
    cr_assert(isfinite(exp_of(1e30f)));
    cr_assert(exp_of(-1e30f) < 1e-37f);
}

Test(operations, log_agrees_with_the_c_library)
{
    for (double x = 1e-300; x < 1e300; x *= 1.37)
        cr_assert(fabs(scalar_log(x) - log(x)) <= 1e-15 * fmax(1, fabs(log(x))), "log(%g)", x);
    for (double x = 0.5; x < 2; x += 0.00071)
        cr_assert(fabs(scalar_log(x) - log(x)) <= 4e-16 * fmax(1, fabs(log(x))), "log(%g)", x);
    cr_assert_eq(scalar_log(1), 0);
    cr_assert(isnan(scalar_log(NAN)));
}

Test(operations, the_circle_agrees_with_the_c_library)
{
    for (double turn = 0; turn < 1; turn += 0.00037) {
        double c, s;
        scalar_circle(turn, &c, &s);
        cr_assert(fabs(c - cos(2 * M_PI * turn)) < 2e-15 && fabs(s - sin(2 * M_PI * turn)) < 2e-15, "%g",
                  turn);
    }
}

Test(operations, gelu_and_its_slope_agree_with_double_precision_also_in_the_tails)
{
    enum { N = 2003, ROWS = 1 };
    float x[N], y[N], d[N];
    fill(x, N, 12, 5);
    gelu_forward(y, x, N, ROWS, N);
    for (int i = 0; i < N; i++)
        d[i] = 1;
    gelu_backward(d, x, N, ROWS, N);
    for (int i = 0; i < N; i++) {
        double step = 1e-6, at = x[i], wanted = reference_gelu(at);
        double slope = (reference_gelu(at + step) - reference_gelu(at - step)) / (2 * step);
        cr_assert(fabs(y[i] - wanted) < 1e-6 * fabs(wanted) + 1e-7, "gelu(%g) = %g", x[i], y[i]);
        cr_assert(fabs(d[i] - slope) < 2e-6, "gelu'(%g) = %g, not %g", x[i], d[i], slope);
    }
}

Test(operations, kernels_touch_only_their_rows_and_columns)
{
    float x[3 * 40], y[3 * 40];
    fill(x, 120, 1, 1);
    for (int i = 0; i < 120; i++)
        y[i] = -7;
    gelu_forward(y + 2, x + 2, 40, 3, 19);
    for (int i = 0; i < 120; i++)
        cr_assert((y[i] == -7) == (i % 40 < 2 || i % 40 >= 21), "element %d", i);
}

Test(operations, bias_gradient_is_the_sum_of_each_column)
{
    enum { ROWS = 77, COLUMNS = 37, STRIDE = 41 };
    float y[ROWS * STRIDE], sums[COLUMNS];
    fill(y, ROWS * STRIDE, 1, 3);
    bias_gradient(sums, y, STRIDE, ROWS, COLUMNS);
    for (int j = 0; j < COLUMNS; j++) {
        double wanted = 0;
        for (int r = 0; r < ROWS; r++)
            wanted += y[r * STRIDE + j];
        cr_assert(fabs(sums[j] - wanted) < 1e-5);
    }
}

static void normalise(const float *x, int n, double *out)
{
    double mean = 0, variance = 0;
    for (int j = 0; j < n; j++)
        mean += x[j] / (double)n;
    for (int j = 0; j < n; j++)
        variance += (x[j] - mean) * (x[j] - mean) / n;
    for (int j = 0; j < n; j++)
        out[j] = (x[j] - mean) / sqrt(variance + 1e-5);
}

Test(operations, layer_norm_agrees_with_double_precision_for_every_width)
{
    for (int n = 1; n <= 70; n++) {
        float x[70], weight[70], bias[70], y[70];
        double wanted[70];
        struct layernorm_stats stats;
        fill(x, n, 3, (uint64_t)n);
        fill(weight, n, 2, 100);
        fill(bias, n, 2, 200);
        struct layernorm l = {1, n, x, weight, bias, &stats};
        layernorm_forward(&l, y, 0, 1);
        normalise(x, n, wanted);
        for (int j = 0; j < n; j++)
            cr_assert(fabs(y[j] - (wanted[j] * weight[j] + bias[j])) < 1e-5, "width %d, column %d", n, j);
    }
}

Test(operations, cross_entropy_and_its_gradient_agree_for_every_length)
{
    for (int n = 1; n <= 70; n++) {
        float logits[70], kept[70];
        double sum = 0;
        int target = n / 2;
        fill(logits, n, 20, (uint64_t)n);
        memcpy(kept, logits, sizeof kept);
        for (int j = 0; j < n; j++)
            sum += exp(kept[j]);
        float loss = cross_entropy(logits, n, target, 0.25f);
        cr_assert(fabs(loss - (log(sum) - kept[target])) < 1e-5, "length %d", n);
        for (int j = 0; j < n; j++)
            cr_assert(fabs(logits[j] - 0.25 * (exp(kept[j]) / sum - (j == target))) < 1e-6, "length %d", n);
    }
}

Test(operations, softmax_rows_agree_and_are_zero_behind_the_diagonal)
{
    for (int n = 1; n <= 70; n++) {
        float scores[80], kept[80];
        double sum = 0;
        fill(scores, 80, 30, (uint64_t)n);
        memcpy(kept, scores, sizeof kept);
        for (int j = 0; j < n; j++)
            sum += exp(0.25 * kept[j]);
        float log_sum = attention_softmax(scores, n, 75, 0.25f);
        cr_assert(fabs(log_sum - log(sum)) < 2e-6 * fmax(1, fabs(log(sum))));
        for (int j = 0; j < n; j++)
            cr_assert(fabs(scores[j] - exp(0.25 * kept[j]) / sum) < 1e-6);
        for (int j = n; j < 75; j++)
            cr_assert_eq(scores[j], 0);
        cr_assert_eq(scores[75], kept[75]);
    }
}

Test(operations, a_token_seen_twice_gets_both_its_gradients)
{
    enum { C = 20 };
    const int32_t tokens[4] = {1, 0, 1, 1};
    struct embedding e = {.tokens = tokens, .sequences = 2, .length = 2, .width = C};
    float dx[4 * C], dwte[2 * C], dwpe[2 * C];
    fill(dx, 4 * C, 1, 9);
    for (int i = 0; i < 2 * C; i++)
        dwte[i] = 5;
    embedding_backward(&e, dx, dwte, dwpe, 0, C);
    for (int j = 0; j < C; j++) {
        cr_assert_float_eq(dwte[j], 5 + dx[C + j], 1e-6);
        cr_assert_float_eq(dwte[C + j], 5 + dx[j] + dx[2 * C + j] + dx[3 * C + j], 2e-6);
        cr_assert_float_eq(dwpe[j], dx[j] + dx[2 * C + j], 1e-6);
        cr_assert_float_eq(dwpe[C + j], dx[C + j] + dx[3 * C + j], 1e-6);
    }
}

static double entry(const struct matrix *m, int64_t row, int64_t column)
{
    const float *data = m->data;
    return m->transposed ? data[column * m->stride + row] : data[row * m->stride + column];
}

static void assert_product_agrees(int m, int n, int k, bool a_transposed, bool b_transposed, bool add)
{
    float *a = calloc((size_t)m * (size_t)k, 4), *b = calloc((size_t)k * (size_t)n, 4);
    float *c = calloc((size_t)m * (size_t)n, 4), *old = calloc((size_t)m * (size_t)n, 4);
    fill(a, m * k, 1, 1);
    fill(b, k * n, 1, 2);
    fill(old, m * n, 1, 3);
    memcpy(c, old, (size_t)(m * n) * sizeof *c);
    struct product p = {.m = m, .n = n, .k = k, .c = c, .c_stride = n, .add = add};
    p.a = (struct matrix){a, a_transposed ? m : k, a_transposed};
    p.b = (struct matrix){b, b_transposed ? k : n, b_transposed};
    struct tiling tiles = matmul_tiling(&p);
    for (int i = 0; i < tiles.tiles; i++) {
        int64_t row, column;
        struct product tile = matmul_tile(&p, &tiles, i, &row, &column);
        cr_assert_eq(matmul(&tile), 0);
    }
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            double wanted = add ? old[i * n + j] : 0;
            for (int x = 0; x < k; x++)
                wanted += entry(&p.a, i, x) * entry(&p.b, x, j);
            cr_assert(fabs(c[i * n + j] - wanted) < 1e-5 * k, "%d %d of %dx%dx%d", i, j, m, n, k);
        }
    }
    free(a), free(b), free(c), free(old);
}

Test(operations, tiles_cover_a_product_of_any_shape_exactly_once)
{
    const int sizes[] = {1, 2, 17, 64, 130};
    for (int i = 0; i < 5 * 5 * 5; i++)
        for (int flags = 0; flags < 8; flags++)
            assert_product_agrees(sizes[i % 5], sizes[i / 5 % 5], sizes[i / 25], flags & 1, flags & 2,
                                  flags & 4);
    assert_product_agrees(300, 801, 40, false, true, true);
}
