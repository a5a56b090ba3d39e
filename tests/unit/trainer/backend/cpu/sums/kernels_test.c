#include "trainer/backend/cpu/sums/kernels.h"

#include <criterion/criterion.h>
#include <fenv.h>
#include <math.h>
#include <string.h>

#include "common/base/prng.h"
#include "common/os/cpu.h"
#include "trainer/exact/proof.h"

enum { MOST = 77 };

static const float odd_values[] = {
    0.0f,   -0.0f,     0.5f,       1.5f,      2.5f,    -0.5f,          -1.5f,    -2.5f,           0.49999997f,
    1e-40f, NAN,       INFINITY,   -INFINITY, 0x1p31f, 0x1.fffffep30f, -0x1p31f, -0x1.000002p31f, 3e38f,
    -3e38f, 0x1p-126f, 8388609.0f,
};
enum { ODD_VALUES = sizeof odd_values / sizeof *odd_values };

/* What the header promises, in the plainest way. */
static int32_t slow_fixed(float x)
{
    if (isnan(x))
        return 0;
    double r = nearbyint((double)x);
    return r > INT32_MAX ? INT32_MAX : r < INT32_MIN ? INT32_MIN : (int32_t)r;
}

static float random_value(uint64_t *seed)
{
    if (prng_below(seed, 4) == 0)
        return odd_values[prng_below(seed, ODD_VALUES)];
    return (float)(prng_unit(seed) - 0.5) * 1e3f;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void check_fixed(const struct kernels *k, int count, float scale, bool store, uint64_t *seed)
{
    float grads[MOST];
    uint32_t words[MOST], wanted[MOST], max = 0;
    uint64_t at = splitmix64(seed), proof = 0;
    for (int i = 0; i < count; i++) {
        grads[i] = random_value(seed);
        words[i] = (uint32_t)splitmix64(seed);
        int32_t q = slow_fixed(grads[i] * scale);
        wanted[i] = (store ? 0 : words[i]) + (uint32_t)q;
        proof += (uint64_t)(int64_t)q * ((((uint32_t)at + (uint32_t)i) * 0x9e3779b1u >> 2) | 1);
        uint32_t size = bits_of(grads[i]) & 0x7fffffff;
        max = size > max ? size : max;
    }
    struct kernel_lane got =
        kernel_add_fixed(k, &(struct kernel_lane_args){grads, words, count, scale, store, at});
    cr_assert_eq(got.max, max, "%s, %d elements", kernels_name(k), count);
    cr_assert_eq(got.proof, proof, "%s, %d elements from %llu", kernels_name(k), count,
                 (unsigned long long)at);
    for (int i = 0; i < count; i++)
        cr_assert_eq(words[i], wanted[i], "%s: %g * %g gives %d", kernels_name(k), (double)grads[i],
                     (double)scale, (int)words[i]);
}

Test(kernels, rounding_and_saturation_are_the_same_on_every_instruction_set)
{
    const float scales[] = {1.0f, 0x1p20f / 7, 0x1p-90f, 0x1p94f};
    uint64_t seed = 5;
    for (int v = 0; v < KERNEL_VARIANTS; v++)
        for (int count = 0; kernels_variant(v) && count <= MOST; count++)
            for (int s = 0; s < 4; s++)
                check_fixed(kernels_variant(v), count, scales[s], count % 2, &seed);
}

Test(kernels, the_maximum_lets_nan_and_infinity_win)
{
    for (int v = 0; v < KERNEL_VARIANTS; v++) {
        if (!kernels_variant(v))
            continue;
        for (int at = 0; at < 40; at++) {
            float grads[40] = {0};
            uint32_t words[40] = {0};
            grads[(at + 1) % 40] = 3e38f;
            grads[at] = at % 2 ? NAN : -INFINITY;
            const struct kernel_lane_args args = {grads, words, 40, 1, 1, 0};
            cr_assert_geq(kernel_add_fixed(kernels_variant(v), &args).max, 0x7f800000);
            cr_assert_geq(kernel_add_float(kernels_variant(v), &args).max, 0x7f800000);
        }
    }
}

static struct kernel_sums sums_of(const struct kernels *k, const uint32_t *words, int count, bool floats)
{
    return kernel_sums(k, &(struct kernel_sums_args){words, count, floats, 12345});
}

static bool same_sums(struct kernel_sums a, struct kernel_sums b)
{
    return a.square == b.square && a.square_fixed.high == b.square_fixed.high &&
           a.square_fixed.low == b.square_fixed.low && a.sum == b.sum && a.proof == b.proof;
}

Test(kernels, sums_of_floats_have_one_order_on_every_instruction_set)
{
    uint64_t seed = 9;
    for (int count = 0; count <= MOST; count++) {
        uint32_t floats[MOST];
        double square = 0;
        for (int i = 0; i < count; i++) {
            float value = (float)(prng_unit(&seed) - 0.5);
            floats[i] = bits_of(value);
            square += (double)value * (double)value;
        }
        const struct kernel_sums first = sums_of(kernels_variant(0), floats, count, true);
        cr_assert_float_eq(first.square, square, square * 1e-14);
        for (int v = 1; v < KERNEL_VARIANTS && kernels_variant(v); v++)
            cr_assert(same_sums(first, sums_of(kernels_variant(v), floats, count, true)));
    }
}

/* Of the largest squares, too: a piece of INT32_MIN adds up to 2^74. */
Test(kernels, sums_of_integers_are_exact_on_every_instruction_set)
{
    enum { PIECE = 4096 };
    static uint32_t words[PIECE];
    uint64_t seed = 9;
    for (int count = 0; count <= PIECE; count += count < MOST ? 1 : 1339) {
        for (int large = 0; large < 2; large++) {
            struct wide square = {0, 0};
            uint64_t sum = 0, proof = 0;
            for (int i = 0; i < count; i++) {
                words[i] = large ? 0x80000000u : (uint32_t)splitmix64(&seed);
                int64_t word = (int32_t)words[i];
                square = wide_add(square, (struct wide){0, (uint64_t)(word * word)});
                sum += words[i];
                proof += proof_word(12345 + (uint64_t)i, words[i]);
            }
            const struct kernel_sums wanted = {.square_fixed = square, .sum = sum, .proof = proof};
            for (int v = 0; v < KERNEL_VARIANTS && kernels_variant(v); v++)
                cr_assert(same_sums(wanted, sums_of(kernels_variant(v), words, count, false)), "%s, %d",
                          kernels_name(kernels_variant(v)), count);
        }
    }
}

/* Element by element. */
static uint64_t plain_proof(float x[3][MOST], int count)
{
    static const uint64_t factor[3] = {1, 0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu};
    uint64_t sum = 0;
    for (int a = 0; a < 3; a++)
        for (int i = 0; i < count; i++)
            sum += factor[a] * bits_of(x[a][i]);
    return sum;
}

Test(kernels, the_sum_of_a_states_bits_is_the_same_on_every_instruction_set_and_sees_each_bit)
{
    float x[3][MOST];
    uint64_t seed = 21;
    for (int a = 0; a < 3; a++)
        for (int i = 0; i < MOST; i++)
            x[a][i] = random_value(&seed);
    for (int count = 0; count <= MOST; count++) {
        uint64_t wanted = plain_proof(x, count);
        cr_assert_eq(proof_piece(x[0], x[1], x[2], count), wanted);
        for (int v = 0; v < KERNEL_VARIANTS && kernels_variant(v); v++)
            cr_assert_eq(kernel_prove(kernels_variant(v), x[0], x[1], x[2], count), wanted);
        if (!count)
            continue;
        float *at = &x[count % 3][count - 1], old = *at;
        uint32_t bits = bits_of(old) ^ 1u << count % 32;
        memcpy(at, &bits, sizeof bits);
        cr_assert_neq(kernel_prove(kernels_best(), x[0], x[1], x[2], count), wanted);
        *at = old;
    }
}

struct adamw_case {
    uint32_t words[MOST];
    float params[MOST], m[MOST], v[MOST];
};

static const struct kernel_adamw constants = {
    .unit = 0x1p-25f,
    .clip = 0.7f,
    .beta1 = 0.9f,
    .rest1 = 0.1f,
    .beta2 = 0.95f,
    .rest2 = 0.05f,
    .bias2 = 1.3f,
    .epsilon = 1e-8f,
    .rate = 2e-3f,
    .keep = 0.9999f,
};

static void fill_adamw(struct adamw_case *c)
{
    uint64_t seed = 3;
    for (int i = 0; i < MOST; i++) {
        c->words[i] = (uint32_t)(int32_t)((prng_unit(&seed) - 0.5) * (i % 3 ? 1e8 : 3));
        c->params[i] = (float)(prng_unit(&seed) - 0.5);
        c->m[i] = (float)(prng_unit(&seed) - 0.5) * 0.1f;
        c->v[i] = (float)prng_unit(&seed) * (i % 5 ? 0.01f : 1e-38f); /* some on the way to denormals */
    }
}

Test(kernels, adamw_gives_the_same_bits_on_every_instruction_set_and_in_every_cut)
{
    struct adamw_case first, other;
    fill_adamw(&first);
    kernel_adamw(kernels_variant(0),
                 &(struct kernel_adamw_args){first.words, first.params, first.m, first.v, MOST}, &constants,
                 false);
    for (int v = 0; v < KERNEL_VARIANTS && kernels_variant(v); v++) {
        for (int cut = 0; cut <= MOST; cut++) {
            fill_adamw(&other);
            kernel_adamw(kernels_variant(v),
                         &(struct kernel_adamw_args){other.words, other.params, other.m, other.v, cut},
                         &constants, false);
            kernel_adamw(kernels_variant(v),
                         &(struct kernel_adamw_args){other.words + cut, other.params + cut, other.m + cut,
                                                     other.v + cut, MOST - cut},
                         &constants, false);
            cr_assert(!memcmp(&first, &other, sizeof first), "%s cut at %d", kernels_name(kernels_variant(v)),
                      cut);
        }
    }
}

Test(kernels, adamw_to_another_place_gives_the_same_bits_and_leaves_the_old_ones)
{
    struct adamw_case in_place, old, from, to;
    for (int v = 0; v < KERNEL_VARIANTS && kernels_variant(v); v++) {
        fill_adamw(&in_place);
        fill_adamw(&old);
        fill_adamw(&from);
        to = from;
        kernel_adamw(
            kernels_variant(v),
            &(struct kernel_adamw_args){in_place.words, in_place.params, in_place.m, in_place.v, MOST},
            &constants, false);
        kernel_adamw_to(kernels_variant(v),
                        &(struct kernel_adamw_args){from.words, from.params, from.m, from.v, MOST},
                        &(struct kernel_adamw_to){to.params, to.m, to.v}, &constants, false);
        cr_assert(!memcmp(&to, &in_place, sizeof to), "%s", kernels_name(kernels_variant(v)));
        cr_assert(!memcmp(&from, &old, sizeof from));
    }
}

Test(kernels, the_callers_rounding_and_denormal_settings_do_not_count)
{
    struct adamw_case first, other;
    fill_adamw(&first);
    fill_adamw(&other);
    kernel_adamw(kernels_best(),
                 &(struct kernel_adamw_args){first.words, first.params, first.m, first.v, MOST}, &constants,
                 false);
    fesetround(FE_TOWARDZERO);
    cr_assert_not(cpu_flushes_denormals(), "a program begins with denormals kept");
    uint32_t mode = cpu_float_mode();
    kernel_adamw(kernels_best(),
                 &(struct kernel_adamw_args){other.words, other.params, other.m, other.v, MOST}, &constants,
                 false);
    cr_assert_eq(cpu_float_mode(), mode, "and they are given back");
    fesetround(FE_TONEAREST);
    cr_assert(!memcmp(&first, &other, sizeof first));
}

Test(kernels, adamw_agrees_with_double_precision)
{
    struct adamw_case c, old;
    fill_adamw(&c);
    old = c;
    kernel_adamw(kernels_best(), &(struct kernel_adamw_args){c.words, c.params, c.m, c.v, MOST}, &constants,
                 false);
    for (int i = 0; i < MOST; i++) {
        double g = (double)(int32_t)c.words[i] * 0x1p-25 * (double)0.7f;
        double m = (double)0.9f * (double)old.m[i] + (double)0.1f * g;
        double v = (double)0.95f * (double)old.v[i] + (double)0.05f * g * g;
        double p =
            (double)old.params[i] * (double)0.9999f - (double)2e-3f * m / (sqrt(v) * (double)1.3f + 1e-8);
        cr_assert_float_eq(c.m[i], m, fabs(m) * 1e-5 + 1e-9);
        cr_assert_float_eq(c.v[i], v, v * 1e-6 + 1e-37);
        if (v > 1e-30) /* below, flushed denormals make sqrt(v) another number */
            cr_assert_float_eq(c.params[i], p, fabs(p) * 2e-6 + 1e-7, "%d: %g %g", i, (double)c.params[i], p);
    }
}

/* kernels_plain.c */
const struct kernels *plain_best(void);
struct kernel_lane plain_add_fixed(const struct kernels *k, const struct kernel_lane_args *args);
struct kernel_lane plain_add_float(const struct kernels *k, const struct kernel_lane_args *args);
struct kernel_sums plain_sums(const struct kernels *k, const struct kernel_sums_args *args);
void plain_adamw(const struct kernels *k, const struct kernel_adamw_args *args, const struct kernel_adamw *c,
                 bool floats);
void plain_adamw_to(const struct kernels *k, const struct kernel_adamw_args *args,
                    const struct kernel_adamw_to *to, const struct kernel_adamw *c, bool floats);

Test(kernels, the_portable_loops_round_and_saturate_alike)
{
    const float scales[] = {1.0f, 0x1p20f / 7, 0x1p-90f, 0x1p94f};
    uint64_t seed = 13;
    for (int round = 0; round < 4 * MOST; round++) {
        float grads[MOST];
        uint32_t words[MOST], plain[MOST];
        int count = round / 4;
        for (int i = 0; i < count; i++) {
            grads[i] = random_value(&seed);
            words[i] = plain[i] = (uint32_t)splitmix64(&seed);
        }
        const struct kernel_lane_args args = {
            grads, words, count, scales[round % 4], round % 3 == 0, splitmix64(&seed)};
        struct kernel_lane_args plain_args = args;
        plain_args.words = plain;
        struct kernel_lane best = kernel_add_fixed(kernels_best(), &args);
        struct kernel_lane other = plain_add_fixed(plain_best(), &plain_args);
        cr_assert(best.max == other.max && best.proof == other.proof);
        cr_assert_arr_eq(words, plain, (size_t)count * sizeof *words);
        for (int i = 0; i < count; i++)
            words[i] = plain[i] = bits_of((float)prng_unit(&seed));
        cr_assert_eq(kernel_add_float(kernels_best(), &args).max,
                     plain_add_float(plain_best(), &plain_args).max);
        for (int i = 0; i < count; i++)
            cr_assert(words[i] == plain[i] ||
                      (isnan(grads[i]) && (words[i] & plain[i] & 0x7f800000) == 0x7f800000));
    }
}

Test(kernels, the_portable_loops_make_the_same_sums)
{
    uint64_t seed = 17;
    for (int count = 0; count <= MOST; count++) {
        uint32_t words[2][MOST];
        for (int i = 0; i < count; i++) {
            words[0][i] = (uint32_t)splitmix64(&seed);
            words[1][i] = bits_of((float)(prng_unit(&seed) - 0.5));
        }
        for (int floats = 0; floats < 2; floats++) {
            const struct kernel_sums_args args = {words[floats], count, floats, (uint64_t)count << 30};
            cr_assert(same_sums(kernel_sums(kernels_best(), &args), plain_sums(plain_best(), &args)), "%d",
                      count);
        }
    }
}

Test(kernels, the_portable_loops_move_the_weights_to_the_same_bits)
{
    struct adamw_case best, plain, from, to;
    for (int floats = 0; floats < 2; floats++) {
        fill_adamw(&best);
        for (int i = 0; floats && i < MOST; i++)
            best.words[i] = bits_of((float)(int32_t)best.words[i]);
        plain = from = to = best;
        fesetround(FE_DOWNWARD); /* is nobody's business */
        kernel_adamw(kernels_best(),
                     &(struct kernel_adamw_args){best.words, best.params, best.m, best.v, MOST}, &constants,
                     floats);
        plain_adamw(plain_best(),
                    &(struct kernel_adamw_args){plain.words, plain.params, plain.m, plain.v, MOST},
                    &constants, floats);
        plain_adamw_to(plain_best(),
                       &(struct kernel_adamw_args){from.words, from.params, from.m, from.v, MOST},
                       &(struct kernel_adamw_to){to.params, to.m, to.v}, &constants, floats);
        fesetround(FE_TONEAREST);
        cr_assert(!memcmp(&best, &plain, sizeof best));
        cr_assert(!memcmp(&best, &to, sizeof best));
    }
}
