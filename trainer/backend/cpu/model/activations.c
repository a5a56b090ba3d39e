#include "trainer/backend/cpu/model/activations.h"

#include <stdlib.h>
#include <string.h>

#include "common/os/pages.h"
#include "trainer/backend/cpu/model/attention.h"
#include "trainer/backend/cpu/model/gpt_impl.h"
#include "trainer/backend/cpu/model/head.h"
#include "trainer/backend/cpu/model/linear.h"

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

/* What enters products. */
static void *take_operands(struct region *r, const struct activations_options *o, int64_t count)
{
    return take(r, count, o->bf16 ? sizeof(uint16_t) : sizeof(float));
}

static void place_block(struct block_activations *b, struct region *r, const struct activations_options *o,
                        int64_t n)
{
    int64_t c = o->shape->width;
    b->stats1 = take(r, n, sizeof *b->stats1);
    b->stats2 = take(r, n, sizeof *b->stats2);
    b->norm1 = take_operands(r, o, n * c);
    b->qkv = take_operands(r, o, 3 * n * c);
    b->log_sums = take_floats(r, n * o->shape->heads);
    b->mixed = take_operands(r, o, n * c);
    b->middle = take_floats(r, n * c);
    b->norm2 = take_operands(r, o, n * c);
    b->wide = take_operands(r, o, 4 * n * c);
    b->gelu = take_operands(r, o, 4 * n * c);
}

static void place_blocks(struct activations *a, struct region *r, const struct activations_options *o,
                         int64_t n)
{
    for (int layer = 0; layer < o->shape->layers; layer++) {
        if (layer && o->recompute)
            a->block[layer] = a->block[0];
        else
            place_block(&a->block[layer], r, o, n);
        a->block[layer].out = take_floats(r, n * o->shape->width);
    }
}

static int64_t scratch_of(const struct activations_options *o)
{
    if (!o->bf16)
        return attention_scratch(o->shape->context);
    int64_t heads = attention_bf16_scratch(o->shape->context, o->shape->width / o->shape->heads);
    return heads > LINEAR_SCRATCH ? heads : LINEAR_SCRATCH;
}

static void place_scratch(struct activations *a, struct region *r, const struct activations_options *o)
{
    float **scratch = take(r, o->threads, sizeof *scratch);
    for (int i = 0; i < o->threads; i++) {
        float *own = take_floats(r, scratch_of(o));
        if (scratch)
            scratch[i] = own;
    }
    a->scratch = scratch;
}

static void place(struct activations *a, struct region *r, const struct activations_options *o)
{
    int64_t c = o->shape->width, n = (int64_t)o->sequences * o->shape->context;
    a->embedded = take_floats(r, n * c);
    place_blocks(a, r, o, n);
    a->stats = take(r, n, sizeof *a->stats);
    a->norm = take_operands(r, o, n * c);
    a->losses = take_floats(r, n);
    a->logits = take_floats(r, head_scratch(n, o->shape->vocabulary, o->bf16));
    a->dstream = take_floats(r, n * c);
    a->dstream_rounded = o->bf16 ? take(r, n * c, sizeof *a->dstream_rounded) : NULL;
    a->dnarrow = take_floats(r, n * c);
    a->dmixed = o->bf16 ? take(r, n * c, sizeof(uint16_t)) : a->dnarrow;
    a->dwide = take_operands(r, o, 4 * n * c);
    a->partials = take_floats(r, crew_pieces(n, GPT_ROWS) * 2 * c);
    a->tokens = take(r, n, sizeof *a->tokens);
    a->targets = take(r, n, sizeof *a->targets);
    place_scratch(a, r, o);
}

int activations_open(struct activations *a, const struct activations_options *options, struct error *err)
{
    struct region region = {0};
    memset(a, 0, sizeof *a);
    place(a, &region, options);
    size_t bytes = region.used;
    void *memory = pages_alloc(bytes);
    if (!memory)
        return err_set(err, ERR_MACHINE, "no memory for the activations of %d sequences: %zu MiB",
                       options->sequences, bytes >> 20);
    region = (struct region){.base = memory};
    place(a, &region, options);
    a->memory = memory;
    a->bytes = bytes;
    return 0;
}

void activations_clear(struct activations *a)
{
    free(a->memory);
    memset(a, 0, sizeof *a);
}
