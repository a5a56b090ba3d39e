/* A text written token by token against the full forward pass over all of it. */
#include "trainer/backend/cpu/model/gpt_step.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/trainer/backend/cpu/model/reference.h"
#include "tests/unit/trainer/backend/cpu/model/world.h"

/* Widths and vocabularies on both sides of whole vecs and whole pieces, heads of odd sizes, one token of
 * context more than a block of attention. */
static const struct model_shape shapes[] = {{1, 1, 1, 2, 1},      {2, 2, 16, 8, 29},     {2, 5, 80, 37, 257},
                                            {1, 1, 32, 130, 256}, {3, 7, 49, 11, 300},   {1, 3, 33, 65, 31},
                                            {2, 4, 128, 9, 513},  {1, 11, 143, 17, 1000}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Of logits up to 25; whole passes over these weights are off by up to 1.5e-4. */
static const double near_enough = 5e-4;

static struct world open_world(const struct model_shape *shape, int threads)
{
    struct gpt_options options = {.sequences = 1, .isa = "Auto"};
    return world_open(shape, &options, threads);
}

Test(gpt_step, each_tokens_logits_are_those_of_double_precision)
{
    for (int i = 0; i < SHAPES; i++) {
        struct world w = open_world(&shapes[i], 2);
        int n = shapes[i].vocabulary, context = shapes[i].context;
        double *params = world_doubles(&w), *wanted = calloc((size_t)context * (size_t)n, sizeof *wanted);
        float *got = malloc((size_t)n * sizeof *got);
        reference_logits(&w.layout, params, w.tokens, context, wanted);
        gpt_next_logits(w.g, w.params, w.tokens, 1, got);
        for (int length = 2; length <= context; length++) {
            gpt_step_logits(w.g, w.params, w.tokens, length, got);
            for (int v = 0; v < n; v++)
                cr_assert(fabs(got[v] - wanted[(length - 1) * n + v]) < near_enough,
                          "shape %d, token %d, logit %d: %g, and not %g", i, length, v, (double)got[v],
                          wanted[(length - 1) * n + v]);
        }
        free(params);
        free(wanted);
        free(got);
        world_close(&w);
    }
}

Test(gpt_step, what_went_in_at_once_and_what_came_one_by_one_are_one_text)
{
    struct world w = open_world(&shapes[2], 2);
    float once[257], one_by_one[257];
    for (int first = 1; first < 37; first += 5) {
        gpt_next_logits(w.g, w.params, w.tokens + 1, 30, once); /* another text, whose keys must not stay */
        gpt_next_logits(w.g, w.params, w.tokens, first, one_by_one);
        for (int length = first + 1; length <= 37; length++)
            gpt_step_logits(w.g, w.params, w.tokens, length, one_by_one);
        gpt_next_logits(w.g, w.params, w.tokens, 37, once);
        for (int v = 0; v < 257; v++)
            cr_assert(fabs((double)one_by_one[v] - (double)once[v]) < near_enough,
                      "behind %d tokens, logit %d", first, v);
    }
    world_close(&w);
}

Test(gpt_step, the_bits_do_not_depend_on_the_number_of_threads)
{
    float first[1000], other[1000];
    for (int threads = 1; threads <= 3; threads++) {
        struct world w = open_world(&shapes[7], threads);
        gpt_next_logits(w.g, w.params, w.tokens, 1, other);
        for (int length = 2; length <= 17; length++)
            gpt_step_logits(w.g, w.params, w.tokens, length, threads == 1 ? first : other);
        cr_assert(threads == 1 || !memcmp(first, other, sizeof first));
        world_close(&w);
    }
}

Test(gpt_step, where_rows_are_not_kept_in_fp32_there_is_none)
{
    struct gpt_options half = {.sequences = 1, .isa = "Auto", .precision = GPT_BF16};
    struct gpt_options again = {.sequences = 1, .isa = "Auto", .recompute = true};
    struct world w[] = {world_open(&shapes[1], &half, 1), world_open(&shapes[1], &again, 1),
                        open_world(&shapes[1], 1)};
    cr_assert(!gpt_can_step(w[0].g) && !gpt_can_step(w[1].g) && gpt_can_step(w[2].g));
    for (int i = 0; i < 3; i++)
        world_close(&w[i]);
}
