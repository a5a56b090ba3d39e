/* The loops over all words on x86-64, in AVX2, AVX-512 and SSE2: a lane's gradient into whole numbers, sums
 * of squares, checksums and AdamW. All variants give the same bits (kernels.h). */
#include "trainer/backend/cpu/sums/kernels.h"

#include <immintrin.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "trainer/exact/proof.h"

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

BODY struct kernel_lane add_fixed_from(const struct kernel_lane_args *a, int i, struct kernel_lane sum)
{
    for (; i < a->count; i++) {
        uint32_t q = (uint32_t)to_fixed(a->grads[i] * a->scale);
        a->words[i] = a->store ? q : a->words[i] + q;
        sum.max = larger(sum.max, bits_of(a->grads[i]) & magnitude);
        sum.proof += proof_word(a->at + (uint64_t)i, q);
    }
    return sum;
}

/* Weights before the shift that makes them 30 bits (proof.h), of 16 neighbours. */
BODY void first_weights(uint64_t at, uint32_t *out)
{
    for (uint32_t j = 0; j < 16; j++)
        out[j] = ((uint32_t)at + j) * PROOF_FACTOR;
}

BODY uint64_t add_parts(const uint64_t *part, int n)
{
    uint64_t sum = 0;
    for (int j = 0; j < n; j++)
        sum += part[j];
    return sum;
}

/* ---- a lane's gradient to integers ---- */

/* q * weight of neighbours, added in pairs. There is only the product of unsigned ones: what a negative q is
 * too large by, 2^32, is taken off. */
static inline __m128i signed_products_sse2(__m128i q, __m128i weight)
{
    __m128i even = _mm_mul_epu32(q, weight);
    __m128i odd = _mm_mul_epu32(_mm_srli_epi64(q, 32), _mm_srli_epi64(weight, 32));
    __m128i over = _mm_and_si128(_mm_srai_epi32(q, 31), weight);
    __m128i over_odd = _mm_slli_epi64(_mm_srli_epi64(over, 32), 32);
    return _mm_sub_epi64(_mm_add_epi64(even, odd), _mm_add_epi64(_mm_slli_epi64(over, 32), over_odd));
}

/* cvtps gives 0x80000000 for all that int32 cannot hold: inverted where x is large, cleared where it is
 * NaN. */
static struct kernel_lane add_fixed_sse2(const struct kernel_lane_args *in)
{
    const struct kernel_lane_args a = *in;
    const __m128 scale = _mm_set1_ps(a.scale), limit = _mm_set1_ps(0x1p31f);
    const __m128i mask = _mm_set1_epi32((int)magnitude), one = _mm_set1_epi32(1);
    const __m128i next = _mm_set1_epi32((int)(4 * PROOF_FACTOR));
    __m128i max = _mm_setzero_si128(), proof = max;
    uint32_t start[16];
    first_weights(a.at, start);
    __m128i ramp = _mm_loadu_si128((const __m128i *)start);
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
        __m128i weight = _mm_or_si128(_mm_srli_epi32(ramp, 2), one);
        ramp = _mm_add_epi32(ramp, next);
        proof = _mm_add_epi64(proof, signed_products_sse2(q, weight));
    }
    uint32_t part[4], all = 0;
    uint64_t sums[2];
    _mm_storeu_si128((__m128i *)part, max);
    _mm_storeu_si128((__m128i *)sums, proof);
    for (int j = 0; j < 4; j++)
        all = larger(all, part[j]);
    return add_fixed_from(&a, i, (struct kernel_lane){all, add_parts(sums, 2)});
}

FOR_AVX2 static struct kernel_lane add_fixed_avx2(const struct kernel_lane_args *in)
{
    const struct kernel_lane_args a = *in;
    const __m256 scale = _mm256_set1_ps(a.scale), limit = _mm256_set1_ps(0x1p31f);
    const __m256i mask = _mm256_set1_epi32((int)magnitude), one = _mm256_set1_epi32(1);
    const __m256i next = _mm256_set1_epi32((int)(8 * PROOF_FACTOR));
    __m256i max = _mm256_setzero_si256(), even = max, odd = max;
    uint32_t start[16];
    first_weights(a.at, start);
    __m256i ramp = _mm256_loadu_si256((const __m256i *)start);
    int i = 0;
    for (; i + 8 <= a.count; i += 8) {
        __m256 g = _mm256_loadu_ps(a.grads + i), x = _mm256_mul_ps(g, scale);
        __m256i *out = (__m256i *)(a.words + i);
        __m256 large = _mm256_cmp_ps(x, limit, _CMP_GE_OQ), nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
        __m256i q = _mm256_xor_si256(_mm256_cvtps_epi32(x), _mm256_castps_si256(large));
        q = _mm256_andnot_si256(_mm256_castps_si256(nan), q);
        _mm256_storeu_si256(out, a.store ? q : _mm256_add_epi32(_mm256_loadu_si256(out), q));
        max = _mm256_max_epi32(max, _mm256_and_si256(_mm256_castps_si256(g), mask));
        __m256i weight = _mm256_or_si256(_mm256_srli_epi32(ramp, 2), one);
        ramp = _mm256_add_epi32(ramp, next);
        even = _mm256_add_epi64(even, _mm256_mul_epi32(q, weight));
        odd =
            _mm256_add_epi64(odd, _mm256_mul_epi32(_mm256_srli_epi64(q, 32), _mm256_srli_epi64(weight, 32)));
    }
    uint32_t part[8], all = 0;
    uint64_t sums[4];
    _mm256_storeu_si256((__m256i *)part, max);
    _mm256_storeu_si256((__m256i *)sums, _mm256_add_epi64(even, odd));
    for (int j = 0; j < 8; j++)
        all = larger(all, part[j]);
    return add_fixed_from(&a, i, (struct kernel_lane){all, add_parts(sums, 4)});
}

FOR_AVX512 static struct kernel_lane add_fixed_avx512(const struct kernel_lane_args *in)
{
    const struct kernel_lane_args a = *in;
    const __m512 scale = _mm512_set1_ps(a.scale), limit = _mm512_set1_ps(0x1p31f);
    const __m512i mask = _mm512_set1_epi32((int)magnitude), top = _mm512_set1_epi32(INT32_MAX);
    const __m512i one = _mm512_set1_epi32(1), next = _mm512_set1_epi32((int)(16 * PROOF_FACTOR));
    __m512i max = _mm512_setzero_si512(), even = max, odd = max;
    uint32_t start[16];
    first_weights(a.at, start);
    __m512i ramp = _mm512_loadu_si512(start);
    int i = 0;
    for (; i + 16 <= a.count; i += 16) {
        __m512 g = _mm512_loadu_ps(a.grads + i), x = _mm512_mul_ps(g, scale);
        uint32_t *out = a.words + i;
        __m512i q =
            _mm512_mask_mov_epi32(_mm512_cvtps_epi32(x), _mm512_cmp_ps_mask(x, limit, _CMP_GE_OQ), top);
        q = _mm512_maskz_mov_epi32(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), q);
        _mm512_storeu_si512(out, a.store ? q : _mm512_add_epi32(_mm512_loadu_si512(out), q));
        max = _mm512_max_epi32(max, _mm512_and_si512(_mm512_castps_si512(g), mask));
        __m512i weight = _mm512_or_si512(_mm512_srli_epi32(ramp, 2), one);
        ramp = _mm512_add_epi32(ramp, next);
        even = _mm512_add_epi64(even, _mm512_mul_epi32(q, weight));
        odd =
            _mm512_add_epi64(odd, _mm512_mul_epi32(_mm512_srli_epi64(q, 32), _mm512_srli_epi64(weight, 32)));
    }
    struct kernel_lane sum = {(uint32_t)_mm512_reduce_max_epi32(max),
                              (uint64_t)_mm512_reduce_add_epi64(_mm512_add_epi64(even, odd))};
    return add_fixed_from(&a, i, sum);
}

/* ---- a lane's gradient added as it is ---- */

BODY struct kernel_lane add_float_body(const struct kernel_lane_args *in)
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
    return (struct kernel_lane){.max = (uint32_t)max};
}

/* ---- sums of a piece of fp32: sixteen columns, added in one fixed order ---- */

enum { COLUMNS = 16, HALF = COLUMNS / 2 };
typedef double doubles __attribute__((vector_size(HALF * sizeof(double))));
typedef float floats __attribute__((vector_size(HALF * sizeof(float))));

BODY double add_columns(double *column)
{
    for (int width = COLUMNS / 2; width > 0; width /= 2)
        for (int j = 0; j < width; j++)
            column[j] += column[j + width];
    return column[0];
}

BODY void add_squares(doubles *column, const uint32_t *words)
{
    floats values;
    memcpy(&values, words, sizeof values);
    doubles x = __builtin_convertvector(values, doubles);
    *column += x * x;
}

BODY double squares_of_floats(const uint32_t *words, int count)
{
    doubles half[2] = {{0}, {0}};
    double column[COLUMNS];
    int i = 0;
    for (; i + COLUMNS <= count; i += COLUMNS) {
        add_squares(&half[0], words + i);
        add_squares(&half[1], words + i + HALF);
    }
    memcpy(column, half, sizeof column);
    for (int j = 0; i + j < count; j++) {
        double x = (double)float_of(words[i + j]);
        column[j] += x * x;
    }
    return add_columns(column);
}

BODY struct kernel_sums sum_floats(const struct kernel_sums_args *a)
{
    uint64_t sum = 0;
    for (int i = 0; i < a->count; i++)
        sum += a->words[i];
    return (struct kernel_sums){.square = squares_of_floats(a->words, a->count), .sum = sum};
}

/* ---- sums of a piece of integers ---- */

/* The halves of each square apart: 2^20 of them fit 64 bits. */
BODY struct kernel_sums sum_fixed(const struct kernel_sums_args *in)
{
    const struct kernel_sums_args a = *in;
    const uint32_t *restrict words = a.words;
    const uint32_t at = (uint32_t)a.at;
    uint64_t low = 0, high = 0, sum = 0, proof = 0;
    for (int i = 0; i < a.count; i++) {
        int32_t word = (int32_t)words[i];
        uint64_t square = (uint64_t)((int64_t)word * word);
        low += (uint32_t)square;
        high += square >> 32;
        sum += words[i];
    }
    for (int i = 0; i < a.count; i++)
        proof += (uint64_t)((int64_t)(int32_t)words[i] * (int32_t)proof_weight(at + (uint32_t)i));
    struct wide square = wide_add((struct wide){high >> 32, high << 32}, (struct wide){0, low});
    return (struct kernel_sums){.square_fixed = square, .sum = sum, .proof = proof};
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

enum operation { ADD_FIXED, ADD_FLOAT, SUMS_FIXED, SUMS_FLOAT, ADAMW_FIXED, ADAMW_FLOAT, PROVE };

struct call {
    enum operation operation;
    const struct kernel_lane_args *lane;
    const struct kernel_adamw_args *adamw;
    const struct kernel_adamw_to *to; /* NULL: in place */
    const struct kernel_adamw *constants;
    const struct kernel_sums_args *words;
    const float *params, *m, *v; /* to be proved */
    int count;
    struct kernel_lane seen;
    struct kernel_sums sums;
    uint64_t proof;
};

BODY void run_adamw(const struct call *c, bool is_float)
{
    if (c->to)
        adamw_elsewhere(c->adamw, c->to, c->constants, is_float);
    else
        adamw_in_place(c->adamw, c->constants, is_float);
}

BODY void run_body(struct call *c, struct kernel_lane (*add_fixed)(const struct kernel_lane_args *a))
{
    switch (c->operation) {
    case ADD_FIXED:
        c->seen = add_fixed(c->lane);
        break;
    case ADD_FLOAT:
        c->seen = add_float_body(c->lane);
        break;
    case SUMS_FIXED:
        c->sums = sum_fixed(c->words);
        break;
    case SUMS_FLOAT:
        c->sums = sum_floats(c->words);
        break;
    case ADAMW_FIXED:
        run_adamw(c, false);
        break;
    case ADAMW_FLOAT:
        run_adamw(c, true);
        break;
    case PROVE:
        c->proof = proof_piece(c->params, c->m, c->v, c->count);
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

struct kernel_lane kernel_add_fixed(const struct kernels *k, const struct kernel_lane_args *args)
{
    struct call c = {.operation = ADD_FIXED, .lane = args};
    run(k, &c);
    return c.seen;
}

struct kernel_lane kernel_add_float(const struct kernels *k, const struct kernel_lane_args *args)
{
    struct call c = {.operation = ADD_FLOAT, .lane = args};
    run(k, &c);
    return c.seen;
}

struct kernel_sums kernel_sums(const struct kernels *k, const struct kernel_sums_args *args)
{
    struct call c = {.operation = args->floats ? SUMS_FLOAT : SUMS_FIXED, .words = args};
    run(k, &c);
    return c.sums;
}

uint64_t kernel_prove(const struct kernels *k, const float *params, const float *m, const float *v, int count)
{
    struct call c = {.operation = PROVE, .params = params, .m = m, .v = v, .count = count};
    run(k, &c);
    return c.proof;
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
