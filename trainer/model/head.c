#include "trainer/model/head.h"

#include "trainer/model/cross_entropy.h"

enum { LOGITS_MAX = 64 << 20 }; /* floats of one chunk */

int64_t head_chunk(int64_t rows, int64_t vocabulary)
{
    int64_t most = LOGITS_MAX / vocabulary;
    return most < 1 ? 1 : rows < most ? rows : most;
}

struct task {
    struct crew *crew;
    const struct head *h;
    int64_t first; /* row of the chunk */
    struct product forward, dx, dwte;
    struct tiling forward_tiles, dx_tiles, dwte_tiles;
};

static void forward_piece(void *ctx, int piece, int thread)
{
    (void)thread;
    struct task *task = ctx;
    int64_t row, column;
    struct product tile = matmul_tile(&task->forward, &task->forward_tiles, piece, &row, &column);
    crew_matmul(task->crew, &tile);
}

static void loss_piece(void *ctx, int piece, int thread)
{
    (void)thread;
    struct task *task = ctx;
    const struct head *h = task->h;
    int64_t row = task->first + piece;
    float scale = h->dx ? 1 / (float)h->rows : 0;
    h->losses[row] = cross_entropy(h->logits + piece * h->vocabulary, h->vocabulary, h->targets[row], scale);
}

static void backward_piece(void *ctx, int piece, int thread)
{
    (void)thread;
    struct task *task = ctx;
    bool is_dx = piece < task->dx_tiles.tiles;
    int64_t row, column;
    struct product tile =
        is_dx ? matmul_tile(&task->dx, &task->dx_tiles, piece, &row, &column)
              : matmul_tile(&task->dwte, &task->dwte_tiles, piece - task->dx_tiles.tiles, &row, &column);
    crew_matmul(task->crew, &tile);
}

static struct product logits_of(const float *x, const float *wte, int64_t rows, int64_t width,
                                int64_t vocabulary, float *logits)
{
    return (struct product){.m = rows,
                            .n = vocabulary,
                            .k = width,
                            .a = {x, width, false},
                            .b = {wte, width, true},
                            .c = logits,
                            .c_stride = vocabulary};
}

static int chunk_backward(struct task *task, int64_t rows)
{
    const struct head *h = task->h;
    task->dx = (struct product){.m = rows,
                                .n = h->width,
                                .k = h->vocabulary,
                                .a = {h->logits, h->vocabulary, false},
                                .b = {h->wte, h->width, false},
                                .c = h->dx + task->first * h->width,
                                .c_stride = h->width};
    task->dwte = (struct product){.m = h->vocabulary,
                                  .n = h->width,
                                  .k = rows,
                                  .a = {h->logits, h->vocabulary, true},
                                  .b = {h->x + task->first * h->width, h->width, false},
                                  .c = h->dwte,
                                  .c_stride = h->width,
                                  .add = task->first > 0};
    task->dx_tiles = matmul_tiling(&task->dx);
    task->dwte_tiles = matmul_tiling(&task->dwte);
    return crew_run(task->crew, task->dx_tiles.tiles + task->dwte_tiles.tiles, backward_piece, task);
}

static int chunk_forward(struct task *task, int64_t rows)
{
    const struct head *h = task->h;
    task->forward =
        logits_of(h->x + task->first * h->width, h->wte, rows, h->width, h->vocabulary, h->logits);
    task->forward_tiles = matmul_tiling(&task->forward);
    if (crew_run(task->crew, task->forward_tiles.tiles, forward_piece, task) < 0)
        return -1;
    return crew_run(task->crew, (int)rows, loss_piece, task);
}

int head_run(struct crew *crew, const struct head *h)
{
    int64_t chunk = head_chunk(h->rows, h->vocabulary);
    for (int64_t first = 0; first < h->rows; first += chunk) {
        struct task task = {.crew = crew, .h = h, .first = first};
        int64_t rows = h->rows - first < chunk ? h->rows - first : chunk;
        if (chunk_forward(&task, rows) < 0 || (h->dx && chunk_backward(&task, rows) < 0))
            return -1;
    }
    return 0;
}

int head_logits(struct crew *crew, const float *x, const float *wte, int64_t width, int64_t vocabulary,
                float *logits)
{
    struct task task = {.crew = crew, .forward = logits_of(x, wte, 1, width, vocabulary, logits)};
    task.forward_tiles = matmul_tiling(&task.forward);
    return crew_run(crew, task.forward_tiles.tiles, forward_piece, &task);
}
