/* The head of the model on bf16: logits, their losses and gradients, a chunk of rows at a time, so that a
 * chunk's exponentials stay in the cache. head.c calls it where products are of bf16. */
#include "trainer/backend/cpu/model/head_bf16.h"

#include <stddef.h>

#include "trainer/backend/cpu/model/bf16.h"
#include "trainer/backend/cpu/model/soft_blocks.h"

/* A part of the columns is one product's tile; a block of several lies together in memory, row by row, as
 * (BLOCKS, rows, BLOCK): long enough to be the inner side of a product. */
enum {
    PART = 96,
    PART_ROWS = MATMUL_TILE / PART,
    BLOCK = 4 * PART,
    GATHERED = 16, /* rows of one piece */
    DX_ROWS = 256, /* of one tile of dx, whose inner side is the vocabulary */
    DX_COLUMNS = 384,
    POWERS_MAX = 128 << 20, /* exponentials of one chunk of rows */
};

struct task {
    struct crew *crew;
    const struct head *h;
    int64_t first, rows; /* the chunk */
    int64_t parts, blocks;
    uint16_t *powers; /* (blocks, rows, BLOCK) */
    float *aimed;     /* (rows) */
    struct soft soft;
};

static int64_t at_most(int64_t left, int64_t most)
{
    return left < most ? left : most;
}

static int64_t blocks_of(int64_t vocabulary)
{
    return crew_pieces(vocabulary, BLOCK);
}

static int64_t chunk_of(int64_t rows, int64_t vocabulary)
{
    int64_t most = POWERS_MAX / (blocks_of(vocabulary) * BLOCK);
    return most < 1 ? 1 : at_most(rows, most);
}

/* Floats: the powers, top and sum of each part, and two numbers for each row. */
int64_t head_bf16_scratch(int64_t rows, int64_t vocabulary)
{
    int64_t chunk = chunk_of(rows, vocabulary);
    return chunk * (blocks_of(vocabulary) * BLOCK / 2 + 2 * crew_pieces(vocabulary, PART) + 2);
}

static struct task chunk_at(struct crew *crew, const struct head *h, int64_t first)
{
    struct task t = {.crew = crew, .h = h, .first = first, .blocks = blocks_of(h->vocabulary)};
    t.rows = at_most(h->rows - first, chunk_of(h->rows, h->vocabulary));
    t.parts = crew_pieces(h->vocabulary, PART);
    t.powers = (uint16_t *)h->logits;
    float *numbers = h->logits + t.blocks * t.rows * BLOCK / 2;
    t.aimed = numbers + 2 * t.parts * t.rows;
    t.soft = (struct soft){.rows = t.rows,
                           .parts = t.parts,
                           .top = numbers,
                           .sum = numbers + t.parts * t.rows,
                           .aimed = t.aimed,
                           .losses = h->losses + first,
                           .at_target = t.aimed + t.rows,
                           .scale = 1 / (float)h->rows};
    return t;
}

static const uint16_t *x_of(const struct task *t, int64_t row)
{
    return (const uint16_t *)t->h->x + (t->first + row) * t->h->width;
}

/* The exponentials of column `column` from row `row` on. */
static uint16_t *powers_at(const struct task *t, int64_t row, int64_t column)
{
    return t->powers + (column / BLOCK * t->rows + row) * BLOCK + column % BLOCK;
}

/* Where the row's target lies, counted from the column `first`. */
static int64_t target_of(const struct task *t, int64_t row, int64_t first)
{
    return t->h->targets[t->first + row] - first;
}

static void forward_piece(void *ctx, int piece, int thread)
{
    struct task *t = ctx;
    const struct head *h = t->h;
    int64_t part = piece % t->parts, row = piece / t->parts * PART_ROWS, column = part * PART;
    struct product p = {.m = at_most(t->rows - row, PART_ROWS),
                        .n = at_most(h->vocabulary - column, PART),
                        .k = h->width,
                        .a = {x_of(t, row), h->width, false},
                        .b = {(const uint16_t *)h->wte + column * h->width, h->width, true},
                        .bf16 = true,
                        .c = t->crew->scratch[thread]};
    int64_t at = part * t->rows + row;
    p.c_stride = p.n;
    crew_matmul(t->crew, &p);
    soft_part(p.c, p.m, p.n, t->soft.top + at, t->soft.sum + at, h->dx ? powers_at(t, row, column) : NULL,
              BLOCK);
    for (int64_t r = 0; r < p.m; r++) {
        int64_t target = target_of(t, row + r, column);
        if (target >= 0 && target < p.n)
            t->aimed[row + r] = p.c[r * p.n + target];
    }
}

static void gather_piece(void *ctx, int piece, int thread)
{
    (void)thread;
    struct task *t = ctx;
    int64_t row = (int64_t)piece * GATHERED;
    soft_gather(&t->soft, row, at_most(t->rows - row, GATHERED));
}

/* The block's exponentials become gradients. That of a target is worked out from its logit: what is left of
 * it may be small beside the rounding of its exponential. */
static void finish_block(struct task *t, int64_t column, int64_t columns)
{
    const struct soft_block block = {
        powers_at(t, 0, column), t->rows, columns, BLOCK, PART, t->soft.top + column / PART * t->rows};
    soft_scale(&block);
    for (int64_t r = 0; r < t->rows; r++) {
        int64_t target = target_of(t, r, column);
        if (target >= 0 && target < columns)
            bf16_narrow(powers_at(t, r, column + target), t->soft.at_target + r, 1);
    }
}

static void dwte_piece(void *ctx, int piece, int thread)
{
    (void)thread;
    struct task *t = ctx;
    const struct head *h = t->h;
    int64_t column = (int64_t)piece * BLOCK, columns = at_most(h->vocabulary - column, BLOCK);
    finish_block(t, column, columns);
    const struct product p = {.m = columns,
                              .n = h->width,
                              .k = t->rows,
                              .a = {powers_at(t, 0, column), BLOCK, true},
                              .b = {x_of(t, 0), h->width, false},
                              .bf16 = true,
                              .c = h->dwte + column * h->width,
                              .c_stride = h->width,
                              .add = t->first > 0};
    crew_matmul(t->crew, &p);
}

/* Block by block, so that a pass can be stopped in between. */
static void dx_piece(void *ctx, int piece, int thread)
{
    (void)thread;
    struct task *t = ctx;
    const struct head *h = t->h;
    int64_t across = crew_pieces(h->width, DX_COLUMNS);
    int64_t row = piece / across * DX_ROWS, column = piece % across * DX_COLUMNS;
    struct product p = {.m = at_most(t->rows - row, DX_ROWS),
                        .n = at_most(h->width - column, DX_COLUMNS),
                        .bf16 = true,
                        .c = h->dx + (t->first + row) * h->width + column,
                        .c_stride = h->width};
    for (int64_t k = 0; k < h->vocabulary && !crew_is_over(t->crew); k += BLOCK) {
        p.k = at_most(h->vocabulary - k, BLOCK);
        p.a = (struct matrix){powers_at(t, row, k), BLOCK, false};
        p.b = (struct matrix){(const uint16_t *)h->wte + k * h->width + column, h->width, false};
        p.add = k > 0;
        crew_matmul(t->crew, &p);
    }
}

static int run_chunk(struct task *t)
{
    struct crew *crew = t->crew;
    int forward = (int)(crew_pieces(t->rows, PART_ROWS) * t->parts);
    int dx = crew_pieces(t->rows, DX_ROWS) * crew_pieces(t->h->width, DX_COLUMNS);
    if (crew_run(crew, forward, forward_piece, t) < 0 ||
        crew_run(crew, crew_pieces(t->rows, GATHERED), gather_piece, t) < 0)
        return -1;
    if (!t->h->dx)
        return 0;
    return crew_run(crew, (int)t->blocks, dwte_piece, t) < 0 ? -1 : crew_run(crew, dx, dx_piece, t);
}

int head_bf16_run(struct crew *crew, const struct head *h)
{
    for (int64_t first = 0; first < h->rows;) {
        struct task t = chunk_at(crew, h, first);
        if (run_chunk(&t) < 0)
            return -1;
        first += t.rows;
    }
    return 0;
}
