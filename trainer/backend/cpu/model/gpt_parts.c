#include "trainer/backend/cpu/model/attention.h"
#include "trainer/backend/cpu/model/embedding.h"
#include "trainer/backend/cpu/model/gpt_impl.h"
#include "trainer/backend/cpu/model/linear.h"

float *gpt_stream(const struct gpt_pass *pass, int layer)
{
    struct activations *a = &pass->g->act;
    return layer ? a->block[layer - 1].out : a->embedded;
}

static struct linear linear_of(const struct gpt_pass *pass, int weight, int bias)
{
    const struct model_tensor *t = &pass->g->layout.tensor[weight];
    return (struct linear){.rows = pass->rows,
                           .in = t->size[0],
                           .out = t->size[1],
                           .bf16 = pass->g->bf16,
                           .weight = gpt_operand(pass, weight),
                           .bias = gpt_param(pass, bias)};
}

struct linear gpt_attn(const struct gpt_pass *pass, int layer)
{
    const struct model_block_index *i = &pass->g->index.block[layer];
    const struct block_activations *b = &pass->g->act.block[layer];
    struct linear l = linear_of(pass, i->attn_weight, i->attn_bias);
    l.x = b->norm1;
    l.y = b->qkv;
    return l;
}

struct linear gpt_attn_proj(const struct gpt_pass *pass, int layer)
{
    const struct model_block_index *i = &pass->g->index.block[layer];
    const struct block_activations *b = &pass->g->act.block[layer];
    struct linear l = linear_of(pass, i->proj_weight, i->proj_bias);
    l.x = b->mixed;
    l.residual = gpt_stream(pass, layer);
    l.y = b->middle;
    return l;
}

struct linear gpt_fc(const struct gpt_pass *pass, int layer)
{
    const struct model_block_index *i = &pass->g->index.block[layer];
    const struct block_activations *b = &pass->g->act.block[layer];
    struct linear l = linear_of(pass, i->fc_weight, i->fc_bias);
    l.x = b->norm2;
    l.y = b->wide;
    l.gelu = b->gelu;
    return l;
}

struct linear gpt_mlp_proj(const struct gpt_pass *pass, int layer)
{
    const struct model_block_index *i = &pass->g->index.block[layer];
    const struct block_activations *b = &pass->g->act.block[layer];
    struct linear l = linear_of(pass, i->mlp_proj_weight, i->mlp_proj_bias);
    l.x = b->gelu;
    l.residual = b->middle;
    l.y = b->out;
    return l;
}

struct attention gpt_attention(const struct gpt_pass *pass, int layer)
{
    const struct block_activations *b = &pass->g->act.block[layer];
    return (struct attention){.sequences = pass->sequences,
                              .heads = pass->g->layout.shape.heads,
                              .length = pass->length,
                              .width = pass->g->layout.shape.width,
                              .qkv = b->qkv,
                              .mixed = b->mixed,
                              .log_sums = b->log_sums};
}

static struct layernorm norm_of(const struct gpt_pass *pass, int weight, int bias)
{
    return (struct layernorm){.rows = pass->rows,
                              .width = pass->g->layout.shape.width,
                              .weight = gpt_param(pass, weight),
                              .bias = gpt_param(pass, bias)};
}

struct layernorm gpt_norm1(const struct gpt_pass *pass, int layer)
{
    const struct model_block_index *i = &pass->g->index.block[layer];
    struct layernorm n = norm_of(pass, i->ln1_weight, i->ln1_bias);
    n.x = gpt_stream(pass, layer);
    n.stats = pass->g->act.block[layer].stats1;
    return n;
}

struct layernorm gpt_norm2(const struct gpt_pass *pass, int layer)
{
    const struct model_block_index *i = &pass->g->index.block[layer];
    struct layernorm n = norm_of(pass, i->ln2_weight, i->ln2_bias);
    n.x = pass->g->act.block[layer].middle;
    n.stats = pass->g->act.block[layer].stats2;
    return n;
}

struct layernorm gpt_norm_last(const struct gpt_pass *pass)
{
    struct layernorm n = norm_of(pass, pass->g->index.lnf_weight, pass->g->index.lnf_bias);
    n.x = gpt_stream(pass, pass->g->layout.shape.layers);
    n.stats = pass->g->act.stats;
    return n;
}

struct embedding gpt_embedding(const struct gpt_pass *pass)
{
    return (struct embedding){.tokens = pass->g->act.tokens,
                              .sequences = pass->sequences,
                              .length = pass->length,
                              .width = pass->g->layout.shape.width};
}
