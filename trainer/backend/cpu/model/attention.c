/* Causal self-attention in fp32, forward and backward, a head of a sequence a piece of work. gpt_forward.c
 * and gpt_backward.c call it for each layer; attention_bf16.c is the same on bf16. */
#include "trainer/backend/cpu/model/attention.h"

#include <math.h>

#include "trainer/backend/cpu/model/scalar.h"
#include "trainer/backend/cpu/model/vec.h"

enum { BLOCK = ATTENTION_BLOCK };

int64_t attention_scratch(int length)
{
    return (int64_t)2 * BLOCK * length;
}

VEC_CLONED float attention_softmax(float *scores, int64_t n, int64_t end, float scale)
{
    vec most = vec_set(scores[0]);
    int64_t j = 0;
    for (; j + VEC <= n; j += VEC)
        most = vec_max(most, vec_load(scores + j, VEC));
    float top = vec_largest(most);
    for (int64_t i = j; i < n; i++)
        top = scores[i] > top ? scores[i] : top;
    const vec factor = vec_set(scale), shift = vec_set(top * scale);
    vec sum = vec_set(0);
    for (j = 0; j + VEC <= n; j += VEC) {
        vec p = vec_exp(vec_load(scores + j, VEC) * factor - shift);
        vec_store(scores + j, p, VEC);
        sum += p;
    }
    float total = vec_sum(sum);
    if (j < n) {
        vec p = vec_exp(vec_load(scores + j, (int)(n - j)) * factor - shift);
        for (int64_t i = j; i < n; i++)
            total += scores[i] = p[i - j];
    }
    const vec share = vec_set(1 / total);
    for (j = 0; j < n; j += VEC) {
        int width = vec_width(j, n);
        vec_store(scores + j, vec_load(scores + j, width) * share, width);
    }
    for (j = n; j < end; j++)
        scores[j] = 0;
    return top * scale + (float)scalar_log(total);
}

VEC_CLONED void attention_softmax_backward(float *scores, float *d, int64_t n, int64_t end, float scale,
                                           float log_sum, float drift)
{
    const vec factor = vec_set(scale);
    for (int64_t j = 0; j < n; j += VEC) {
        int width = vec_width(j, n);
        vec p = vec_exp(vec_load(scores + j, width) * factor - vec_set(log_sum));
        vec_store(scores + j, p, width);
        vec_store(d + j, p * (vec_load(d + j, width) - vec_set(drift)) * factor, width);
    }
    for (int64_t j = n; j < end; j++)
        scores[j] = d[j] = 0;
}

VEC_CLONED static float dot(const float *a, const float *b, int64_t n)
{
    vec sum = vec_set(0);
    for (int64_t j = 0; j < n; j += VEC)
        sum += vec_load(a + j, vec_width(j, n)) * vec_load(b + j, vec_width(j, n));
    return vec_sum(sum);
}

/* One head of one sequence: where its rows begin, and their strides. */
struct one_head {
    struct crew *crew;
    const struct attention *a;
    int64_t size;
    float scale;
    const float *q, *k, *v; /* rows 3C apart */
    float *log_sums;
    int64_t mixed; /* offset into mixed and dmixed; rows C apart */
    int64_t qkv;   /* offset into qkv and dqkv */
};

static struct one_head one_head_of(struct crew *crew, const struct attention *a, int piece)
{
    int64_t b = piece / a->heads, h = piece % a->heads, size = a->width / a->heads;
    struct one_head head = {.crew = crew,
                            .a = a,
                            .size = size,
                            .scale = 1 / sqrtf((float)size),
                            .log_sums = a->log_sums + (int64_t)piece * a->length,
                            .mixed = b * a->length * a->width + h * size,
                            .qkv = b * a->length * 3 * a->width + h * size};
    head.q = (const float *)a->qkv + head.qkv;
    head.k = head.q + a->width;
    head.v = head.k + a->width;
    return head;
}

/* out (rows, end) = x[first..first + rows) (rows, size) * y[0..end)^T */
static void rows_by_rows(const struct one_head *h, const float *x, int64_t x_stride, const float *y,
                         int64_t first, int64_t rows, float *out)
{
    struct product p = {.m = rows,
                        .n = first + rows,
                        .k = h->size,
                        .a = {x + first * x_stride, x_stride, false},
                        .b = {y, 3 * h->a->width, true},
                        .c = out,
                        .c_stride = first + rows};
    crew_matmul(h->crew, &p);
}

/* out[first..first + rows) (rows, size) = p (rows, end) * y[0..end) */
static void weighted_rows(const struct one_head *h, const float *p, const float *y, int64_t first,
                          int64_t rows, float *out, int64_t out_stride)
{
    struct product product = {.m = rows,
                              .n = h->size,
                              .k = first + rows,
                              .a = {p, first + rows, false},
                              .b = {y, 3 * h->a->width, false},
                              .c = out + first * out_stride,
                              .c_stride = out_stride};
    crew_matmul(h->crew, &product);
}

/* out[0..end) (end, size) (+)= p (rows, end)^T * x[first..first + rows) */
static void spread_rows(const struct one_head *h, const float *p, const float *x, int64_t x_stride,
                        int64_t first, int64_t rows, float *out, bool add)
{
    struct product product = {.m = first + rows,
                              .n = h->size,
                              .k = rows,
                              .a = {p, first + rows, true},
                              .b = {x + first * x_stride, x_stride, false},
                              .c = out,
                              .c_stride = 3 * h->a->width,
                              .add = add};
    crew_matmul(h->crew, &product);
}

static int64_t block_rows(const struct attention *a, int64_t first)
{
    return a->length - first < BLOCK ? a->length - first : BLOCK;
}

static void forward_block(const struct one_head *h, int64_t first, float *scores)
{
    int64_t rows = block_rows(h->a, first), end = first + rows;
    rows_by_rows(h, h->q, 3 * h->a->width, h->k, first, rows, scores);
    for (int64_t r = 0; r < rows; r++)
        h->log_sums[first + r] = attention_softmax(scores + r * end, first + r + 1, end, h->scale);
    weighted_rows(h, scores, h->v, first, rows, (float *)h->a->mixed + h->mixed, h->a->width);
}

struct task {
    struct crew *crew;
    const struct attention *a;
    const float *dmixed;
    float *dqkv;
};

static void forward_piece(void *ctx, int piece, int thread)
{
    struct task *task = ctx;
    struct one_head h = one_head_of(task->crew, task->a, piece);
    for (int64_t first = 0; first < task->a->length; first += BLOCK)
        forward_block(&h, first, task->crew->scratch[thread]);
}

int attention_forward(struct crew *crew, const struct attention *a)
{
    struct task task = {.crew = crew, .a = a};
    return crew_run(crew, a->sequences * a->heads, forward_piece, &task);
}

static void backward_block(const struct one_head *h, const struct task *task, int64_t first, bool add,
                           float *scores)
{
    int64_t c = h->a->width, rows = block_rows(h->a, first), end = first + rows;
    float *d = scores + BLOCK * h->a->length, *dq = task->dqkv + h->qkv, *dk = dq + c, *dv = dk + c;
    const float *mixed = (const float *)h->a->mixed + h->mixed, *dmixed = task->dmixed + h->mixed;
    rows_by_rows(h, h->q, 3 * c, h->k, first, rows, scores);
    rows_by_rows(h, dmixed, c, h->v, first, rows, d);
    for (int64_t r = 0; r < rows; r++) {
        int64_t row = first + r;
        float drift = dot(mixed + row * c, dmixed + row * c, h->size);
        attention_softmax_backward(scores + r * end, d + r * end, row + 1, end, h->scale, h->log_sums[row],
                                   drift);
    }
    spread_rows(h, scores, dmixed, c, first, rows, dv, add);
    spread_rows(h, d, h->q, 3 * c, first, rows, dk, add);
    weighted_rows(h, d, h->k, first, rows, dq, 3 * c);
}

/* The last block reaches all keys, so it goes first and sets what the others add to. */
static void backward_piece(void *ctx, int piece, int thread)
{
    struct task *task = ctx;
    struct one_head h = one_head_of(task->crew, task->a, piece);
    int64_t last = (task->a->length - 1) / BLOCK * BLOCK;
    for (int64_t first = last; first >= 0; first -= BLOCK)
        backward_block(&h, task, first, first != last, task->crew->scratch[thread]);
}

int attention_backward(struct crew *crew, const struct attention *a, const float *dmixed, float *dqkv)
{
    struct task task = {crew, a, dmixed, dqkv};
    return crew_run(crew, a->sequences * a->heads, backward_piece, &task);
}
