#include "trainer/bench_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/prng.h"
#include "common/os/clock.h"
#include "common/os/pages.h"
#include "trainer/backend/cpu/model/gpt.h"

enum { STEPS_MAX = 1000 };

struct bench {
    struct model_shape shape;
    int sequences, threads, steps;
    enum gpt_precision precision;
    bool recompute;
    size_t memory;
    struct model_layout layout;
    struct pool *pool;
    struct gpt *gpt;
    float *params, *grads;
    int32_t *tokens;
    double seconds[STEPS_MAX];
    float loss;
};

static int *option(struct bench *b, const char *name)
{
    const struct {
        const char *name;
        int *value;
    } options[] = {
        {"--layers", &b->shape.layers},
        {"--heads", &b->shape.heads},
        {"--width", &b->shape.width},
        {"--context", &b->shape.context},
        {"--vocabulary", &b->shape.vocabulary},
        {"--sequences", &b->sequences},
        {"--threads", &b->threads},
        {"--steps", &b->steps},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (!strcmp(options[i].name, name))
            return options[i].value;
    return NULL;
}

/* An option whose value is a word: 1 where it was one, 0 where it is none of them, -1 for a wrong word. */
static int read_word(struct bench *b, const char *name, const char *value)
{
    if (!strcmp(name, "--precision"))
        return gpt_precision_read(value ? value : "", &b->precision) < 0 ? -1 : 1;
    if (strcmp(name, "--recompute") != 0)
        return 0;
    b->recompute = value && !strcmp(value, "true");
    return b->recompute || (value && !strcmp(value, "false")) ? 1 : -1;
}

static int read_arguments(struct bench *b, int argc, char **argv, struct error *err)
{
    for (int i = 1; i < argc; i += 2) {
        int word = read_word(b, argv[i], argv[i + 1]);
        if (word < 0)
            return err_set(err, ERR_USAGE, "bench-step: --precision fp32|bf16, --recompute true|false");
        if (word)
            continue;
        int *value = option(b, argv[i]);
        char *end = NULL;
        long number = i + 1 < argc ? strtol(argv[i + 1], &end, 10) : 0;
        if (!value || !end || *end || number < 1 || number > 1 << 24)
            return err_set(err, ERR_USAGE, "bench-step: %s: not an option with a number from 1 on", argv[i]);
        *value = (int)number;
    }
    if (b->steps > STEPS_MAX || b->shape.layers > RM_LAYERS_MAX || b->shape.width % b->shape.heads)
        return err_set(err, ERR_USAGE, "bench-step: at most %d steps and %d layers; heads must divide width",
                       STEPS_MAX, RM_LAYERS_MAX);
    return 0;
}

static int prepare_bench(struct bench *b, struct error *err)
{
    uint64_t state = 1;
    size_t tokens = (size_t)b->sequences * (size_t)(b->shape.context + 1);
    model_layout_init(&b->layout, &b->shape);
    b->params = pages_alloc((size_t)b->layout.parameters * sizeof *b->params);
    b->grads = pages_alloc((size_t)b->layout.parameters * sizeof *b->grads);
    b->tokens = malloc(tokens * sizeof *b->tokens);
    if (!b->params || !b->grads || !b->tokens)
        return err_set(err, ERR_MACHINE, "bench-step: no memory");
    for (size_t i = 0; i < tokens; i++)
        b->tokens[i] = (int32_t)prng_below(&state, (uint64_t)b->shape.vocabulary);
    gpt_init_weights(&b->layout, 1, b->params);
    if (pool_open(&b->pool, b->threads, err) < 0)
        return -1;
    struct gpt_options options = {
        .sequences = b->sequences, .isa = "Auto", .precision = b->precision, .recompute = b->recompute};
    if (gpt_open(&b->gpt, &b->layout, &options, b->pool, err) < 0)
        return -1;
    b->memory = gpt_memory(b->gpt);
    return 0;
}

static int measure_steps(struct bench *b, struct error *err)
{
    for (int step = -1; step < b->steps; step++) {
        rm_time start = clock_now();
        gpt_weights_changed(b->gpt, b->params);
        if (gpt_lane(b->gpt, b->params, b->tokens, b->grads, &b->loss, NULL, err) < 0)
            return -1;
        if (step >= 0)
            b->seconds[step] = rm_ms(clock_now() - start) / 1e3;
    }
    return 0;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_bench(struct bench *b)
{
    qsort(b->seconds, (size_t)b->steps, sizeof *b->seconds, by_size);
    double median = b->seconds[b->steps / 2];
    printf("{\"layers\":%d,\"heads\":%d,\"width\":%d,\"context\":%d,\"vocabulary\":%d,\"sequences\":%d,"
           "\"threads\":%d,\"steps\":%d,\"seconds\":%.6f,\"fastest\":%.6f,\"tokensPerSecond\":%.1f,"
           "\"precision\":\"%s\",\"recompute\":%s,\"memoryMiB\":%zu,\"loss\":%.6f}\n",
           b->shape.layers, b->shape.heads, b->shape.width, b->shape.context, b->shape.vocabulary,
           b->sequences, b->threads, b->steps, median, b->seconds[0],
           b->sequences * b->shape.context / median, b->precision == GPT_BF16 ? "bf16" : "fp32",
           b->recompute ? "true" : "false", b->memory >> 20, b->loss);
}

int bench_step_main(int argc, char **argv)
{
    struct bench b = {.shape = {.layers = 12, .heads = 12, .width = 768, .context = 256, .vocabulary = 50257},
                      .sequences = 4,
                      .threads = 2,
                      .steps = 5};
    struct error err = {0};
    if (read_arguments(&b, argc, argv, &err) == 0 && prepare_bench(&b, &err) == 0 &&
        measure_steps(&b, &err) == 0)
        print_bench(&b);
    else
        fprintf(stderr, "ringmaster-trainer: %s\n", err.text);
    gpt_free(b.gpt);
    pool_free(b.pool);
    free(b.params);
    free(b.grads);
    free(b.tokens);
    return err.code ? error_exit_code(err.code) : 0;
}
