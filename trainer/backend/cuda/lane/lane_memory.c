#include "trainer/backend/cuda/kernels/columns.h"
#include "trainer/backend/cuda/kernels/norm.h"
#include "trainer/backend/cuda/lane/lane_parts.h"

enum { VOCABULARY_UNIT = 128 /* rows of the word embedding in memory: products like it */ };
enum { ALIGNED = 256, FLOATS = sizeof(float), HALVES = sizeof(uint16_t) };

void lane_measure(struct cuda_lane *l)
{
    const struct model_shape *s = &l->layout->shape;
    l->head_size = s->width / s->heads;
    l->under_way = l->sequences;
    l->rows = (int64_t)l->sequences * s->context;
    l->width = s->width;
    l->vocabulary = ((int64_t)s->vocabulary + VOCABULARY_UNIT - 1) / VOCABULARY_UNIT * VOCABULARY_UNIT;
}

struct region {
    CUdeviceptr base;
    size_t used;
};

static CUdeviceptr take(struct region *r, int64_t count, size_t size)
{
    const CUdeviceptr at = r->base + r->used;
    r->used += ((size_t)count * size + ALIGNED - 1) / ALIGNED * ALIGNED;
    return at;
}

static void place_weights(const struct cuda_lane *l, struct lane_block *b, struct region *r)
{
    const int64_t c = l->width;
    b->attn = take(r, 3 * c * c, HALVES);
    b->attn_bias = take(r, 3 * c, HALVES);
    b->proj = take(r, c * c, HALVES);
    b->fc = take(r, 4 * c * c, HALVES);
    b->mlp = take(r, 4 * c * c, HALVES);
}

static void place_products(const struct cuda_lane *l, struct lane_block *b, struct region *r)
{
    const int64_t n = l->rows, c = l->width;
    b->stats1 = take(r, n, sizeof(struct norm_stats));
    b->qkv = take(r, 3 * n * c, HALVES);
    b->log_sums = take(r, n * l->layout->shape.heads, FLOATS);
    b->mixed = take(r, n * c, HALVES);
    b->middle = take(r, n * c, FLOATS);
    b->stats2 = take(r, n, sizeof(struct norm_stats));
    b->wide = take(r, 4 * n * c, HALVES);
}

static void place_cheap(const struct cuda_lane *l, struct lane_block *b, struct region *r)
{
    const int64_t n = l->rows, c = l->width;
    b->norm1 = take(r, n * c, HALVES);
    b->norm2 = take(r, n * c, HALVES);
    b->gelu = take(r, 4 * n * c, HALVES);
}

/* Each has its weights and what came into it; what is not kept lies where the first one has it. */
static void place_block(const struct cuda_lane *l, struct lane_block *b, const struct lane_block *first,
                        struct region *r)
{
    *b = *first;
    place_weights(l, b, r);
    b->stream = take(r, l->rows * l->width, FLOATS);
    if (b == first || l->keep < CUDA_KEEP_INPUTS)
        place_products(l, b, r);
    if (b == first || l->keep < CUDA_KEEP_PRODUCTS)
        place_cheap(l, b, r);
}

/* Shares of norms have both gradients, those of biases are up to four widths long. */
static int64_t shares_count(const struct cuda_lane *l)
{
    const int64_t of_norms = (l->rows + NORM_ROWS - 1) / NORM_ROWS * 2;
    const int64_t of_biases = (l->rows + LANE_COLUMNS_EACH - 1) / LANE_COLUMNS_EACH * 4;
    return (of_norms > of_biases ? of_norms : of_biases) * l->width;
}

static int64_t gradient_count(const struct cuda_lane *l)
{
    const int64_t of_block = 4 * l->width * l->width, of_places = l->layout->shape.context * l->width;
    return of_block > of_places ? of_block : of_places;
}

static void place_way_back(struct cuda_lane *l, struct region *r)
{
    struct lane_places *at = &l->at;
    const int64_t n = l->rows, c = l->width;
    at->dstream = take(r, n * c, FLOATS);
    at->dstream_half = take(r, n * c, HALVES);
    at->dnorm = take(r, n * c, FLOATS);
    at->dmixed = take(r, n * c, HALVES);
    at->drift = take(r, n * l->layout->shape.heads, FLOATS);
    at->dwide = take(r, 4 * n * c, HALVES);
    at->shares = take(r, shares_count(l), FLOATS);
    at->sums = take(r, 4 * c, FLOATS);
    at->gradient = take(r, gradient_count(l), FLOATS);
    at->dwte = take(r, l->vocabulary * c, FLOATS);
}

void lane_place(struct cuda_lane *l, CUdeviceptr base)
{
    struct region r = {base, 0};
    struct lane_places *at = &l->at;
    const int64_t n = l->rows, c = l->width;
    at->wte = take(&r, l->vocabulary * c, HALVES);
    for (int i = 0; i < l->layout->shape.layers; i++)
        place_block(l, &at->block[i], &at->block[0], &r);
    at->branch = take(&r, n * c, HALVES);
    at->last = take(&r, n * c, FLOATS);
    at->stats = take(&r, n, sizeof(struct norm_stats));
    at->norm = take(&r, n * c, HALVES);
    at->logits = take(&r, n * l->vocabulary, HALVES);
    at->losses = take(&r, n, FLOATS);
    place_way_back(l, &r);
    at->rows = take(&r, 1, lane_rows_bytes(n));
    at->workspace = take(&r, LANE_WORKSPACE, 1);
    at->bytes = r.used;
}

size_t lane_rows_bytes(int64_t rows)
{
    return (size_t)(4 * rows + 2) * sizeof(int32_t);
}

struct lane_rows lane_rows_at(int64_t rows, void *base)
{
    int32_t *at = base;
    return (struct lane_rows){.tokens = at,
                              .targets = at + rows,
                              .order = at + 2 * rows,
                              .first = at + 3 * rows,
                              .groups = at + 4 * rows + 1};
}

size_t lane_host_bytes(const struct cuda_lane *l)
{
    return lane_rows_bytes(l->rows) + (size_t)l->rows * sizeof(float);
}

void lane_place_host(struct cuda_lane *l, void *base)
{
    l->host = lane_rows_at(l->rows, base);
    l->losses = (float *)(void *)((char *)base + lane_rows_bytes(l->rows));
}
