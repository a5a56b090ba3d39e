#include "trainer/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/config.h"
#include "trainer/backend/cpu/backend_cpu.h"
#include "trainer/backend/cuda/gpu/backend_gpu.h"

struct wanted {
    struct model_shape shape;
    int sequences, threads;
    int bf16, recompute, gpu; /* 0 or 1 */
};

static int *number_of(struct wanted *w, const char *name)
{
    const struct {
        const char *name;
        int *value;
    } options[] = {{"--layers", &w->shape.layers},
                   {"--heads", &w->shape.heads},
                   {"--width", &w->shape.width},
                   {"--context", &w->shape.context},
                   {"--vocabulary", &w->shape.vocabulary},
                   {"--sequences", &w->sequences},
                   {"--threads", &w->threads},
                   {"--bf16", &w->bf16},
                   {"--recompute", &w->recompute},
                   {"--gpu", &w->gpu}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (!strcmp(options[i].name, name))
            return options[i].value;
    return NULL;
}

static int read_arguments(struct wanted *w, int argc, char **argv, struct error *err)
{
    for (int i = 1; i < argc; i += 2) {
        int *value = number_of(w, argv[i]);
        char *end = NULL;
        long number = i + 1 < argc ? strtol(argv[i + 1], &end, 10) : -1;
        if (!value || !end || *end || number < 0 || number > 1 << 24)
            return err_set(err, ERR_USAGE, "memory: %.40s: not an option with a number", argv[i]);
        *value = (int)number;
    }
    const struct model_shape *s = &w->shape;
    if (s->layers < 1 || s->layers > RM_LAYERS_MAX || s->heads < 1 || s->width < 1 || s->width % s->heads ||
        s->context < 1 || s->vocabulary < 1 || w->sequences < 1 || w->threads < 1)
        return err_set(
            err, ERR_USAGE,
            "memory: --layers, --heads, --width, --context, --vocabulary and --sequences, as a job "
            "has them; heads must divide width");
    return 0;
}

static int say_error(const struct error *err)
{
    fprintf(stderr, "ringmaster-trainer: %s\n", err->text);
    return error_exit_code(err->code);
}

static void say_needs(struct backend_needs needs, int64_t gpu)
{
    printf("lane %zu\nstate %zu\ngpu %lld\n", needs.lane, needs.state, (long long)gpu);
}

int memory_main(int argc, char **argv)
{
    struct wanted w = {.threads = 1};
    struct model_layout layout;
    struct backend *backend;
    struct error err = {0};
    const char *isa = config_get(CONFIG_TRAINER_ISA);
    if (read_arguments(&w, argc, argv, &err) < 0)
        return say_error(&err);
    model_layout_init(&layout, &w.shape);
    const struct backend_options options = {.layout = &layout,
                                            .sequences = w.sequences,
                                            .threads = w.threads,
                                            .isa = isa ? isa : "Auto",
                                            .bf16 = w.bf16,
                                            .recompute = w.recompute};
    if (w.gpu) {
        say_needs(backend_gpu_needs(&options), backend_gpu_bytes(&options));
        return 0;
    }
    if (backend_cpu_open(&backend, &options, &err) < 0)
        return say_error(&err);
    say_needs(backend->ops->needs(backend), 0);
    backend->ops->free(backend);
    return 0;
}
