#include "update_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/prng.h"
#include "trainer/backend/cpu/sums/kernels.h"

_Static_assert(sizeof(struct update_constants) == sizeof(struct kernel_adamw), "one AdamW");

static const float odd_values[] = {
    0.0f,   -0.0f,     0.5f,      1.5f,       2.5f,     -0.5f,          -1.5f,   -2.5f,           0.49999997f,
    1e-40f, NAN,       INFINITY,  0x1p31f,    -0x1p31f, 0x1.fffffep30f, -1e-45f, -0x1.000002p31f, 3e38f,
    -3e38f, 0x1p-126f, -INFINITY, 8388609.0f,
};

uint32_t case_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

float case_number(uint64_t *seed)
{
    if (prng_below(seed, 4) == 0)
        return odd_values[prng_below(seed, sizeof odd_values / sizeof *odd_values)];
    return (float)(prng_unit(seed) - 0.5) * 1e3f;
}

uint64_t case_proof(const struct case_arrays *a, const struct cuda_piece *p)
{
    return kernel_prove(kernels_best(), a->params + p->first, a->m + p->first, a->v + p->first, p->count);
}

static float tame_number(uint64_t *seed)
{
    return (float)(prng_unit(seed) + 0.5);
}

static float *floats_of(int64_t count)
{
    return calloc(count ? (size_t)count : 1, sizeof(float));
}

static void arrays_init(struct case_arrays *a, int64_t count)
{
    *a = (struct case_arrays){floats_of(count), floats_of(count), floats_of(count)};
}

static void arrays_clear(struct case_arrays *a)
{
    free(a->params);
    free(a->m);
    free(a->v);
}

static void arrays_copy(const struct case_arrays *to, const struct case_arrays *from, int64_t count)
{
    size_t bytes = (size_t)count * sizeof(float);
    memcpy(to->params, from->params, bytes);
    memcpy(to->m, from->m, bytes);
    memcpy(to->v, from->v, bytes);
}

static void draw_numbers(struct update_case *c, bool tame, uint64_t seed)
{
    for (int64_t i = 0; i < c->count; i++) {
        float word = tame ? tame_number(&seed) : case_number(&seed);
        c->words[i] = c->floats ? case_bits(word) : (uint32_t)splitmix64(&seed);
        c->old.params[i] = tame ? tame_number(&seed) : case_number(&seed);
        c->old.m[i] = tame ? tame_number(&seed) : case_number(&seed);
        c->old.v[i] = tame ? tame_number(&seed) : fabsf(case_number(&seed));
    }
    for (int t = 0; t < CASE_TENSORS; t++)
        c->constants[t] = (struct update_constants){
            .unit = c->floats ? 1 : (float)ldexp(1, -20 - t),
            .clip = 0.37f,
            .beta1 = 0.9f,
            .rest1 = 0.1f,
            .beta2 = 0.999f,
            .rest2 = 0.001f,
            .bias2 = 1.7f,
            .epsilon = 1e-8f,
            .rate = 3e-4f,
            .keep = t ? 0.999f : 1,
        };
}

/* By the CPU's own loops. */
static void work_out_wanted(struct update_case *c)
{
    arrays_copy(&c->wanted, &c->old, c->count);
    for (int i = 0; i < c->pieces; i++) {
        const struct cuda_piece *p = &c->piece[i];
        const struct kernel_adamw_args args = {c->words + p->first, c->wanted.params + p->first,
                                               c->wanted.m + p->first, c->wanted.v + p->first, p->count};
        struct kernel_adamw constants;
        memcpy(&constants, &c->constants[p->tensor], sizeof constants);
        kernel_adamw(kernels_best(), &args, &constants, c->floats);
    }
}

void update_case_init(struct update_case *c, const int *sizes, int pieces, bool floats, bool tame,
                      uint64_t seed)
{
    *c = (struct update_case){.pieces = pieces, .floats = floats};
    c->piece = calloc((size_t)pieces, sizeof *c->piece);
    for (int i = 0; i < pieces; i++) {
        c->piece[i] = (struct cuda_piece){c->count, sizes[i], i % CASE_TENSORS};
        c->count += sizes[i];
    }
    c->words = calloc((size_t)c->count, sizeof *c->words);
    c->stamp = calloc((size_t)pieces, sizeof *c->stamp);
    c->proof = calloc((size_t)pieces, sizeof *c->proof);
    c->elsewhere_proof = calloc((size_t)pieces, sizeof *c->proof);
    c->slot = calloc(CASE_BLOCKS, sizeof *c->slot);
    arrays_init(&c->now, c->count);
    arrays_init(&c->old, c->count);
    arrays_init(&c->wanted, c->count);
    arrays_init(&c->elsewhere, c->count);
    draw_numbers(c, tame, seed);
    work_out_wanted(c);
    update_case_reset(c);
}

void update_case_clear(struct update_case *c)
{
    arrays_clear(&c->now);
    arrays_clear(&c->old);
    arrays_clear(&c->wanted);
    arrays_clear(&c->elsewhere);
    free(c->piece);
    free(c->words);
    free(c->stamp);
    free(c->proof);
    free(c->elsewhere_proof);
    free(c->slot);
}

void update_case_reset(struct update_case *c)
{
    arrays_copy(&c->now, &c->old, c->count);
    for (int i = 0; i < c->pieces; i++) {
        c->stamp[i] = CASE_STEP - 1;
        c->proof[i] = case_proof(&c->old, &c->piece[i]);
    }
    for (int i = 0; i < CASE_BLOCKS; i++) {
        c->slot[i].valid = 0;
        c->slot[i].piece = 0; /* what an earlier update left, at the worst */
    }
}

struct update_args update_case_args(const struct update_case *c, bool in_place)
{
    const struct case_arrays *to = in_place ? &c->now : &c->elsewhere;
    return (struct update_args){
        .words = c->words,
        .params = c->now.params,
        .m = c->now.m,
        .v = c->now.v,
        .to_params = to->params,
        .to_m = to->m,
        .to_v = to->v,
        .piece = c->piece,
        .constants = c->constants,
        .slot = c->slot,
        .stamp = c->stamp,
        .proof = in_place ? c->proof : c->elsewhere_proof,
        .step = CASE_STEP,
        .pieces = c->pieces,
        .floats = c->floats,
    };
}

struct restore_args update_case_restore(const struct update_case *c)
{
    return (struct restore_args){c->now.params, c->now.m, c->now.v, c->piece,
                                 c->slot,       c->stamp, c->proof, CASE_STEP - 1};
}

static bool same(float a, float b)
{
    return case_bits(a) == case_bits(b) || (isnan(a) && isnan(b));
}

int64_t update_case_differs(const struct case_arrays *a, const struct case_arrays *b, int64_t first,
                            int64_t count)
{
    for (int64_t i = first; i < first + count; i++)
        if (!same(a->params[i], b->params[i]) || !same(a->m[i], b->m[i]) || !same(a->v[i], b->v[i]))
            return i;
    return -1;
}
