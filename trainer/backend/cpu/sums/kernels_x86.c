#include "trainer/backend/cpu/sums/kernels.h"

#include <immintrin.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

/* Bodies are written once and built for three instruction sets. Intrinsics stand only where C has no word
 * for the operation: the conversion that rounds to nearest. */
#define BODY       static inline __attribute__((always_inline))
#define FOR_AVX2   __attribute__((target("avx2")))
#define FOR_AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl")))

/* Round to nearest even, flush-to-zero and denormals-are-zero, no exceptions. */
static const unsigned fixed_mode = 0x9fc0;

static const uint32_t magnitude = 0x7fffffff;

/* ---- single elements: the definition, and the ends of pieces ---- */

BODY int32_t to_fixed(float x)
{
    if (x != x)
        return 0;
    if (x >= 0x1p31f)
        return INT32_MAX;
    if (x < -0x1p31f)
        return INT32_MIN;
    return _mm_cvtss_si32(_mm_set_ss(x));
}

BODY uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

BODY float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

BODY uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

BODY uint32_t add_fixed_from(const struct kernel_lane_args *a, int i, uint32_t max)
{
    for (; i < a->count; i++) {
        uint32_t q = (uint32_t)to_fixed(a->grads[i] * a->scale);
        a->words[i] = a->store ? q : a->words[i] + q;
        max = larger(max, bits_of(a->grads[i]) & magnitude);
    }
    return max;
}

/* ---- a lane's gradient to integers ---- */

/* cvtps gives 0x80000000 for all that int32 cannot hold: inverted where x is large, cleared where it is
 * NaN. */
static uint32_t add_fixed_sse2(const struct kernel_lane_args *in)
{
    const struct kernel_lane_args a = *in;
    const __m128 scale = _mm_set1_ps(a.scale), limit = _mm_set1_ps(0x1p31f);
    const __m128i mask = _mm_set1_epi32((int)magnitude);
    __m128i max = _mm_setzero_si128();
    int i = 0;
    for (; i + 4 <= a.count; i += 4) {
        __m128 g = _mm_loadu_ps(a.grads + i), x = _mm_mul_ps(g, scale);
        __m128i *out = (__m128i *)(a.words + i);
        __m128i q = _mm_xor_si128(_mm_cvtps_epi32(x), _mm_castps_si128(_mm_cmpge_ps(x, limit)));
        q = _mm_andnot_si128(_mm_castps_si128(_mm_cmpunord_ps(x, x)), q);
        _mm_storeu_si128(out, a.store ? q : _mm_add_epi32(_mm_loadu_si128(out), q));
        __m128i size = _mm_and_si128(_mm_castps_si128(g), mask);
        __m128i more = _mm_cmpgt_epi32(size, max);
        max = _mm_or_si128(_mm_and_si128(more, size), _mm_andnot_si128(more, max));
    }
    uint32_t part[4], all = 0;
    _mm_storeu_si128((__m128i *)part, max);
    for (int j = 0; j < 4; j++)
        all = larger(all, part[j]);
    return add_fixed_from(&a, i, all);
}

FOR_AVX2 static uint32_t add_fixed_avx2(const struct kernel_lane_args *in)
{
    const struct kernel_lane_args a = *in;
    const __m256 scale = _mm256_set1_ps(a.scale), limit = _mm256_set1_ps(0x1p31f);
    const __m256i mask = _mm256_set1_epi32((int)magnitude);
    __m256i max = _mm256_setzero_si256();
    int i = 0;
    for (; i + 8 <= a.count; i += 8) {
        __m256 g = _mm256_loadu_ps(a.grads + i), x = _mm256_mul_ps(g, scale);
        __m256i *out = (__m256i *)(a.words + i);
        __m256 large = _mm256_cmp_ps(x, limit, _CMP_GE_OQ), nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
        __m256i q = _mm256_xor_si256(_mm256_cvtps_epi32(x), _mm256_castps_si256(large));
        q = _mm256_andnot_si256(_mm256_castps_si256(nan), q);
        _mm256_storeu_si256(out, a.store ? q : _mm256_add_epi32(_mm256_loadu_si256(out), q));
        max = _mm256_max_epi32(max, _mm256_and_si256(_mm256_castps_si256(g), mask));
    }
    uint32_t part[8], all = 0;
    _mm256_storeu_si256((__m256i *)part, max);
    for (int j = 0; j < 8; j++)
        all = larger(all, part[j]);
    return add_fixed_from(&a, i, all);
}

FOR_AVX512 static uint32_t add_fixed_avx512(const struct kernel_lane_args *in)
{
    const struct kernel_lane_args a = *in;
    const __m512 scale = _mm512_set1_ps(a.scale), limit = _mm512_set1_ps(0x1p31f);
    const __m512i mask = _mm512_set1_epi32((int)magnitude), top = _mm512_set1_epi32(INT32_MAX);
    __m512i max = _mm512_setzero_si512();
    int i = 0;
    for (; i + 16 <= a.count; i += 16) {
        __m512 g = _mm512_loadu_ps(a.grads + i), x = _mm512_mul_ps(g, scale);
        uint32_t *out = a.words + i;
        __m512i q =
            _mm512_mask_mov_epi32(_mm512_cvtps_epi32(x), _mm512_cmp_ps_mask(x, limit, _CMP_GE_OQ), top);
        q = _mm512_maskz_mov_epi32(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), q);
        _mm512_storeu_si512(out, a.store ? q : _mm512_add_epi32(_mm512_loadu_si512(out), q));
        max = _mm512_max_epi32(max, _mm512_and_si512(_mm512_castps_si512(g), mask));
    }
    return add_fixed_from(&a, i, (uint32_t)_mm512_reduce_max_epi32(max));
}

/* ---- a lane's gradient added as it is ---- */

BODY uint32_t add_float_body(const struct kernel_lane_args *in)
{
    const struct kernel_lane_args a = *in; /* a copy: stores to words may not change it */
    const float *restrict grads = a.grads;
    uint32_t *restrict words = a.words;
    const uint32_t keep = a.store ? 0 : UINT32_MAX;
    int32_t max = 0;
    for (int i = 0; i < a.count; i++) {
        int32_t size = (int32_t)(bits_of(grads[i]) & magnitude);
        words[i] = bits_of(float_of(words[i] & keep) + grads[i] * a.scale);
        max = max > size ? max : size;
    }
    return (uint32_t)max;
}

/* ---- sums of a piece: sixteen columns, added in one fixed order ---- */

enum { COLUMNS = 16, HALF = COLUMNS / 2 };
typedef double doubles __attribute__((vector_size(HALF * sizeof(double))));
typedef int32_t fixeds __attribute__((vector_size(HALF * sizeof(int32_t))));
typedef float floats __attribute__((vector_size(HALF * sizeof(float))));

BODY double add_columns(double *column)
{
    for (int width = COLUMNS / 2; width > 0; width /= 2)
        for (int j = 0; j < width; j++)
            column[j] += column[j + width];
    return column[0];
}

BODY double square_of(uint32_t word, bool is_float)
{
    double x = is_float ? (double)float_of(word) : (double)(int32_t)word;
    return x * x;
}

BODY void add_squares(doubles *column, const uint32_t *words, bool is_float)
{
    floats as_float;
    fixeds as_fixed;
    memcpy(&as_float, words, sizeof as_float);
    memcpy(&as_fixed, words, sizeof as_fixed);
    doubles x =
        is_float ? __builtin_convertvector(as_float, doubles) : __builtin_convertvector(as_fixed, doubles);
    *column += x * x;
}

BODY double squares_body(const uint32_t *words, int count, bool is_float)
{
    doubles half[2] = {{0}, {0}};
    double column[COLUMNS];
    int i = 0;
    for (; i + COLUMNS <= count; i += COLUMNS) {
        add_squares(&half[0], words + i, is_float);
        add_squares(&half[1], words + i + HALF, is_float);
    }
    memcpy(column, half, sizeof column);
    for (int j = 0; i + j < count; j++)
        column[j] += square_of(words[i + j], is_float);
    return add_columns(column);
}

BODY struct kernel_sums sums_body(const uint32_t *words, int count, bool is_float)
{
    uint64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += words[i];
    return (struct kernel_sums){squares_body(words, count, is_float), sum};
}

/* ---- AdamW ---- */

struct moved {
    float param, m, v;
};

BODY struct moved move(const struct kernel_adamw *c, uint32_t word, struct moved old, bool is_float)
{
    float g = (is_float ? float_of(word) : (float)(int32_t)word) * c->unit * c->clip;
    float m = c->beta1 * old.m + c->rest1 * g;
    float v = c->beta2 * old.v + c->rest2 * g * g;
    float size = sqrtf(v) * c->bias2 + c->epsilon;
    return (struct moved){old.param * c->keep - c->rate * (m / size), m, v};
}

BODY void adamw_in_place(const struct kernel_adamw_args *a, const struct kernel_adamw *in, bool is_float)
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

/* The pointers are parameters because there alone the compiler believes `restrict`; without it, seven arrays
 * are too many for it to compare. */
BODY void move_elsewhere(const struct kernel_adamw *in, int count, bool is_float,
                         const uint32_t *restrict words, const float *restrict params,
                         const float *restrict m, const float *restrict v, float *restrict to_params,
                         float *restrict to_m, float *restrict to_v)
{
    const struct kernel_adamw c = *in;
    for (int i = 0; i < count; i++) {
        struct moved now = move(&c, words[i], (struct moved){params[i], m[i], v[i]}, is_float);
        to_params[i] = now.param;
        to_m[i] = now.m;
        to_v[i] = now.v;
    }
}

BODY void adamw_elsewhere(const struct kernel_adamw_args *a, const struct kernel_adamw_to *to,
                          const struct kernel_adamw *c, bool is_float)
{
    move_elsewhere(c, a->count, is_float, a->words, a->params, a->m, a->v, to->params, to->m, to->v);
}

/* ---- one function for each instruction set ---- */

enum operation { ADD_FIXED, ADD_FLOAT, SUMS_FIXED, SUMS_FLOAT, ADAMW_FIXED, ADAMW_FLOAT };

struct call {
    enum operation operation;
    const struct kernel_lane_args *lane;
    const struct kernel_adamw_args *adamw;
    const struct kernel_adamw_to *to; /* NULL: in place */
    const struct kernel_adamw *constants;
    const uint32_t *words;
    int count;
    uint32_t max;
    struct kernel_sums sums;
};

BODY void run_adamw(const struct call *c, bool is_float)
{
    if (c->to)
        adamw_elsewhere(c->adamw, c->to, c->constants, is_float);
    else
        adamw_in_place(c->adamw, c->constants, is_float);
}

BODY void run_body(struct call *c, uint32_t (*add_fixed)(const struct kernel_lane_args *a))
{
    switch (c->operation) {
    case ADD_FIXED:
        c->max = add_fixed(c->lane);
        break;
    case ADD_FLOAT:
        c->max = add_float_body(c->lane);
        break;
    case SUMS_FIXED:
        c->sums = sums_body(c->words, c->count, false);
        break;
    case SUMS_FLOAT:
        c->sums = sums_body(c->words, c->count, true);
        break;
    case ADAMW_FIXED:
        run_adamw(c, false);
        break;
    case ADAMW_FLOAT:
        run_adamw(c, true);
        break;
    }
}

static void run_sse2(struct call *c)
{
    run_body(c, add_fixed_sse2);
}

FOR_AVX2 static void run_avx2(struct call *c)
{
    run_body(c, add_fixed_avx2);
}

FOR_AVX512 static void run_avx512(struct call *c)
{
    run_body(c, add_fixed_avx512);
}

struct kernels {
    const char *name;
    void (*run)(struct call *c);
};

static const struct kernels variants[KERNEL_VARIANTS] = {
    {"SSE2", run_sse2},
    {"AVX2", run_avx2},
    {"AVX512", run_avx512},
};

const struct kernels *kernels_variant(int i)
{
    const bool here[KERNEL_VARIANTS] = {
        true,
        __builtin_cpu_supports("avx2"),
        __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"),
    };
    return here[i] ? &variants[i] : NULL;
}

const struct kernels *kernels_best(void)
{
    for (int i = KERNEL_VARIANTS - 1; i > 0; i--)
        if (kernels_variant(i))
            return kernels_variant(i);
    return &variants[0];
}

const char *kernels_name(const struct kernels *k)
{
    return k->name;
}

/* ---- calls ---- */

static void run(const struct kernels *k, struct call *c)
{
    unsigned mode = _mm_getcsr();
    _mm_setcsr(fixed_mode);
    k->run(c);
    _mm_setcsr(mode);
}

uint32_t kernel_add_fixed(const struct kernels *k, const struct kernel_lane_args *args)
{
    struct call c = {.operation = ADD_FIXED, .lane = args};
    run(k, &c);
    return c.max;
}

uint32_t kernel_add_float(const struct kernels *k, const struct kernel_lane_args *args)
{
    struct call c = {.operation = ADD_FLOAT, .lane = args};
    run(k, &c);
    return c.max;
}

struct kernel_sums kernel_sums(const struct kernels *k, const uint32_t *words, int count, bool floats_in)
{
    struct call c = {.operation = floats_in ? SUMS_FLOAT : SUMS_FIXED, .words = words, .count = count};
    run(k, &c);
    return c.sums;
}

void kernel_adamw(const struct kernels *k, const struct kernel_adamw_args *args, const struct kernel_adamw *c,
                  bool floats_in)
{
    struct call call = {.operation = floats_in ? ADAMW_FLOAT : ADAMW_FIXED, .adamw = args, .constants = c};
    run(k, &call);
}

void kernel_adamw_to(const struct kernels *k, const struct kernel_adamw_args *args,
                     const struct kernel_adamw_to *to, const struct kernel_adamw *c, bool floats_in)
{
    struct call call = {
        .operation = floats_in ? ADAMW_FLOAT : ADAMW_FIXED, .adamw = args, .to = to, .constants = c};
    run(k, &call);
}
