/* What tools/gpu-check and `tools/bench gpu` ask of a GPU, or of the stand-ins, that no test says. Each
 * prints lines of a name, a tab and a value:
 *
 *   gpu_tool look       driver, GPU, cuBLASLt, and the kinds of GPU that kernels were built for: as far as
 *                       they are there; then, if not, "why" with the sentence, and exit code 4
 *   gpu_tool fill MIB   fills all processors, and MIB of memory over and over, until its standard input ends;
 *                       "filling" is said once it does
 *   gpu_tool arena MIB  whether memory outlives its maker (gpu_arena.h)
 *   gpu_tool lane LAYERS HEADS WIDTH CONTEXT VOCABULARY SEQUENCES LANES
 *                       a lane's time: with graphs and without, whole numbers and fp32; of each the median of
 *                       so many
 *   gpu_tool trace ...  as lane, but work by work and whole numbers alone: to be looked at by a profiler
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/base/prng.h"
#include "common/os/clock.h"
#include "tests/cuda_rig/gpu_arena.h"
#include "tests/cuda_rig/on_gpu.h"
#include "trainer/backend/cuda/images.h"
#include "trainer/backend/cuda/kernels/fill.h"
#include "trainer/backend/cuda/lane/lane_parts.h"

enum { LANES_MOST = 1000, ROUND = 32 };

struct tool {
    struct cuda_driver *driver;
    struct cuda_device *device;
    struct cuda_blas *blas;
    struct cuda_module exact, model;
    struct cuda_stream stream;
    struct cuda_memory memory;
};

static int failed(const struct error *err)
{
    printf("why\t%s\n", err->text);
    return error_exit_code(err->code);
}

/* ---- look ---- */

static void say_driver(const struct cuda_driver *d)
{
    printf("driver\t%s\ncuda\t%d.%d\ngpus\t%d\n", d->path, d->version / 1000, d->version % 1000 / 10,
           d->devices);
}

static int say_device(struct tool *t, struct error *err)
{
    const struct cuda_device *d = t->device;
    size_t left = 0;
    int ecc = 0;
    if (cuda_device_use(d, err) < 0 || cuda_device_free_bytes(t->device, &left, err) < 0)
        return -1;
    t->driver->calls.cuDeviceGetAttribute(&ecc, CU_DEVICE_ATTRIBUTE_ECC_ENABLED, d->number);
    printf("gpu\t%s\nuuid\t%s\ncapability\t%d.%d\nprocessors\t%d\n", d->name, d->uuid, d->major, d->minor,
           d->processors);
    printf("memoryBytes\t%zu\nfreeBytes\t%zu\nsharedBytesOfABlock\t%d\necc\t%d\n", d->bytes, left,
           d->shared_most, ecc);
    return 0;
}

static void say_kinds(void)
{
    struct cuda_code code[CUDA_CODES_MAX];
    for (int i = 0; i < cuda_images_count(); i++) {
        const struct cuda_image image = cuda_image(i);
        const int codes = cuda_image_codes(image.data, image.bytes, code);
        printf("kernels.%s\t", image.name);
        for (int j = 0; j < codes; j++)
            printf("%ssm_%u", j ? " " : "", code[j].architecture);
        printf("\n");
    }
}

static int look(struct tool *t, struct error *err)
{
    say_kinds();
    if (cuda_driver_open(&t->driver, err) < 0)
        return -1;
    say_driver(t->driver);
    if (cuda_device_open(&t->device, t->driver, NULL, err) < 0 || say_device(t, err) < 0 ||
        cuda_blas_open(&t->blas, t->device, err) < 0)
        return -1;
    printf("cublasLt\t%s\ncublasLtVersion\t%d.%d.%d\n", t->blas->path, t->blas->version / 10000,
           t->blas->version / 100 % 100, t->blas->version % 100);
    return 0;
}

/* ---- fill ---- */

static int open_all(struct tool *t, size_t bytes, struct error *err)
{
    if (cuda_driver_open(&t->driver, err) < 0 || cuda_device_open(&t->device, t->driver, NULL, err) < 0 ||
        cuda_device_use(t->device, err) < 0 ||
        cuda_module_open(&t->exact, t->device, on_gpu_image("exact"), "exact", err) < 0 ||
        cuda_module_open(&t->model, t->device, on_gpu_image("model"), "model", err) < 0 ||
        cuda_memory_open(&t->memory, t->device, bytes, "this tool", err) < 0)
        return -1;
    return cuda_stream_open(&t->stream, t->device, false, err);
}

static bool input_ended(void)
{
    struct pollfd in = {STDIN_FILENO, POLLIN, 0};
    char byte;
    return poll(&in, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static int fill_on(struct tool *t, size_t bytes, struct error *err)
{
    static const struct cuda_kernel_shape shape = {"fill", FILL_THREADS, 0, sizeof(struct fill_args)};
    struct cuda_kernel k;
    int each;
    bool said = false;
    if (open_all(t, bytes, err) < 0 || cuda_kernel_open(&k, &t->exact, &shape, err) < 0 ||
        cuda_kernel_resident(&k, &each, err) < 0)
        return -1;
    const struct fill_args args = {(uint32_t *)(uintptr_t)t->memory.at, (int64_t)(bytes / sizeof(uint32_t)),
                                   77};
    for (; !input_ended(); said = true) {
        for (int i = 0; i < ROUND; i++)
            if (cuda_kernel_launch(&k, &t->stream, each * t->device->processors, &args, err) < 0)
                return -1;
        if (cuda_stream_wait(&t->stream, err) < 0)
            return -1;
        if (!said) {
            printf("filling\t%zu MiB\n", bytes >> 20);
            fflush(stdout);
        }
    }
    return 0;
}

/* ---- lane ---- */

struct bench {
    struct model_shape shape;
    int sequences, lanes;
    struct model_layout layout;
    size_t words, max, proof, bytes; /* places behind the weights, and all of it */
    int32_t *tokens;
    double whole[LANES_MOST], handed[LANES_MOST];
};

static void place_bench(struct bench *b)
{
    uint64_t seed = 1;
    const size_t count = (size_t)b->sequences * (size_t)(b->shape.context + 1);
    model_layout_init(&b->layout, &b->shape);
    b->words = ((size_t)b->layout.parameters * sizeof(float) + 255) / 256 * 256;
    b->max = 2 * b->words;
    b->proof = b->max + RM_TENSORS_MAX * sizeof(uint32_t);
    b->bytes = b->proof + sizeof(uint64_t);
    b->tokens = malloc(count * sizeof *b->tokens);
    for (size_t i = 0; i < count && b->tokens; i++)
        b->tokens[i] = (int32_t)prng_below(&seed, (uint64_t)b->shape.vocabulary);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *at, int count)
{
    qsort(at, (size_t)count, sizeof *at, by_size);
    return at[count / 2];
}

/* A lane by itself, and what of it passes before all is handed over. */
static int time_lane(struct bench *b, struct cuda_lane *l, const struct cuda_lane_sums *sums, int turn,
                     struct error *err)
{
    double loss;
    const rm_time begun = clock_now();
    if (cuda_lane_run(l, b->tokens, sums, &loss, err) < 0)
        return -1;
    b->whole[turn] = rm_ms(clock_now() - begun);
    const rm_time again = clock_now();
    if ((l->graphs ? lane_replay(l, err) : lane_queue(l, err)) < 0)
        return -1;
    b->handed[turn] = rm_ms(clock_now() - again);
    return cuda_stream_wait(&l->stream, err);
}

static int time_lanes(struct tool *t, struct bench *b, bool graphs, bool floats, struct error *err)
{
    static float scales[RM_TENSORS_MAX];
    const struct cuda_lane_options options = {.layout = &b->layout,
                                              .sequences = b->sequences,
                                              .exact = &t->exact,
                                              .model = &t->model,
                                              .graphs = graphs};
    const struct cuda_lane_sums sums = {
        t->memory.at + b->words, t->memory.at + b->max, t->memory.at + b->proof, scales, true, floats};
    struct cuda_lane *l = NULL;
    int result = cuda_lane_open(&l, t->blas, &options, err);
    if (result == 0)
        result = cuda_lane_weights(l, t->memory.at, err);
    for (int i = 0; i < RM_TENSORS_MAX; i++)
        scales[i] = 1024;
    if (result == 0)
        result = time_lane(b, l, &sums, 0, err); /* the first one notes the graph */
    for (int turn = 0; turn < b->lanes && result == 0; turn++)
        result = time_lane(b, l, &sums, turn, err);
    cuda_lane_free(l);
    if (result == 0)
        printf("%s.%s.ms\t%.4f\n%s.%s.handedOverMs\t%.4f\n", graphs ? "graphs" : "plain",
               floats ? "fp32" : "exact", median(b->whole, b->lanes), graphs ? "graphs" : "plain",
               floats ? "fp32" : "exact", median(b->handed, b->lanes));
    return result;
}

static int lane_on(struct tool *t, struct bench *b, struct error *err)
{
    place_bench(b);
    if (open_all(t, b->bytes, err) < 0 || cuda_blas_open(&t->blas, t->device, err) < 0)
        return -1;
    printf("parameters\t%lld\ntokens\t%d\n", (long long)b->layout.parameters,
           b->sequences * b->shape.context);
    for (int way = 0; way < 4; way++)
        if (time_lanes(t, b, way < 2, way % 2, err) < 0)
            return -1;
    return 0;
}

static int trace_on(struct tool *t, struct bench *b, struct error *err)
{
    place_bench(b);
    if (open_all(t, b->bytes, err) < 0 || cuda_blas_open(&t->blas, t->device, err) < 0)
        return -1;
    return time_lanes(t, b, false, false, err);
}

static int read_bench(struct bench *b, char **argv)
{
    int *const to[] = {&b->shape.layers,     &b->shape.heads, &b->shape.width, &b->shape.context,
                       &b->shape.vocabulary, &b->sequences,   &b->lanes};
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        *to[i] = (int)strtol(argv[i], NULL, 10);
        if (*to[i] < 1)
            return -1;
    }
    return b->shape.layers > RM_LAYERS_MAX || b->lanes > LANES_MOST ? -1 : 0;
}

/* ---- all ---- */

static void close_all(struct tool *t, struct bench *b)
{
    cuda_memory_clear(&t->memory);
    cuda_stream_clear(&t->stream);
    cuda_module_clear(&t->exact);
    cuda_module_clear(&t->model);
    cuda_blas_free(t->blas);
    cuda_device_free(t->device);
    cuda_driver_free(t->driver);
    free(b->tokens);
}

int main(int argc, char **argv)
{
    static struct bench b;
    struct tool t = {0};
    struct error err = {0};
    int result;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc == 2 && !strcmp(argv[1], "look"))
        result = look(&t, &err);
    else if (argc == 3 && !strcmp(argv[1], "fill"))
        result = fill_on(&t, (size_t)strtoul(argv[2], NULL, 10) << 20, &err);
    else if (argc == 9 && !strcmp(argv[1], "lane") && read_bench(&b, argv + 2) == 0)
        result = lane_on(&t, &b, &err);
    else if (argc == 9 && !strcmp(argv[1], "trace") && read_bench(&b, argv + 2) == 0)
        result = trace_on(&t, &b, &err);
    else if (argc == 3 && !strcmp(argv[1], "arena"))
        result = gpu_arena((size_t)strtoul(argv[2], NULL, 10) << 20, &err);
    else {
        fprintf(stderr, "gpu_tool look | fill MIB | arena MIB | lane or trace LAYERS HEADS WIDTH CONTEXT "
                        "VOCABULARY SEQUENCES LANES\n");
        return EXIT_USAGE;
    }
    close_all(&t, &b);
    return result < 0 ? failed(&err) : 0;
}
