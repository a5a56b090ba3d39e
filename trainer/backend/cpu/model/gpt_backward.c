#include <string.h>

#include "trainer/backend/cpu/model/attention.h"
#include "trainer/backend/cpu/model/bf16.h"
#include "trainer/backend/cpu/model/embedding.h"
#include "trainer/backend/cpu/model/gpt_impl.h"
#include "trainer/backend/cpu/model/linear.h"

struct norm_task {
    struct gpt_pass *pass;
    struct layernorm norm;
    float *dweight, *dbias;
};

static int64_t part_of(int64_t total, int piece, int64_t size)
{
    int64_t left = total - piece * size;
    return left < size ? left : size;
}

static void norm_rows(void *ctx, int piece, int thread)
{
    (void)thread;
    struct norm_task *task = ctx;
    struct activations *a = &task->pass->g->act;
    int64_t width = task->norm.width, first = (int64_t)piece * GPT_ROWS;
    int64_t count = part_of(task->norm.rows, piece, GPT_ROWS);
    layernorm_backward(&task->norm, a->dnarrow, a->dstream, a->partials + piece * 2 * width, first, count);
    if (a->dstream_rounded)
        bf16_narrow(a->dstream_rounded + first * width, a->dstream + first * width, count * width);
}

static void norm_columns(void *ctx, int piece, int thread)
{
    (void)thread;
    struct norm_task *task = ctx;
    layernorm_gather(task->pass->g->act.partials, crew_pieces(task->norm.rows, GPT_ROWS), task->norm.width,
                     task->dweight, task->dbias, (int64_t)piece * GPT_COLUMNS,
                     part_of(task->norm.width, piece, GPT_COLUMNS));
}

/* dnarrow is the gradient of the norm's output; that of its input is added to dstream. */
static int norm(struct gpt_pass *pass, struct layernorm norm, int weight, int bias)
{
    struct norm_task task = {pass, norm, gpt_grad(pass, weight), gpt_grad(pass, bias)};
    if (crew_run(&pass->crew, crew_pieces(norm.rows, GPT_ROWS), norm_rows, &task) < 0)
        return -1;
    return crew_run(&pass->crew, crew_pieces(norm.width, GPT_COLUMNS), norm_columns, &task);
}

/* The stream's gradient as an operand of a product. */
static const void *dstream_of(const struct activations *a)
{
    return a->dstream_rounded ? (const void *)a->dstream_rounded : a->dstream;
}

static int mlp(struct gpt_pass *pass, int layer)
{
    const struct model_block_index *i = &pass->g->index.block[layer];
    struct activations *a = &pass->g->act;
    struct linear fc = gpt_fc(pass, layer), proj = gpt_mlp_proj(pass, layer);
    struct linear_gradient d_proj = {.dy = dstream_of(a),
                                     .dx = a->dwide,
                                     .dx_bf16 = pass->g->bf16,
                                     .dweight = gpt_grad(pass, i->mlp_proj_weight),
                                     .dbias = gpt_grad(pass, i->mlp_proj_bias),
                                     .before_gelu = a->block[layer].wide};
    struct linear_gradient d_fc = {.dy = a->dwide,
                                   .dx = a->dnarrow,
                                   .dweight = gpt_grad(pass, i->fc_weight),
                                   .dbias = gpt_grad(pass, i->fc_bias)};
    if (linear_backward(&pass->crew, &proj, &d_proj) < 0 || linear_backward(&pass->crew, &fc, &d_fc) < 0)
        return -1;
    return norm(pass, gpt_norm2(pass, layer), i->ln2_weight, i->ln2_bias);
}

static int attention(struct gpt_pass *pass, int layer)
{
    struct activations *a = &pass->g->act;
    struct attention attention = gpt_attention(pass, layer);
    return pass->g->bf16 ? attention_bf16_backward(&pass->crew, &attention, a->dmixed, a->dwide)
                         : attention_backward(&pass->crew, &attention, a->dmixed, a->dwide);
}

static int attend(struct gpt_pass *pass, int layer)
{
    const struct model_block_index *i = &pass->g->index.block[layer];
    struct activations *a = &pass->g->act;
    struct linear attn = gpt_attn(pass, layer), proj = gpt_attn_proj(pass, layer);
    struct linear_gradient d_proj = {.dy = dstream_of(a),
                                     .dx = a->dmixed,
                                     .dx_bf16 = pass->g->bf16,
                                     .dweight = gpt_grad(pass, i->proj_weight),
                                     .dbias = gpt_grad(pass, i->proj_bias)};
    struct linear_gradient d_attn = {.dy = a->dwide,
                                     .dx = a->dnarrow,
                                     .dweight = gpt_grad(pass, i->attn_weight),
                                     .dbias = gpt_grad(pass, i->attn_bias)};
    if (linear_backward(&pass->crew, &proj, &d_proj) < 0 || attention(pass, layer) < 0 ||
        linear_backward(&pass->crew, &attn, &d_attn) < 0)
        return -1;
    return norm(pass, gpt_norm1(pass, layer), i->ln1_weight, i->ln1_bias);
}

/* The last block's way forward is still in memory. */
static int block(struct gpt_pass *pass, int layer)
{
    bool again = pass->g->recompute && layer < pass->g->layout.shape.layers - 1;
    if (again && gpt_forward_again(pass, layer) < 0)
        return -1;
    return mlp(pass, layer) < 0 || attend(pass, layer) < 0 ? -1 : 0;
}

static void embed_columns(void *ctx, int piece, int thread)
{
    (void)thread;
    struct gpt_pass *pass = ctx;
    struct embedding e = gpt_embedding(pass);
    embedding_backward(&e, pass->g->act.dstream, gpt_grad(pass, pass->g->index.wte),
                       gpt_grad(pass, pass->g->index.wpe), (int64_t)piece * GPT_COLUMNS,
                       part_of(e.width, piece, GPT_COLUMNS));
}

int gpt_backward(struct gpt_pass *pass)
{
    const struct model_shape *shape = &pass->g->layout.shape;
    memset(pass->g->act.dstream, 0, (size_t)(pass->rows * shape->width) * sizeof(float));
    if (norm(pass, gpt_norm_last(pass), pass->g->index.lnf_weight, pass->g->index.lnf_bias) < 0)
        return -1;
    for (int layer = shape->layers - 1; layer >= 0; layer--)
        if (block(pass, layer) < 0)
            return -1;
    return crew_run(&pass->crew, crew_pieces(shape->width, GPT_COLUMNS), embed_columns, pass);
}
