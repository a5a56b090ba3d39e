/* The forward pass of one more token, row by row through all layers, on keys and values that lie there
 * from the tokens before. The CPU's backend calls it for logits while a text is written (`ringmaster
 * generate`). */
#include "trainer/backend/cpu/model/gpt_step.h"

#include <math.h>

#include "common/base/assert.h"
#include "trainer/backend/cpu/model/attention.h"
#include "trainer/backend/cpu/model/embedding.h"
#include "trainer/backend/cpu/model/gelu.h"
#include "trainer/backend/cpu/model/gpt_impl.h"
#include "trainer/backend/cpu/model/layernorm.h"
#include "trainer/backend/cpu/model/linear.h"
#include "trainer/backend/cpu/model/vec.h"

enum {
    ACROSS = 8,             /* vecs of sums that are held at once */
    COLUMNS = ACROSS * VEC, /* of a layer's output in one piece */
    TOKENS = 256,           /* logits in one piece */
};

/* One row goes through; `at` is its place, and that of its activations. */
struct step {
    struct gpt_pass pass;
    int64_t at;
    float *logits;
};

/* ---- a row times a matrix ---- */

/* y[first, first + COLUMNS) of x (in) times weight (in, out): a column is one chain of additions. */
VEC_CLONED static void whole_columns(const struct linear *l, int64_t first, float *y)
{
    const float *x = l->x, *w = (const float *)l->weight + first;
    vec sum[ACROSS];
    for (int c = 0; c < ACROSS; c++)
        sum[c] = vec_load(y + c * VEC, VEC);
    for (int64_t k = 0; k < l->in; k++, w += l->out)
        for (int c = 0; c < ACROSS; c++)
            sum[c] += vec_set(x[k]) * vec_load(w + c * VEC, VEC);
    for (int c = 0; c < ACROSS; c++)
        vec_store(y + c * VEC, sum[c], VEC);
}

/* The same for the columns at the edge, which are fewer. */
VEC_CLONED static void few_columns(const struct linear *l, int64_t first, float *y)
{
    const float *x = l->x, *w = (const float *)l->weight + first;
    for (int64_t j = 0; j < l->out - first; j += VEC) {
        int width = vec_width(j, l->out - first);
        vec sum = vec_load(y + j, width);
        for (int64_t k = 0; k < l->in; k++)
            sum += vec_set(x[k]) * vec_load(w + k * l->out + j, width);
        vec_store(y + j, sum, width);
    }
}

static void linear_piece(void *ctx, int piece, int thread)
{
    (void)thread;
    const struct linear *l = ctx;
    int64_t first = (int64_t)piece * COLUMNS, count = l->out - first < COLUMNS ? l->out - first : COLUMNS;
    float *y = (float *)l->y + first;
    for (int64_t j = 0; j < count; j++)
        y[j] = l->bias[first + j] + (l->residual ? l->residual[first + j] : 0);
    if (count == COLUMNS)
        whole_columns(l, first, y);
    else
        few_columns(l, first, y);
    if (l->gelu)
        gelu_forward((float *)l->gelu + first, y, count, 1, count);
}

/* The layer of all rows, narrowed to the one at work. */
static void linear(struct step *s, struct linear all)
{
    struct linear one = all;
    one.rows = 1;
    one.x = (const float *)all.x + s->at * all.in;
    one.y = (float *)all.y + s->at * all.out;
    if (all.residual)
        one.residual = all.residual + s->at * all.out;
    if (all.gelu)
        one.gelu = (float *)all.gelu + s->at * all.out;
    crew_run(&s->pass.crew, crew_pieces(all.out, COLUMNS), linear_piece, &one);
}

/* ---- the rest of a block ---- */

static void norm(struct step *s, struct layernorm all, void *y)
{
    layernorm_forward(&all, y, s->at, 1);
}

VEC_CLONED static float dot(const float *a, const float *b, int64_t n)
{
    vec sum = vec_set(0);
    for (int64_t j = 0; j < n; j += VEC)
        sum += vec_load(a + j, vec_width(j, n)) * vec_load(b + j, vec_width(j, n));
    return vec_sum(sum);
}

/* y (size) = the sum of share[r] * row r of v, rows `stride` apart */
VEC_CLONED static void mix(float *y, const float *share, const float *v, int64_t rows, int64_t stride,
                           int64_t size)
{
    for (int64_t j = 0; j < size; j += VEC) {
        int width = vec_width(j, size);
        vec sum = vec_set(0);
        for (int64_t r = 0; r < rows; r++)
            sum += vec_set(share[r]) * vec_load(v + r * stride + j, width);
        vec_store(y + j, sum, width);
    }
}

struct head_task {
    struct step *step;
    struct attention a;
};

/* One head: the new row's query looks at all keys up to its own. */
static void head_piece(void *ctx, int piece, int thread)
{
    const struct head_task *task = ctx;
    const struct attention *a = &task->a;
    int64_t at = task->step->at, size = a->width / a->heads, stride = 3 * a->width;
    const float *keys = (const float *)a->qkv + a->width + piece * size;
    const float *query = keys - a->width + at * stride, *values = keys + a->width;
    float *scores = task->step->pass.crew.scratch[thread];
    for (int64_t r = 0; r <= at; r++)
        scores[r] = dot(query, keys + r * stride, size);
    attention_softmax(scores, at + 1, at + 1, 1 / sqrtf((float)size));
    mix((float *)a->mixed + at * a->width + piece * size, scores, values, at + 1, stride, size);
}

static void block(struct step *s, int layer)
{
    struct gpt_pass *pass = &s->pass;
    const struct block_activations *b = &pass->g->act.block[layer];
    struct head_task heads = {s, gpt_attention(pass, layer)};
    norm(s, gpt_norm1(pass, layer), b->norm1);
    linear(s, gpt_attn(pass, layer));
    crew_run(&pass->crew, heads.a.heads, head_piece, &heads);
    linear(s, gpt_attn_proj(pass, layer));
    norm(s, gpt_norm2(pass, layer), b->norm2);
    linear(s, gpt_fc(pass, layer));
    linear(s, gpt_mlp_proj(pass, layer));
}

/* ---- both ends ---- */

static void embed(struct step *s, int32_t token)
{
    struct gpt_pass *pass = &s->pass;
    int64_t width = pass->g->layout.shape.width;
    struct embedding e = {.tokens = &token, .sequences = 1, .length = 1, .width = width};
    embedding_forward(&e, gpt_param(pass, pass->g->index.wte),
                      gpt_param(pass, pass->g->index.wpe) + s->at * width,
                      pass->g->act.embedded + s->at * width, 0, 1);
}

static void logits_piece(void *ctx, int piece, int thread)
{
    (void)thread;
    const struct step *s = ctx;
    const struct gpt *g = s->pass.g;
    int64_t width = g->layout.shape.width, first = (int64_t)piece * TOKENS, end = first + TOKENS;
    const float *wte = gpt_param(&s->pass, g->index.wte), *x = (const float *)g->act.norm + s->at * width;
    for (int64_t t = first; t < end && t < g->layout.shape.vocabulary; t++)
        s->logits[t] = dot(x, wte + t * width, width);
}

bool gpt_can_step(const struct gpt *g)
{
    return !g->bf16 && !g->recompute;
}

void gpt_step_logits(struct gpt *g, const float *params, const int32_t *tokens, int length, float *logits)
{
    const struct model_shape *shape = &g->layout.shape;
    struct step s = {.at = length - 1, .logits = logits};
    s.pass = (struct gpt_pass){.g = g,
                               .crew = {.pool = g->pool, .scratch = g->act.scratch},
                               .params = params,
                               .sequences = 1,
                               .length = length,
                               .rows = length};
    RM_ASSERT(gpt_can_step(g) && length >= 2 && length <= shape->context, "token %d of a context of %d",
              length, shape->context);
    embed(&s, tokens[s.at]);
    for (int layer = 0; layer < shape->layers; layer++)
        block(&s, layer);
    norm(&s, gpt_norm_last(&s.pass), g->act.norm);
    crew_run(&s.pass.crew, crew_pieces(shape->vocabulary, TOKENS), logits_piece, &s);
}
