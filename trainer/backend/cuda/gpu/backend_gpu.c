/* Carries out the table of who computes on one NVIDIA GPU. */
#include "trainer/backend/cuda/gpu/backend_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"
#include "common/os/crypto.h"
#include "trainer/backend/cpu/model/gpt.h"
#include "trainer/backend/cuda/gpu/gpu_parts.h"
#include "trainer/backend/cuda/gpu/numerics_gpu.h"
#include "trainer/backend/cuda/images.h"
#include "trainer/backend/cuda/nccl/nccl_transport.h"

static void gpu_free(struct backend *b)
{
    struct backend_gpu *g = gpu_of(b);
    struct error ignored = {0};
    if (!g)
        return;
    if (g->device)
        cuda_device_use(g->device, &ignored);
    if (g->stream.handle)
        cuda_stream_wait(&g->stream, &ignored);
    cuda_lane_free(g->lane); /* waits for its stream, where weights may still be rounded */
    gpu_clear_tables(g);
    cuda_memory_clear(&g->bulk);
    gpu_far_clear(&g->far);
    cuda_stream_clear(&g->stream);
    cuda_module_clear(&g->exact);
    cuda_module_clear(&g->model);
    cuda_blas_free(g->blas);
    cuda_device_free(g->device);
    cuda_driver_free(g->driver);
    free(g->header);
    free(g);
}

/* Of this process's memory there are windows and tables alone; the state is the GPU's. */
static struct backend_needs needs_here(const struct model_layout *layout)
{
    const size_t pieces = (size_t)layout->parameters / STATE_PIECE + RM_TENSORS_MAX;
    const size_t each = sizeof(struct sums_of_piece) + sizeof(uint64_t);
    return (struct backend_needs){.lane = GPU_WINDOW + pieces * each};
}

static struct backend_needs gpu_needs(const struct backend *b)
{
    return needs_here(gpu_seen(b)->layout);
}

struct backend_needs backend_gpu_needs(const struct backend_options *options)
{
    return needs_here(options->layout);
}

static struct cuda_needs_shape needs_shape(const struct model_layout *layout, int sequences)
{
    return (struct cuda_needs_shape){
        .layout = layout, .lane_sequences = sequences, .slots = STATE_THREADS_MAX};
}

/* The least: where there is more memory, less is computed again. */
int64_t backend_gpu_bytes(const struct backend_options *options)
{
    struct cuda_needs_shape shape = needs_shape(options->layout, options->sequences);
    struct cuda_needs needs;
    shape.keep = cuda_needs_keep(&shape, options->recompute, 0);
    cuda_needs_make(&needs, &shape);
    return needs.total;
}

static void gpu_fingerprint(const struct backend *b, char *out)
{
    const struct backend_gpu *g = gpu_seen(b);
    uint8_t choice[RM_HASH_BYTES];
    char text[RM_HASH_HEX];
    const int version = g->blas->version;
    cuda_lane_choice(g->lane, choice);
    hex_encode(choice, RM_HASH_BYTES, text);
    snprintf(out, RM_FINGERPRINT_MAX,
             "numerics %s, bf16, sm_%d%d, %d processors, algorithms %.16s, cuBLASLt %d.%d.%d",
             numerics_gpu_id, g->device->major, g->device->minor, g->device->processors, text,
             version / 10000, version / 100 % 100, version % 100);
}

static int gpu_memory(struct backend *b, size_t bytes, struct memory **ret, struct far *ret_base,
                      struct error *err)
{
    struct backend_gpu *g = gpu_of(b);
    RM_ASSERT(!g->bulk.device || g->left, "a second memory for %p", (void *)g);
    if (cuda_device_use(g->device, err) < 0)
        return -1;
    b->kept = gpu_takeover_memory(g, bytes);
    if (!b->kept && cuda_memory_open(&g->bulk, g->device, bytes, "the training state", err) < 0)
        return -1;
    *ret = &g->far.base;
    *ret_base = (struct far){g->bulk.at};
    return 0;
}

static int gpu_attach(struct backend *b, struct state *state, struct error *err)
{
    struct backend_gpu *g = gpu_of(b);
    RM_ASSERT(!g->state && state->in == &g->far.base, "a state of another memory, or a second one: %p, %p",
              (void *)g->state, (void *)state);
    g->state = state;
    g->header = calloc(2 * (size_t)state->header_words, sizeof *g->header);
    if (!g->header)
        return err_set(err, ERR_MACHINE, "no memory for the lanes' header words");
    g->sum = g->header + state->header_words;
    if (cuda_device_use(g->device, err) < 0 || gpu_open_tables(g, err) < 0)
        return -1;
    return gpu_takeover_attach(g, err);
}

/* The values are those of CPUs: a seed has one beginning. */
static int gpu_init(struct backend *b, uint64_t seed, float *params, struct error *err)
{
    (void)err;
    gpt_init_weights(gpu_of(b)->layout, seed, params);
    return 0;
}

static int gpu_weights(struct backend *b, struct far params, struct error *err)
{
    struct backend_gpu *g = gpu_of(b);
    RM_ASSERT(g->state, "weights at %llx without a state, which a GPU does not see",
              (unsigned long long)params.at);
    return cuda_device_use(g->device, err) < 0 ? -1 : cuda_lane_weights(g->lane, params.at, err);
}

static int gpu_copy_out(struct backend *b, void *to, struct far from, size_t bytes, struct error *err)
{
    return memory_read(&gpu_of(b)->far.base, to, from, bytes, err);
}

static int gpu_copy_in(struct backend *b, struct far to, const void *from, size_t bytes, struct error *err)
{
    return memory_write(&gpu_of(b)->far.base, to, from, bytes, err);
}

static int gpu_transport(struct backend *b, const char *key, struct transport **ret, struct error *err)
{
    return nccl_transport_open(ret, gpu_of(b)->device, key, err);
}

static const struct backend_ops gpu_ops = {
    .free = gpu_free,
    .needs = gpu_needs,
    .fingerprint = gpu_fingerprint,
    .probe = gpu_probe,
    .memory = gpu_memory,
    .attach = gpu_attach,
    .init = gpu_init,
    .weights = gpu_weights,
    .warm_up = gpu_warm_up,
    .begin = gpu_begin,
    .lane = gpu_lane,
    .end = gpu_end,
    .decide = gpu_decide,
    .words_to = gpu_words_to,
    .commit = gpu_commit,
    .check = gpu_check,
    .finish = gpu_finish,
    .image_sum = gpu_image_sum,
    .losses = gpu_losses,
    .transport = gpu_transport,
    .copy_out = gpu_copy_out,
    .copy_in = gpu_copy_in,
};

/* ---- open ---- */

static int refuse_options(const struct backend_options *o, struct error *err)
{
    if (!o->bf16)
        return err_set(
            err, ERR_USAGE,
            "a GPU computes in bf16 so far: write trainer.precision: bf16, or trainer.device: cpu");
    return 0;
}

static int open_device(struct backend_gpu *g, struct error *err)
{
    if (cuda_driver_open(&g->driver, err) < 0 || cuda_device_open(&g->device, g->driver, NULL, err) < 0 ||
        cuda_device_use(g->device, err) < 0 || cuda_blas_open(&g->blas, g->device, err) < 0)
        return -1;
    const int version = g->blas->version;
    snprintf(g->name, sizeof g->name, "%s, cuBLASLt %d.%d.%d", g->device->label, version / 10000,
             version / 100 % 100, version % 100);
    return 0;
}

/* Before any of it is taken; and what a lane can keep. */
static int check_room(struct backend_gpu *g, struct error *err)
{
    struct cuda_needs_shape shape = needs_shape(g->layout, g->sequences);
    struct cuda_room room = {.device = g->device->label, .total = (int64_t)g->device->bytes};
    size_t free_bytes;
    if (cuda_device_free_bytes(g->device, &free_bytes, err) < 0)
        return -1;
    room.free = (int64_t)free_bytes + (g->left ? (int64_t)g->bulk.bytes : 0);
    shape.keep = cuda_needs_keep(&shape, g->recompute, room.free);
    cuda_needs_make(&g->needs, &shape);
    return cuda_needs_check(&g->needs, &shape, &room, err);
}

static int take_parts(struct backend_gpu *g, const struct backend_gpu_parts *parts, struct error *err)
{
    struct cuda_lane_options options = {.layout = g->layout,
                                        .sequences = g->sequences,
                                        .exact = &g->exact,
                                        .model = &g->model,
                                        .graphs = parts->graphs};
    if (open_device(g, err) < 0)
        return -1;
    gpu_takeover_open(g);
    if (check_room(g, err) < 0 || cuda_module_open(&g->exact, g->device, parts->exact, "exact", err) < 0 ||
        cuda_module_open(&g->model, g->device, parts->model, "model", err) < 0 ||
        cuda_stream_open(&g->stream, g->device, false, err) < 0 ||
        gpu_far_open(&g->far, g->device, err) < 0 || gpu_open_kernels(g, err) < 0)
        return -1;
    options.keep = g->needs.keep;
    return cuda_lane_open(&g->lane, g->blas, &options, err);
}

int backend_gpu_open_with(struct backend **ret, const struct backend_options *options,
                          const struct backend_gpu_parts *parts, struct error *err)
{
    if (refuse_options(options, err) < 0)
        return -1;
    struct backend_gpu *g = calloc(1, sizeof *g);
    if (!g)
        return err_set(err, ERR_MACHINE, "no memory for who computes");
    g->base.ops = &gpu_ops;
    g->layout = options->layout;
    g->sequences = options->sequences;
    g->recompute = options->recompute;
    g->rule = options->rule;
    g->shelved = options->shelf;
    if (g->shelved)
        g->shelf = *options->shelf;
    if (take_parts(g, parts, err) < 0) {
        if (g->shelved) /* nobody knows in what state the GPU is */
            shelf_empty(&g->shelf);
        gpu_free(&g->base);
        return -1;
    }
    *ret = &g->base;
    return 0;
}

static const void *image_named(const char *name)
{
    for (int i = 0; i < cuda_images_count(); i++)
        if (!strcmp(cuda_image(i).name, name))
            return cuda_image(i).data;
    return NULL;
}

int backend_gpu_open(struct backend **ret, const struct backend_options *options, struct error *err)
{
    const struct backend_gpu_parts parts = {image_named("exact"), image_named("model"), true};
    if (parts.exact && parts.model)
        return backend_gpu_open_with(ret, options, &parts, err);
    err_set(
        err, ERR_MACHINE,
        "this program was built without kernels for GPUs, since no CUDA compiler was there (docs/gpu.md); "
        "train with trainer.device: cpu");
    return err_class(err, CLASS_MACHINE);
}

const char *backend_gpu_name(const struct backend *b)
{
    return gpu_seen(b)->name;
}

void backend_gpu_report(const struct backend *b, struct str *out)
{
    cuda_needs_report(&gpu_seen(b)->needs, out);
}
