#include "trainer/model/linear.h"

#include <stddef.h>

#include "trainer/model/bias.h"
#include "trainer/model/gelu.h"

struct task {
    struct crew *crew;
    const struct linear *l;
    const struct linear_gradient *g;
    struct product forward, dx, dweight;
    struct tiling forward_tiles, dx_tiles, dweight_tiles;
};

static void forward_piece(void *ctx, int piece, int thread)
{
    (void)thread;
    struct task *task = ctx;
    const struct linear *l = task->l;
    int64_t row, column;
    struct product tile = matmul_tile(&task->forward, &task->forward_tiles, piece, &row, &column);
    int64_t at = row * l->out + column;
    bias_fill(tile.c, l->residual ? l->residual + at : NULL, l->out, l->bias + column, tile.m, tile.n);
    crew_matmul(task->crew, &tile);
    if (l->gelu)
        gelu_forward(l->gelu + at, tile.c, l->out, tile.m, tile.n);
}

int linear_forward(struct crew *crew, const struct linear *l)
{
    struct task task = {.crew = crew, .l = l};
    task.forward = (struct product){.m = l->rows,
                                    .n = l->out,
                                    .k = l->in,
                                    .a = {l->x, l->in, false},
                                    .b = {l->weight, l->out, false},
                                    .c = l->y,
                                    .c_stride = l->out,
                                    .add = true};
    task.forward_tiles = matmul_tiling(&task.forward);
    return crew_run(crew, task.forward_tiles.tiles, forward_piece, &task);
}

static void dx_piece(struct task *task, int piece)
{
    const struct linear *l = task->l;
    int64_t row, column;
    struct product tile = matmul_tile(&task->dx, &task->dx_tiles, piece, &row, &column);
    crew_matmul(task->crew, &tile);
    if (task->g->before_gelu)
        gelu_backward(tile.c, task->g->before_gelu + row * l->in + column, l->in, tile.m, tile.n);
}

static void dweight_piece(struct task *task, int piece)
{
    int64_t row, column;
    struct product tile = matmul_tile(&task->dweight, &task->dweight_tiles, piece, &row, &column);
    crew_matmul(task->crew, &tile);
    if (row == 0) /* the columns of dy are in the cache now */
        bias_gradient(task->g->dbias + column, task->g->dy + column, task->l->out, task->l->rows, tile.n);
}

static void backward_piece(void *ctx, int piece, int thread)
{
    (void)thread;
    struct task *task = ctx;
    if (piece < task->dx_tiles.tiles)
        dx_piece(task, piece);
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
                               .c = g->dx,
                               .c_stride = l->in};
    task.dweight = (struct product){.m = l->in,
                                    .n = l->out,
                                    .k = l->rows,
                                    .a = {l->x, l->in, true},
                                    .b = {g->dy, l->out, false},
                                    .c = g->dweight,
                                    .c_stride = l->out};
    task.dx_tiles = matmul_tiling(&task.dx);
    task.dweight_tiles = matmul_tiling(&task.dweight);
    return crew_run(crew, task.dx_tiles.tiles + task.dweight_tiles.tiles, backward_piece, &task);
}
