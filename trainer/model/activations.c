#include "trainer/model/activations.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/model/attention.h"
#include "trainer/model/gpt_impl.h"
#include "trainer/model/head.h"

enum { ALIGNMENT = 64 };

/* The same walk is done twice: with base NULL it only counts. */
struct region {
    char *base;
    size_t used;
};

static void *take(struct region *r, int64_t count, size_t size)
{
    void *at = r->base ? r->base + r->used : NULL;
    r->used += ((size_t)count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

static float *take_floats(struct region *r, int64_t count)
{
    return take(r, count, sizeof(float));
}

static void place_block(struct block_activations *b, struct region *r, const struct model_shape *shape,
                        int64_t n)
{
    int64_t c = shape->width;
    b->stats1 = take(r, n, sizeof *b->stats1);
    b->stats2 = take(r, n, sizeof *b->stats2);
    b->norm1 = take_floats(r, n * c);
    b->qkv = take_floats(r, 3 * n * c);
    b->log_sums = take_floats(r, n * shape->heads);
    b->mixed = take_floats(r, n * c);
    b->middle = take_floats(r, n * c);
    b->norm2 = take_floats(r, n * c);
    b->wide = take_floats(r, 4 * n * c);
    b->gelu = take_floats(r, 4 * n * c);
    b->out = take_floats(r, n * c);
}

static void place(struct activations *a, struct region *r, const struct model_shape *shape, int64_t n,
                  int threads)
{
    int64_t c = shape->width;
    a->embedded = take_floats(r, n * c);
    for (int layer = 0; layer < shape->layers; layer++)
        place_block(&a->block[layer], r, shape, n);
    a->stats = take(r, n, sizeof *a->stats);
    a->norm = take_floats(r, n * c);
    a->losses = take_floats(r, n);
    a->logits = take_floats(r, head_chunk(n, shape->vocabulary) * shape->vocabulary);
    a->dstream = take_floats(r, n * c);
    a->dnarrow = take_floats(r, n * c);
    a->dwide = take_floats(r, 4 * n * c);
    a->partials = take_floats(r, crew_pieces(n, GPT_ROWS) * 2 * c);
    a->tokens = take(r, n, sizeof *a->tokens);
    a->targets = take(r, n, sizeof *a->targets);
    float **scratch = take(r, threads, sizeof *scratch);
    for (int i = 0; i < threads; i++) {
        float *own = take_floats(r, attention_scratch(shape->context));
        if (scratch)
            scratch[i] = own;
    }
    a->scratch = scratch;
}

int activations_open(struct activations *a, const struct model_shape *shape, int sequences, int threads,
                     struct error *err)
{
    struct region region = {0};
    int64_t rows = (int64_t)sequences * shape->context;
    memset(a, 0, sizeof *a);
    place(a, &region, shape, rows, threads);
    size_t bytes = region.used;
    void *memory = aligned_alloc(ALIGNMENT, bytes);
    if (!memory)
        return err_set(err, ERR_MACHINE, "no memory for the activations of %d sequences: %zu MiB", sequences,
                       bytes >> 20);
    region = (struct region){.base = memory};
    place(a, &region, shape, rows, threads);
    a->memory = memory;
    return 0;
}

void activations_clear(struct activations *a)
{
    free(a->memory);
    memset(a, 0, sizeof *a);
}
