#include "model_case.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/prng.h"
#include "update_case.h"

enum { PLANTED = 40 /* orders in which what is left out has to show */ };

static size_t bytes_of(const struct model_run *run)
{
    size_t bytes = 0;
    for (int i = 0; i < MODEL_OUTS_MAX; i++)
        bytes += run->out[i].bytes;
    return bytes;
}

static char *outs_copy(const struct model_run *run)
{
    char *copy = malloc(bytes_of(run) + 1), *at = copy;
    for (int i = 0; i < MODEL_OUTS_MAX; i++) {
        if (run->out[i].bytes)
            memcpy(at, run->out[i].at, run->out[i].bytes);
        at += run->out[i].bytes;
    }
    return copy;
}

static void outs_set(const struct model_run *run, const char *copy)
{
    for (int i = 0; i < MODEL_OUTS_MAX; i++) {
        if (run->out[i].bytes)
            memcpy(run->out[i].at, copy, run->out[i].bytes);
        copy += run->out[i].bytes;
    }
}

static bool outs_are(const struct model_run *run, const char *copy)
{
    for (int i = 0; i < MODEL_OUTS_MAX; i++) {
        if (run->out[i].bytes && memcmp(run->out[i].at, copy, run->out[i].bytes))
            return false;
        copy += run->out[i].bytes;
    }
    return true;
}

void model_run_orders(const struct model_run *run, int barriers)
{
    model_run_some(run, barriers, MODEL_ORDERS);
}

void model_run_some(const struct model_run *run, int barriers, int orders)
{
    char *before = outs_copy(run), *wanted = NULL;
    for (int order = 0; order < (orders + CASE_SHARE - 1) / CASE_SHARE; order++) {
        struct emulation e = {.blocks = run->blocks + (run->blocks_any ? order % 3 : 0),
                              .seed = (uint64_t)order};
        outs_set(run, before);
        cr_assert(emulate(&e, run->kernel, run->args), "%s", e.wrong);
        cr_assert_leq(e.barriers, barriers, "%s: who adds one leaves it out in a test", run->kernel->name);
        if (!wanted)
            wanted = outs_copy(run);
        cr_assert(outs_are(run, wanted), "%s: other bits in order %d", run->kernel->name, order);
    }
    free(before);
    free(wanted);
}

/* False where this order shows it. */
static bool goes_unnoticed(const struct model_run *run, const char *wanted, struct emulated_site without,
                           uint64_t seed)
{
    struct emulation e = {.blocks = run->blocks, .seed = seed, .without = without};
    return emulate(&e, run->kernel, run->args) && outs_are(run, wanted);
}

void model_run_planted(const struct model_run *run)
{
    if (emulate_elsewhere)
        cr_skip("no barrier of a GPU's can be left out");
    char *before = outs_copy(run);
    struct emulation all = {.blocks = run->blocks};
    cr_assert(emulate(&all, run->kernel, run->args), "%s", all.wrong);
    cr_assert_gt(all.barriers, 0, "%s has none to leave out", run->kernel->name);
    char *wanted = outs_copy(run);
    for (int i = 0; i < all.barriers; i++) {
        uint64_t seed = 0;
        for (outs_set(run, before); seed < PLANTED && goes_unnoticed(run, wanted, all.barrier[i], seed);
             seed++)
            outs_set(run, before);
        cr_assert_lt(seed, PLANTED, "%s: nothing tells that the barrier of %s:%d is there", run->kernel->name,
                     all.barrier[i].file, all.barrier[i].line);
    }
    outs_set(run, wanted);
    free(before);
    free(wanted);
}

void *model_empty(int64_t count, size_t size)
{
    void *at = malloc((size_t)count * size);
    cr_assert(at);
    return memset(at, 0xff, (size_t)count * size);
}

float *model_floats(int64_t count, double size, uint64_t seed)
{
    float *at = model_empty(count, sizeof *at);
    for (int64_t i = 0; i < count; i++)
        at[i] = (float)((2 * prng_unit(&seed) - 1) * size);
    return at;
}

void *model_operands(int64_t count, double size, int half, uint64_t seed)
{
    float *floats = model_floats(count, size, seed);
    if (!half)
        return floats;
    uint16_t *at = model_empty(count, sizeof *at);
    for (int64_t i = 0; i < count; i++)
        at[i] = (uint16_t)(case_bits(floats[i]) >> 16);
    free(floats);
    return at;
}

double model_half(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return (double)x;
}

double model_operand(const void *operands, int64_t i, int half)
{
    return half ? model_half(((const uint16_t *)operands)[i]) : (double)((const float *)operands)[i];
}

void model_near(double got, double wanted, double relative, double absolute, const char *what, int64_t i)
{
    cr_assert((isnan(got) && isnan(wanted)) || fabs(got - wanted) <= absolute + relative * fabs(wanted),
              "%s, %lld: %.9g, not %.9g", what, (long long)i, got, wanted);
}

double model_rounding(int half, double exact)
{
    return half ? 0x1p-8 : exact;
}
