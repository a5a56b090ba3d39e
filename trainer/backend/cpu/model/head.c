#include "trainer/backend/cpu/model/head.h"

#include <stddef.h>

#include "trainer/backend/cpu/model/cross_entropy.h"
#include "trainer/backend/cpu/model/head_bf16.h"

enum { LOGITS_MAX = 64 << 20 }; /* floats of one chunk */

/* Rows of one chunk. */
static int64_t chunk_of(int64_t rows, int64_t vocabulary)
{
    int64_t most = LOGITS_MAX / vocabulary;
    return most < 1 ? 1 : rows < most ? rows : most;
}

int64_t head_scratch(int64_t rows, int64_t vocabulary, bool bf16)
{
    return bf16 ? head_bf16_scratch(rows, vocabulary) : chunk_of(rows, vocabulary) * vocabulary;
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
    float *logits = h->logits + piece * h->vocabulary;
    h->losses[row] = cross_entropy(logits, h->vocabulary, h->targets[row], scale);
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

static const void *row_of(const struct head *h, int64_t row)
{
    return (const char *)h->x + (size_t)(row * h->width) * (h->bf16 ? sizeof(uint16_t) : sizeof(float));
}

static struct product logits_of(const struct head *h, int64_t first, int64_t rows, float *logits)
{
    return (struct product){.m = rows,
                            .n = h->vocabulary,
                            .k = h->width,
                            .a = {row_of(h, first), h->width, false},
                            .b = {h->wte, h->width, true},
                            .bf16 = h->bf16,
                            .c = logits,
                            .c_stride = h->vocabulary};
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
                                  .b = {row_of(h, task->first), h->width, false},
                                  .c = h->dwte,
                                  .c_stride = h->width,
                                  .add = task->first > 0};
    task->dx_tiles = matmul_tiling(&task->dx);
    task->dwte_tiles = matmul_tiling(&task->dwte);
    return crew_run(task->crew, task->dx_tiles.tiles + task->dwte_tiles.tiles, backward_piece, task);
}

static int chunk_forward(struct task *task, int64_t rows)
{
    task->forward = logits_of(task->h, task->first, rows, task->h->logits);
    task->forward_tiles = matmul_tiling(&task->forward);
    if (crew_run(task->crew, task->forward_tiles.tiles, forward_piece, task) < 0)
        return -1;
    return crew_run(task->crew, (int)rows, loss_piece, task);
}

int head_run(struct crew *crew, const struct head *h)
{
    if (h->bf16)
        return head_bf16_run(crew, h);
    int64_t chunk = chunk_of(h->rows, h->vocabulary);
    for (int64_t first = 0; first < h->rows; first += chunk) {
        struct task task = {.crew = crew, .h = h, .first = first};
        int64_t rows = h->rows - first < chunk ? h->rows - first : chunk;
        if (chunk_forward(&task, rows) < 0 || (h->dx && chunk_backward(&task, rows) < 0))
            return -1;
    }
    return 0;
}

int head_logits(struct crew *crew, const struct head *h, int64_t row, float *logits)
{
    struct task task = {.crew = crew, .h = h, .forward = logits_of(h, row, 1, logits)};
    task.forward_tiles = matmul_tiling(&task.forward);
    return crew_run(crew, task.forward_tiles.tiles, forward_piece, &task);
}
