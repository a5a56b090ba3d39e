/* Causal self-attention on bf16, by the products of bf16.h, forward and backward, a head of a sequence a
 * piece of work. gpt_forward.c and gpt_backward.c call it where a job's precision is bf16; attention.c is
 * the same in fp32. */
#include <math.h>
#include <stddef.h>

#include "trainer/backend/cpu/model/attention.h"
#include "trainer/backend/cpu/model/bf16.h"

enum { BLOCK = ATTENTION_BLOCK };

/* A thread's memory: scores and their gradients (BLOCK, T) each, one product's rows (BLOCK, size), and the
 * gradients of all keys and values (T, size) each. */
int64_t attention_bf16_scratch(int length, int64_t size)
{
    return (int64_t)2 * BLOCK * length + BLOCK * size + 2 * size * length;
}

struct task {
    struct crew *crew;
    const struct attention *a;
    const uint16_t *dmixed;
    uint16_t *dqkv;
};

/* Rows of a matrix of bf16. */
struct rows {
    const uint16_t *data;
    int64_t stride;
};

/* One head of one sequence. */
struct one_head {
    const struct task *task;
    int64_t length, size;
    float scale;
    struct rows q, k, v, mixed, dmixed;
    uint16_t *mixed_out; /* the same as mixed, to write */
    int64_t qkv;         /* offset into qkv and dqkv */
    float *log_sums;
    float *scores, *d, *out, *dk, *dv; /* scratch */
};

static struct one_head one_head_of(const struct task *task, int piece, int thread)
{
    const struct attention *a = task->a;
    int64_t b = piece / a->heads, i = piece % a->heads, size = a->width / a->heads;
    int64_t mixed = b * a->length * a->width + i * size, qkv = b * a->length * 3 * a->width + i * size;
    const uint16_t *q = (const uint16_t *)a->qkv + qkv;
    float *scratch = task->crew->scratch[thread];
    struct one_head h = {.task = task,
                         .length = a->length,
                         .size = size,
                         .scale = 1 / sqrtf((float)size),
                         .q = {q, 3 * a->width},
                         .k = {q + a->width, 3 * a->width},
                         .v = {q + 2 * a->width, 3 * a->width},
                         .mixed = {(const uint16_t *)a->mixed + mixed, a->width},
                         .mixed_out = (uint16_t *)a->mixed + mixed,
                         .qkv = qkv,
                         .log_sums = a->log_sums + (int64_t)piece * a->length,
                         .scores = scratch};
    if (task->dmixed)
        h.dmixed = (struct rows){task->dmixed + mixed, a->width};
    h.d = h.scores + BLOCK * h.length;
    h.out = h.d + BLOCK * h.length;
    h.dk = h.out + BLOCK * size;
    h.dv = h.dk + h.length * size;
    return h;
}

static const uint16_t *row_of(struct rows r, int64_t row)
{
    return r.data + row * r.stride;
}

/* One block of rows [first, end) of the scores. */
struct block {
    int64_t first, rows, end;
};

static struct block block_at(const struct one_head *h, int64_t first)
{
    int64_t left = h->length - first, rows = left < BLOCK ? left : BLOCK;
    return (struct block){first, rows, first + rows};
}

/* out (rows, end) = x[first..end) y[0..end)^T */
static void rows_by_rows(const struct one_head *h, struct block b, struct rows x, struct rows y, float *out)
{
    struct product p = {.m = b.rows,
                        .n = b.end,
                        .k = h->size,
                        .a = {row_of(x, b.first), x.stride, false},
                        .b = {y.data, y.stride, true},
                        .bf16 = true,
                        .c = out,
                        .c_stride = b.end};
    crew_matmul(h->task->crew, &p);
}

/* p: (rows, end) in bf16, each row in the first half of the floats that it was: h->out (rows, size) = p y,
 * rounded to `to`. */
static void weighted_rows(const struct one_head *h, struct block b, const float *p, struct rows y,
                          uint16_t *to, int64_t to_stride)
{
    struct product product = {.m = b.rows,
                              .n = h->size,
                              .k = b.end,
                              .a = {p, 2 * b.end, false},
                              .b = {y.data, y.stride, false},
                              .bf16 = true,
                              .c = h->out,
                              .c_stride = h->size};
    crew_matmul(h->task->crew, &product);
    bf16_store(to + b.first * to_stride, to_stride, h->out, NULL, b.rows, h->size);
}

/* sums[0..end) (end, size) (+)= p^T x[first..end), p as above */
static void spread_rows(const struct one_head *h, struct block b, const float *p, struct rows x, float *sums,
                        bool add)
{
    struct product product = {.m = b.end,
                              .n = h->size,
                              .k = b.rows,
                              .a = {p, 2 * b.end, true},
                              .b = {row_of(x, b.first), x.stride, false},
                              .bf16 = true,
                              .c = sums,
                              .c_stride = h->size,
                              .add = add};
    crew_matmul(h->task->crew, &product);
}

static void forward_block(const struct one_head *h, struct block b)
{
    rows_by_rows(h, b, h->q, h->k, h->scores);
    for (int64_t r = 0; r < b.rows; r++) {
        float *row = h->scores + r * b.end;
        h->log_sums[b.first + r] = attention_softmax(row, b.first + r + 1, b.end, h->scale);
        bf16_narrow(row, row, b.end);
    }
    weighted_rows(h, b, h->scores, h->v, h->mixed_out, h->mixed.stride);
}

static void forward_piece(void *ctx, int piece, int thread)
{
    struct one_head h = one_head_of(ctx, piece, thread);
    for (int64_t first = 0; first < h.length; first += BLOCK)
        forward_block(&h, block_at(&h, first));
}

int attention_bf16_forward(struct crew *crew, const struct attention *a)
{
    struct task task = {.crew = crew, .a = a};
    return crew_run(crew, a->sequences * a->heads, forward_piece, &task);
}

static void backward_block(const struct one_head *h, struct block b, bool add)
{
    int64_t c = h->task->a->width;
    rows_by_rows(h, b, h->q, h->k, h->scores);
    rows_by_rows(h, b, h->dmixed, h->v, h->d);
    for (int64_t r = 0; r < b.rows; r++) {
        int64_t row = b.first + r;
        float *scores = h->scores + r * b.end, *d = h->d + r * b.end;
        float drift = bf16_dot(row_of(h->mixed, row), row_of(h->dmixed, row), h->size);
        attention_softmax_backward(scores, d, row + 1, b.end, h->scale, h->log_sums[row], drift);
        bf16_narrow(scores, scores, b.end);
        bf16_narrow(d, d, b.end);
    }
    spread_rows(h, b, h->scores, h->dmixed, h->dv, add);
    spread_rows(h, b, h->d, h->q, h->dk, add);
    weighted_rows(h, b, h->d, h->k, h->task->dqkv + h->qkv, 3 * c);
}

/* The last block reaches all keys, so it goes first and sets what the others add to. */
static void backward_piece(void *ctx, int piece, int thread)
{
    struct task *task = ctx;
    struct one_head h = one_head_of(task, piece, thread);
    int64_t c = task->a->width, last = (h.length - 1) / BLOCK * BLOCK;
    uint16_t *dk = task->dqkv + h.qkv + c;
    for (int64_t first = last; first >= 0; first -= BLOCK)
        backward_block(&h, block_at(&h, first), first != last);
    bf16_store(dk, 3 * c, h.dk, NULL, h.length, h.size);
    bf16_store(dk + c, 3 * c, h.dv, NULL, h.length, h.size);
}

int attention_bf16_backward(struct crew *crew, const struct attention *a, const uint16_t *dmixed,
                            uint16_t *dqkv)
{
    struct task task = {crew, a, dmixed, dqkv};
    return crew_run(crew, a->sequences * a->heads, backward_piece, &task);
}
