/* Included once by each clone_*.c, which say for which instruction set: the kernels' own sources under names
 * of their own, and one function that runs them all. */
#include <string.h>

#include "tests/unit/trainer/backend/cpu/model/clone.h"

#define attention_softmax_backward CLONE(attention_softmax_backward)
#define attention_softmax          CLONE(attention_softmax)
#define attention_scratch          CLONE(attention_scratch)
#define attention_forward          CLONE(attention_forward)
#define attention_backward         CLONE(attention_backward)
#define bf16_narrow                CLONE(bf16_narrow)
#define bf16_widen                 CLONE(bf16_widen)
#define bf16_store                 CLONE(bf16_store)
#define bf16_store_gelu            CLONE(bf16_store_gelu)
#define bf16_store_gelu_backward   CLONE(bf16_store_gelu_backward)
#define bf16_column_sums           CLONE(bf16_column_sums)
#define bf16_dot                   CLONE(bf16_dot)
#define bias_fill                  CLONE(bias_fill)
#define bias_gradient              CLONE(bias_gradient)
#define cross_entropy              CLONE(cross_entropy)
#define embedding_forward          CLONE(embedding_forward)
#define embedding_backward         CLONE(embedding_backward)
#define gelu_forward               CLONE(gelu_forward)
#define gelu_backward              CLONE(gelu_backward)
#define layernorm_forward          CLONE(layernorm_forward)
#define layernorm_backward         CLONE(layernorm_backward)
#define layernorm_gather           CLONE(layernorm_gather)
#define soft_part                  CLONE(soft_part)
#define soft_gather                CLONE(soft_gather)
#define soft_scale                 CLONE(soft_scale)

#include "trainer/backend/cpu/model/attention.c"
#include "trainer/backend/cpu/model/bf16.c"
#include "trainer/backend/cpu/model/bias.c"
#include "trainer/backend/cpu/model/cross_entropy.c"
#include "trainer/backend/cpu/model/embedding.c"
#include "trainer/backend/cpu/model/gelu.c"
#include "trainer/backend/cpu/model/layernorm.c"
#include "trainer/backend/cpu/model/soft_blocks.c"

enum { W = CLONE_WIDTH, N = CLONE_COUNT };

static float *run_norm(const float *in, float *out)
{
    struct layernorm_stats stats[CLONE_ROWS];
    struct layernorm l = {CLONE_ROWS, W, in, in + N, in + N + W, stats};
    layernorm_forward(&l, out, 0, CLONE_ROWS);
    memcpy(out + N, in, N * sizeof *out);
    layernorm_backward(&l, in + N, out + N, out + 2 * N, 0, CLONE_ROWS);
    layernorm_gather(out + 2 * N, 1, W, out + 2 * N + 2 * W, out + 2 * N + 3 * W, 0, W);
    return out + 2 * N + 4 * W;
}

static float *run_rows(const float *in, float *out)
{
    memcpy(out, in, N * sizeof *out);
    memcpy(out + N, in + N, N * sizeof *out);
    for (int r = 0; r < CLONE_ROWS; r++) {
        out[2 * N + r] = attention_softmax(out + r * W, 20 + 15 * r, W, 0.3f);
        attention_softmax_backward(out + r * W, out + N + r * W, 20 + 15 * r, W, 0.3f, 2, 0.1f);
        out[2 * N + CLONE_ROWS + r] = dot(in + r * W, in + N + r * W, W);
    }
    out += 2 * N + 2 * CLONE_ROWS;
    memcpy(out, in, N * sizeof *out);
    for (int r = 0; r < CLONE_ROWS; r++)
        out[N + r] = cross_entropy(out + r * W, W, r, 0.01f);
    return out + N + CLONE_ROWS;
}

static float *run_columns(const float *in, float *out)
{
    bias_fill(out, in, W, in + N, CLONE_ROWS, W);
    bias_gradient(out + N, in, W, CLONE_ROWS, W);
    out += N + W;
    gelu_forward(out, in, W, CLONE_ROWS, W);
    memcpy(out + N, in + N, N * sizeof *out);
    gelu_backward(out + N, in, W, CLONE_ROWS, W);
    return out + 2 * N;
}

/* All halves, widened. */
static float *run_halves(const float *in, float *out)
{
    uint16_t a[N], b[N], c[N];
    bf16_narrow(a, in, N);
    bf16_widen(out, a, N);
    out += N;
    bf16_store(b, W, in, in + N, CLONE_ROWS, W);
    bf16_widen(out, b, N);
    out += N;
    bf16_store_gelu(b, c, W, in, in + N, CLONE_ROWS, W);
    bf16_widen(out, c, N);
    out += N;
    bf16_store_gelu_backward(c, b, W, in, CLONE_ROWS, W);
    bf16_widen(out, c, N);
    out += N;
    bf16_column_sums(out, a, W, CLONE_ROWS, W);
    out[W] = bf16_dot(a, b, N);
    return out + W + 1;
}

/* The row's columns in two parts, of which only the first leaves its exponentials. */
static float *run_soft(const float *in, float *out)
{
    enum { PART = 50 };
    float top[2 * CLONE_ROWS], sum[2 * CLONE_ROWS];
    uint16_t e[N] = {0};
    soft_part(in, CLONE_ROWS, PART, top, sum, e, W);
    soft_part(in + N, CLONE_ROWS, W - PART, top + CLONE_ROWS, sum + CLONE_ROWS, NULL, 0);
    struct soft s = {CLONE_ROWS, 2, top, sum, in, out, out + CLONE_ROWS, 0.3f};
    soft_gather(&s, 0, CLONE_ROWS);
    struct soft_block block = {e, CLONE_ROWS, PART, W, PART, top};
    soft_scale(&block);
    out += 2 * CLONE_ROWS;
    memcpy(out, top, sizeof top);
    bf16_widen(out + 2 * CLONE_ROWS, e, N);
    return out + 2 * CLONE_ROWS + N;
}

static float *run_embedding(const float *in, float *out)
{
    const int32_t tokens[4] = {2, 1, 2, 0};
    struct embedding e = {tokens, 2, 2, W};
    embedding_forward(&e, in, in + N, out, 0, 4);
    memcpy(out + 4 * W, in, 3 * W * sizeof *out);
    embedding_backward(&e, in + N, out + 4 * W, out + 7 * W, 0, W);
    return out + 9 * W;
}

int CLONE(clone_run)(const float *in, float *out)
{
    float *end =
        run_embedding(in, run_soft(in, run_halves(in, run_columns(in, run_rows(in, run_norm(in, out))))));
    return (int)(end - out);
}
