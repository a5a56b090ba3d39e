#include "trainer/backend/cpu/model/linear.h"

#include <stddef.h>

#include "trainer/backend/cpu/model/bf16.h"
#include "trainer/backend/cpu/model/bias.h"
#include "trainer/backend/cpu/model/gelu.h"

struct task {
    struct crew *crew;
    const struct linear *l;
    const struct linear_gradient *g;
    struct product forward, dx, dweight;
    struct tiling forward_tiles, dx_tiles, dweight_tiles;
};

/* The tile's product into the thread's own memory, dense. */
static float *own_tile(struct task *task, struct product *tile, int thread)
{
    tile->c = task->crew->scratch[thread];
    tile->c_stride = tile->n;
    crew_matmul(task->crew, tile);
    return tile->c;
}

static void forward_fp32(struct task *task, struct product *tile, int64_t row, int64_t column)
{
    const struct linear *l = task->l;
    int64_t at = row * l->out + column;
    bias_fill(tile->c, l->residual ? l->residual + at : NULL, l->out, l->bias + column, tile->m, tile->n);
    crew_matmul(task->crew, tile);
    if (l->gelu)
        gelu_forward((float *)l->gelu + at, tile->c, l->out, tile->m, tile->n);
}

static void forward_bf16(struct task *task, struct product *tile, int64_t row, int64_t column, int thread)
{
    const struct linear *l = task->l;
    int64_t at = row * l->out + column;
    const float *sums = own_tile(task, tile, thread);
    uint16_t *y = (uint16_t *)l->y + at;
    if (l->gelu)
        bf16_store_gelu(y, (uint16_t *)l->gelu + at, l->out, sums, l->bias + column, tile->m, tile->n);
    else
        bf16_store(y, l->out, sums, l->bias + column, tile->m, tile->n);
}

static void forward_piece(void *ctx, int piece, int thread)
{
    struct task *task = ctx;
    int64_t row, column;
    struct product tile = matmul_tile(&task->forward, &task->forward_tiles, piece, &row, &column);
    if (tile.c)
        forward_fp32(task, &tile, row, column);
    else
        forward_bf16(task, &tile, row, column, thread);
}

int linear_forward(struct crew *crew, const struct linear *l)
{
    struct task task = {.crew = crew, .l = l};
    bool fp32_out = !l->bf16 || l->residual;
    task.forward = (struct product){.m = l->rows,
                                    .n = l->out,
                                    .k = l->in,
                                    .a = {l->x, l->in, false},
                                    .b = {l->weight, l->out, false},
                                    .bf16 = l->bf16,
                                    .c = fp32_out ? l->y : NULL,
                                    .c_stride = l->out,
                                    .add = fp32_out};
    task.forward_tiles = matmul_tiling(&task.forward);
    return crew_run(crew, task.forward_tiles.tiles, forward_piece, &task);
}

static void dx_bf16(struct task *task, struct product *tile, int64_t at, int thread)
{
    const struct linear *l = task->l;
    const float *sums = own_tile(task, tile, thread);
    uint16_t *dx = (uint16_t *)task->g->dx + at;
    const uint16_t *before = task->g->before_gelu;
    if (before)
        bf16_store_gelu_backward(dx, before + at, l->in, sums, tile->m, tile->n);
    else
        bf16_store(dx, l->in, sums, NULL, tile->m, tile->n);
}

static void dx_piece(struct task *task, int piece, int thread)
{
    const struct linear *l = task->l;
    int64_t row, column;
    struct product tile = matmul_tile(&task->dx, &task->dx_tiles, piece, &row, &column);
    int64_t at = row * l->in + column;
    if (!tile.c) {
        dx_bf16(task, &tile, at, thread);
        return;
    }
    crew_matmul(task->crew, &tile);
    if (task->g->before_gelu)
        gelu_backward(tile.c, (const float *)task->g->before_gelu + at, l->in, tile.m, tile.n);
}

static void dweight_piece(struct task *task, int piece)
{
    const struct linear *l = task->l;
    int64_t row, column;
    struct product tile = matmul_tile(&task->dweight, &task->dweight_tiles, piece, &row, &column);
    crew_matmul(task->crew, &tile);
    if (row != 0)
        return;
    float *sums = task->g->dbias + column; /* the columns of dy are in the cache now */
    if (l->bf16)
        bf16_column_sums(sums, (const uint16_t *)task->g->dy + column, l->out, l->rows, tile.n);
    else
        bias_gradient(sums, (const float *)task->g->dy + column, l->out, l->rows, tile.n);
}

static void backward_piece(void *ctx, int piece, int thread)
{
    struct task *task = ctx;
    if (piece < task->dx_tiles.tiles)
        dx_piece(task, piece, thread);
    else
        dweight_piece(task, piece - task->dx_tiles.tiles);
}

int linear_backward(struct crew *crew, const struct linear *l, const struct linear_gradient *g)
{
    struct task task = {.crew = crew, .l = l, .g = g};
    task.dx = (struct product){.m = l->rows,
                               .n = l->in,
                               .k = l->out,
                               .a = {g->dy, l->out, false},
                               .b = {l->weight, l->out, true},
                               .bf16 = l->bf16,
                               .c = g->dx_bf16 ? NULL : g->dx,
                               .c_stride = l->in};
    task.dweight = (struct product){.m = l->in,
                                    .n = l->out,
                                    .k = l->rows,
                                    .a = {l->x, l->in, true},
                                    .b = {g->dy, l->out, false},
                                    .bf16 = l->bf16,
                                    .c = g->dweight,
                                    .c_stride = l->out};
    task.dx_tiles = matmul_tiling(&task.dx);
    task.dweight_tiles = matmul_tiling(&task.dweight);
    return crew_run(crew, task.dx_tiles.tiles + task.dweight_tiles.tiles, backward_piece, &task);
}
