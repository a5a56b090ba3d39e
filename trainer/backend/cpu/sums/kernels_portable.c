/* The loops in plain C, for processors that have none of their own: one variant, whose bits are those of
 * kernels_x86.c (kernels_test.c compares them on x86-64). The compiler may use vectors. What a processor does
 * with numbers at the edge of the denormal ones, and with NaN, is its own: docs/exactness.md. */
#include "trainer/backend/cpu/sums/kernels.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "common/os/cpu.h"
#include "trainer/exact/proof.h"

static const uint32_t magnitude = 0x7fffffff;

/* ---- single elements ---- */

static inline uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* rintf rounds to nearest even: that is the mode of each call. */
static inline int32_t to_fixed(float x)
{
    if (x != x)
        return 0;
    if (x >= 0x1p31f)
        return INT32_MAX;
    if (x < -0x1p31f)
        return INT32_MIN;
    return (int32_t)rintf(x);
}

struct moved {
    float param, m, v;
};

static inline struct moved move(const struct kernel_adamw *c, uint32_t word, struct moved old, bool is_float)
{
    float g = (is_float ? float_of(word) : (float)(int32_t)word) * c->unit * c->clip;
    float m = c->beta1 * old.m + c->rest1 * g;
    float v = c->beta2 * old.v + c->rest2 * g * g;
    float size = sqrtf(v) * c->bias2 + c->epsilon;
    return (struct moved){old.param * c->keep - c->rate * (m / size), m, v};
}

/* ---- loops ---- */

static struct kernel_lane add_fixed(const struct kernel_lane_args *in)
{
    const struct kernel_lane_args a = *in; /* a copy: stores to words may not change it */
    const float *restrict grads = a.grads;
    uint32_t *restrict words = a.words;
    const uint32_t keep = a.store ? 0 : UINT32_MAX;
    uint32_t max = 0;
    uint64_t proof = 0;
    for (int i = 0; i < a.count; i++) {
        uint32_t size = bits_of(grads[i]) & magnitude, q = (uint32_t)to_fixed(grads[i] * a.scale);
        words[i] = (words[i] & keep) + q;
        proof += proof_word(a.at + (uint64_t)i, q);
        max = max > size ? max : size;
    }
    return (struct kernel_lane){max, proof};
}

static struct kernel_lane add_float(const struct kernel_lane_args *in)
{
    const struct kernel_lane_args a = *in;
    const float *restrict grads = a.grads;
    uint32_t *restrict words = a.words;
    const uint32_t keep = a.store ? 0 : UINT32_MAX;
    uint32_t max = 0;
    for (int i = 0; i < a.count; i++) {
        uint32_t size = bits_of(grads[i]) & magnitude;
        words[i] = bits_of(float_of(words[i] & keep) + grads[i] * a.scale);
        max = max > size ? max : size;
    }
    return (struct kernel_lane){.max = max};
}

enum { COLUMNS = 16 };

/* Sixteen columns, added in one fixed order. */
static double add_squares(const uint32_t *words, int count)
{
    double column[COLUMNS] = {0};
    int i = 0;
    for (; i + COLUMNS <= count; i += COLUMNS)
        for (int j = 0; j < COLUMNS; j++) {
            double x = (double)float_of(words[i + j]);
            column[j] += x * x;
        }
    for (int j = 0; i + j < count; j++) {
        double x = (double)float_of(words[i + j]);
        column[j] += x * x;
    }
    for (int width = COLUMNS / 2; width > 0; width /= 2)
        for (int j = 0; j < width; j++)
            column[j] += column[j + width];
    return column[0];
}

/* The halves of each square apart: 2^20 of them fit 64 bits. */
static struct kernel_sums sum_fixed(const struct kernel_sums_args *a)
{
    uint64_t low = 0, high = 0, sum = 0, proof = 0;
    for (int i = 0; i < a->count; i++) {
        int64_t word = (int32_t)a->words[i];
        uint64_t square = (uint64_t)(word * word);
        low += (uint32_t)square;
        high += square >> 32;
        sum += a->words[i];
        proof += proof_word(a->at + (uint64_t)i, a->words[i]);
    }
    struct wide square = wide_add((struct wide){high >> 32, high << 32}, (struct wide){0, low});
    return (struct kernel_sums){.square_fixed = square, .sum = sum, .proof = proof};
}

static struct kernel_sums sum_floats(const struct kernel_sums_args *a)
{
    struct kernel_sums sums = {.square = add_squares(a->words, a->count)};
    for (int i = 0; i < a->count; i++)
        sums.sum += a->words[i];
    return sums;
}

static void adamw_in_place(const struct kernel_adamw_args *a, const struct kernel_adamw *in, bool is_float)
{
    const struct kernel_adamw c = *in;
    const uint32_t *restrict words = a->words;
    float *restrict params = a->params, *restrict m = a->m, *restrict v = a->v;
    for (int i = 0; i < a->count; i++) {
        struct moved now = move(&c, words[i], (struct moved){params[i], m[i], v[i]}, is_float);
        params[i] = now.param;
        m[i] = now.m;
        v[i] = now.v;
    }
}

static void adamw_elsewhere(const struct kernel_adamw_args *a, const struct kernel_adamw_to *to,
                            const struct kernel_adamw *in, bool is_float)
{
    const struct kernel_adamw c = *in;
    for (int i = 0; i < a->count; i++) {
        struct moved now = move(&c, a->words[i], (struct moved){a->params[i], a->m[i], a->v[i]}, is_float);
        to->params[i] = now.param;
        to->m[i] = now.m;
        to->v[i] = now.v;
    }
}

/* ---- variants: there is one ---- */

struct kernels {
    const char *name;
};

static const struct kernels portable = {"portable"};

const struct kernels *kernels_variant(int i)
{
    return i == 0 ? &portable : NULL;
}

const struct kernels *kernels_best(void)
{
    return &portable;
}

const char *kernels_name(const struct kernels *k)
{
    return k->name;
}

/* ---- calls, each in the fixed mode. The loops are functions that the compiler can't move out of it ---- */

#define APART __attribute__((noinline))

static APART struct kernel_lane run_add(const struct kernel_lane_args *args, bool is_float)
{
    return is_float ? add_float(args) : add_fixed(args);
}

static APART struct kernel_sums run_sums(const struct kernel_sums_args *args)
{
    return args->floats ? sum_floats(args) : sum_fixed(args);
}

static APART void run_adamw(const struct kernel_adamw_args *a, const struct kernel_adamw_to *to,
                            const struct kernel_adamw *c, bool is_float)
{
    if (to && is_float)
        adamw_elsewhere(a, to, c, true);
    else if (to)
        adamw_elsewhere(a, to, c, false);
    else if (is_float)
        adamw_in_place(a, c, true);
    else
        adamw_in_place(a, c, false);
}

static uint32_t mode_begin(void)
{
    uint32_t mode = cpu_float_mode();
    cpu_float_mode_set(cpu_float_mode_fixed);
    return mode;
}

static struct kernel_lane add(const struct kernel_lane_args *args, bool is_float)
{
    uint32_t mode = mode_begin();
    struct kernel_lane lane = run_add(args, is_float);
    cpu_float_mode_set(mode);
    return lane;
}

struct kernel_lane kernel_add_fixed(const struct kernels *k, const struct kernel_lane_args *args)
{
    (void)k;
    return add(args, false);
}

struct kernel_lane kernel_add_float(const struct kernels *k, const struct kernel_lane_args *args)
{
    (void)k;
    return add(args, true);
}

struct kernel_sums kernel_sums(const struct kernels *k, const struct kernel_sums_args *args)
{
    (void)k;
    uint32_t mode = mode_begin();
    struct kernel_sums sums = run_sums(args);
    cpu_float_mode_set(mode);
    return sums;
}

uint64_t kernel_prove(const struct kernels *k, const float *params, const float *m, const float *v, int count)
{
    (void)k;
    return proof_piece(params, m, v, count);
}

void kernel_adamw(const struct kernels *k, const struct kernel_adamw_args *args, const struct kernel_adamw *c,
                  bool floats)
{
    kernel_adamw_to(k, args, NULL, c, floats);
}

void kernel_adamw_to(const struct kernels *k, const struct kernel_adamw_args *args,
                     const struct kernel_adamw_to *to, const struct kernel_adamw *c, bool floats)
{
    (void)k;
    uint32_t mode = mode_begin();
    run_adamw(args, to, c, floats);
    cpu_float_mode_set(mode);
}
