#include "tests/unit/trainer/backend/cpu/model/world.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/prng.h"
#include "tests/unit/trainer/backend/cpu/model/reference.h"

static void fill_tokens(struct world *w)
{
    uint64_t state = 7;
    for (int i = 0; i < w->sequences * (w->layout.shape.context + 1); i++)
        w->tokens[i] = (int32_t)prng_below(&state, (uint64_t)w->layout.shape.vocabulary);
}

static void stir(struct world *w)
{
    uint64_t state = 11;
    for (int64_t i = 0; i < w->layout.parameters; i++)
        w->params[i] = w->params[i] * 5 + 0.2f * (float)(prng_unit(&state) - 0.5);
}

struct world world_open(const struct model_shape *shape, const struct gpt_options *options, int threads)
{
    struct world w = {.sequences = options->sequences};
    struct error err = {0};
    model_layout_init(&w.layout, shape);
    size_t count = (size_t)w.layout.parameters;
    w.params = calloc(count, sizeof *w.params);
    w.grads = malloc(count * sizeof *w.grads);
    memset(w.grads, 0xFF, count * sizeof *w.grads);
    w.tokens = calloc((size_t)w.sequences * (size_t)(shape->context + 1), sizeof *w.tokens);
    cr_assert_eq(pool_open(&w.pool, threads, &err), 0, "%s", err.text);
    cr_assert_eq(gpt_open(&w.g, &w.layout, options, w.pool, &err), 0, "%s", err.text);
    gpt_init_weights(&w.layout, 42, w.params);
    stir(&w);
    fill_tokens(&w);
    gpt_weights_changed(w.g, w.params);
    return w;
}

void world_close(struct world *w)
{
    gpt_free(w->g);
    pool_free(w->pool);
    free(w->params);
    free(w->grads);
    free(w->tokens);
}

float world_lane(struct world *w)
{
    struct error err = {0};
    float loss = NAN;
    cr_assert_eq(gpt_lane(w->g, w->params, w->tokens, w->grads, &loss, NULL, &err), 0, "%s", err.text);
    return loss;
}

double *world_doubles(const struct world *w)
{
    double *out = calloc((size_t)w->layout.parameters, sizeof *out);
    for (int64_t i = 0; i < w->layout.parameters; i++)
        out[i] = w->params[i];
    return out;
}

double world_reference(const struct world *w, const double *params)
{
    double sum = 0;
    int context = w->layout.shape.context;
    for (int b = 0; b < w->sequences; b++)
        sum += reference_loss(&w->layout, params, w->tokens + b * (context + 1), context);
    return sum / w->sequences;
}

double world_difference(const struct world *w, double *params, int64_t at)
{
    const double step = 1e-5, old = params[at];
    params[at] = old + step;
    double up = world_reference(w, params);
    params[at] = old - step;
    double down = world_reference(w, params);
    params[at] = old;
    return (up - down) / (2 * step);
}
