/* The kernels over a state's pieces, how they are started, and their tables. */
#include "trainer/backend/cuda/gpu/gpu_parts.h"

#include <string.h>

#include "trainer/backend/cuda/kernels/prove.h"
#include "trainer/backend/cuda/kernels/restore.h"

enum { ALIGNED = 256 };

/* ---- kernels ---- */

static const struct cuda_kernel_shape shapes[GPU_KERNELS] = {
    [GPU_PROVE] = {"prove", PROVE_THREADS, 0, sizeof(struct prove_args)},
    [GPU_RESTORE] = {"restore", RESTORE_THREADS, 0, sizeof(struct restore_args)},
    [GPU_SUMS] = {"sums", SUMS_THREADS, 0, sizeof(struct sums_args)},
    [GPU_UPDATE] = {"update", UPDATE_THREADS, 0, sizeof(struct update_args)},
};

int gpu_open_kernels(struct backend_gpu *g, struct error *err)
{
    for (int i = 0; i < GPU_KERNELS; i++) {
        if (cuda_kernel_open(&g->kernel[i], &g->exact, &shapes[i], err) < 0 ||
            cuda_kernel_resident(&g->kernel[i], &g->full[i], err) < 0)
            return -1;
        g->full[i] *= g->device->processors;
    }
    if (g->full[GPU_UPDATE] > STATE_THREADS_MAX) /* a slot each */
        g->full[GPU_UPDATE] = STATE_THREADS_MAX;
    return 0;
}

int gpu_launch(struct backend_gpu *g, enum gpu_kernel kernel, int64_t blocks, const void *args,
               struct error *err)
{
    const int most = g->full[kernel];
    return cuda_kernel_launch(&g->kernel[kernel], &g->stream, blocks < most ? (int)blocks : most, args, err);
}

/* ---- tables ---- */

struct region {
    uint64_t base;
    size_t used;
};

static uint64_t take(struct region *r, size_t count, size_t size)
{
    const uint64_t at = r->base + r->used;
    r->used += (count * size + ALIGNED - 1) / ALIGNED * ALIGNED;
    return at;
}

/* Every place, from `base` on; base 0 only counts. */
static size_t place(struct backend_gpu *g, uint64_t base)
{
    struct gpu_tables *t = &g->tables;
    const size_t pieces = (size_t)g->state->pieces, tensors = (size_t)g->layout->tensors;
    struct region r = {base, 0};
    t->said = take(&r, 1, sizeof(struct gpu_said));
    t->piece = take(&r, pieces, sizeof(struct cuda_piece));
    t->sums = take(&r, pieces, sizeof(struct sums_of_piece));
    t->constants = take(&r, tensors, sizeof(struct update_constants));
    return r.used;
}

static size_t place_here(struct backend_gpu *g, void *base)
{
    struct gpu_tables *t = &g->tables;
    const size_t pieces = (size_t)g->state->pieces, tensors = (size_t)g->layout->tensors;
    struct region r = {(uint64_t)(uintptr_t)base, 0};
    t->said_here = gpu_at(take(&r, 1, sizeof *t->said_here));
    t->sums_here = gpu_at(take(&r, pieces, sizeof *t->sums_here));
    t->proof_here = gpu_at(take(&r, pieces, sizeof *t->proof_here));
    t->constants_here = gpu_at(take(&r, tensors, sizeof *t->constants_here));
    return r.used;
}

int gpu_open_tables(struct backend_gpu *g, struct error *err)
{
    struct gpu_tables *t = &g->tables;
    const struct state *s = g->state;
    if (cuda_memory_open(&t->memory, g->device, place(g, 0), "the tables of an update", err) < 0 ||
        cuda_pinned_open(&t->pinned, g->device, place_here(g, NULL), "what an update says", err) < 0)
        return -1;
    place(g, t->memory.at);
    place_here(g, t->pinned);
    return memory_write(&g->far.base, (struct far){t->piece}, s->piece, (size_t)s->pieces * sizeof *s->piece,
                        err);
}

void gpu_clear_tables(struct backend_gpu *g)
{
    if (g->tables.pinned)
        cuda_pinned_free(g->device, g->tables.pinned);
    cuda_memory_clear(&g->tables.memory);
}
