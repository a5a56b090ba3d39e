#include "trainer/backend/cpu/probe_cpu.h"

#include <stdlib.h>

#include "common/os/crypto.h"

enum { SEQUENCES = 1, CONTEXT = 32, VOCABULARY = 256, SEED = 20480 };

/* Its sizes are the same for every job, so that machines can be compared without one. */
static const struct model_shape shape = {
    .layers = 2, .heads = 2, .width = 128, .context = CONTEXT, .vocabulary = VOCABULARY};

static void fill_tokens(int32_t *tokens)
{
    for (int i = 0; i < SEQUENCES * (CONTEXT + 1); i++)
        tokens[i] = (i * 89 + i * i * 7) % VOCABULARY;
}

static int run_probe(struct gpt *gpt, const struct model_layout *layout, float *params, float *grads,
                     uint8_t out[RM_HASH_BYTES], struct error *err)
{
    int32_t tokens[SEQUENCES * (CONTEXT + 1)];
    float loss;
    fill_tokens(tokens);
    gpt_init_weights(layout, SEED, params);
    gpt_weights_changed(gpt, params);
    if (gpt_lane(gpt, params, tokens, grads, &loss, NULL, err) < 0)
        return -1;
    struct sha256 *h = sha256_open();
    sha256_add(h, &loss, sizeof loss);
    sha256_add(h, grads, (size_t)layout->parameters * sizeof *grads);
    sha256_finish(h, out);
    return 0;
}

int probe_cpu(const char *isa, enum gpt_precision precision, struct pool *pool, uint8_t out[RM_HASH_BYTES],
              struct error *err)
{
    const struct gpt_options options = {.sequences = SEQUENCES, .isa = isa, .precision = precision};
    struct model_layout *layout = calloc(1, sizeof *layout);
    struct gpt *gpt = NULL;
    float *numbers = NULL;
    int result = -1;
    if (layout) {
        model_layout_init(layout, &shape);
        numbers = calloc(2 * (size_t)layout->parameters, sizeof *numbers);
    }
    if (!numbers)
        err_set(err, ERR_MACHINE, "no memory for the probe");
    else if (gpt_open(&gpt, layout, &options, pool, err) == 0)
        result = run_probe(gpt, layout, numbers, numbers + layout->parameters, out, err);
    gpt_free(gpt);
    free(numbers);
    free(layout);
    return result;
}
