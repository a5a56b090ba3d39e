/* The way forward of a lane on a GPU. */
#include <math.h>

#include "trainer/backend/cuda/kernels/attend.h"
#include "trainer/backend/cuda/kernels/classify.h"
#include "trainer/backend/cuda/kernels/embed.h"
#include "trainer/backend/cuda/kernels/gelu.h"
#include "trainer/backend/cuda/kernels/norm.h"
#include "trainer/backend/cuda/lane/lane_parts.h"

static const float epsilon = 1e-5f;

static int embed_rows(struct cuda_lane *l, struct error *err)
{
    const struct embed_args args = {.tokens = lane_at(l->at.rows),
                                    .wte = lane_param(l, l->index.wte),
                                    .wpe = lane_param(l, l->index.wpe),
                                    .x = lane_at(l->at.block[0].stream),
                                    .width = l->width,
                                    .rows = (int32_t)l->rows,
                                    .length = l->layout->shape.context};
    return lane_launch(l, LANE_embed, l->rows, &args, err);
}

/* A norm of the stream, to which the branch and the bias of its product are added before: -1: nothing is. */
struct normed {
    CUdeviceptr from, stream; /* the stream before, and where it goes */
    int branch_bias;          /* tensor, or -1 */
    int weight, bias;
    CUdeviceptr to, stats;
};

static int norm(struct cuda_lane *l, const struct normed *n, struct error *err)
{
    const bool adds = n->branch_bias >= 0;
    const struct norm_rows_args args = {.stream = lane_at(n->from),
                                        .add = adds ? lane_at(l->at.branch) : NULL,
                                        .add_bias = adds ? lane_param(l, n->branch_bias) : NULL,
                                        .to_stream = adds ? lane_at(n->stream) : NULL,
                                        .weight = lane_param(l, n->weight),
                                        .bias = lane_param(l, n->bias),
                                        .to = lane_at(n->to),
                                        .stats = lane_at(n->stats),
                                        .width = l->width,
                                        .rows = (int32_t)l->rows,
                                        .half = 1,
                                        .epsilon = epsilon};
    return lane_launch(l, LANE_norm_rows, l->rows, &args, err);
}

struct attend_args lane_attention(const struct cuda_lane *l, const struct lane_block *b)
{
    const int32_t heads = l->layout->shape.heads;
    const uint16_t *q = lane_at(b->qkv);
    return (struct attend_args){.q = q,
                                .k = q + l->width,
                                .v = q + 2 * l->width,
                                .mixed = lane_at(b->mixed),
                                .log_sums = lane_at(b->log_sums),
                                .stride = 3 * l->width,
                                .sequences = l->under_way,
                                .length = l->layout->shape.context,
                                .heads = heads,
                                .key_heads = heads,
                                .size = l->head_size,
                                .scale = 1 / sqrtf((float)l->head_size)};
}

/* Leaves attention's branch without its bias. */
static int attend(struct cuda_lane *l, int layer, struct error *err)
{
    const struct lane_block *b = &l->at.block[layer];
    const struct attend_args args = lane_attention(l, b);
    if (lane_multiply(l, LANE_QKV, b->norm1, b->attn, b->qkv, b->attn_bias, err) < 0 ||
        lane_launch_attention(l, LANE_attend, &args, err) < 0)
        return -1;
    return lane_multiply(l, LANE_PROJ, b->mixed, b->proj, l->at.branch, 0, err);
}

/* What the norm in the middle of a block makes wide, with GELU. wide: it is there, with its bias. */
static int widen(struct cuda_lane *l, int layer, bool wide, struct error *err)
{
    const struct lane_block *b = &l->at.block[layer];
    const struct gelu_args args = {.from = lane_at(b->wide),
                                   .bias = wide ? NULL : lane_param(l, l->index.block[layer].fc_bias),
                                   .kept = lane_at(b->wide),
                                   .to = lane_at(b->gelu),
                                   .columns = 4 * l->width,
                                   .rows = (int32_t)l->rows,
                                   .half = 1};
    if (!wide && lane_multiply(l, LANE_FC, b->norm2, b->fc, b->wide, 0, err) < 0)
        return -1;
    return lane_launch(l, LANE_gelu, l->rows, &args, err);
}

/* At a block's beginning. added: the stream is there, with the branch before it. */
static int first_norm(struct cuda_lane *l, int layer, bool added, struct error *err)
{
    const struct lane_block *b = &l->at.block[layer];
    const struct model_block_index *i = &l->index.block[layer];
    const struct normed n = {.from = added ? b->stream : l->at.block[layer - 1].middle,
                             .stream = b->stream,
                             .branch_bias = added ? -1 : l->index.block[layer - 1].mlp_proj_bias,
                             .weight = i->ln1_weight,
                             .bias = i->ln1_bias,
                             .to = b->norm1,
                             .stats = b->stats1};
    return norm(l, &n, err);
}

/* The same happens in its middle. */
static int second_norm(struct cuda_lane *l, int layer, bool added, struct error *err)
{
    const struct lane_block *b = &l->at.block[layer];
    const struct model_block_index *i = &l->index.block[layer];
    const struct normed n = {.from = added ? b->middle : b->stream,
                             .stream = b->middle,
                             .branch_bias = added ? -1 : i->proj_bias,
                             .weight = i->ln2_weight,
                             .bias = i->ln2_bias,
                             .to = b->norm2,
                             .stats = b->stats2};
    return norm(l, &n, err);
}

/* But for its last product. The first block's stream is what embeddings made. */
static int most_of_block(struct cuda_lane *l, int layer, bool added, struct error *err)
{
    if (first_norm(l, layer, added, err) < 0 || attend(l, layer, err) < 0 ||
        second_norm(l, layer, false, err) < 0)
        return -1;
    return widen(l, layer, false, err);
}

static int block(struct cuda_lane *l, int layer, struct error *err)
{
    const struct lane_block *b = &l->at.block[layer];
    if (most_of_block(l, layer, !layer, err) < 0)
        return -1;
    return lane_multiply(l, LANE_MLP, b->gelu, b->mlp, l->at.branch, 0, err);
}

/* What the last block made still lies there. */
int lane_forward_again(struct cuda_lane *l, int layer, struct error *err)
{
    if (l->keep == CUDA_KEEP_ALL || layer == l->layout->shape.layers - 1)
        return 0;
    if (l->keep == CUDA_KEEP_INPUTS)
        return most_of_block(l, layer, true, err);
    if (first_norm(l, layer, true, err) < 0 || second_norm(l, layer, true, err) < 0)
        return -1;
    return widen(l, layer, true, err);
}

static int classify(struct cuda_lane *l, struct error *err)
{
    const struct classify_args args = {.logits = lane_at(l->at.logits),
                                       .targets = lane_rows_at(l->rows, lane_at(l->at.rows)).targets,
                                       .losses = lane_at(l->at.losses),
                                       .vocabulary = l->layout->shape.vocabulary,
                                       .stride = l->vocabulary,
                                       .rows = (int32_t)l->rows,
                                       .half = 1,
                                       .scale = l->forward_only ? 0 : 1 / (float)l->rows};
    return lane_launch(l, LANE_classify, l->rows, &args, err);
}

int lane_forward(struct cuda_lane *l, struct error *err)
{
    const int layers = l->layout->shape.layers;
    const struct normed last = {.from = l->at.block[layers - 1].middle,
                                .stream = l->at.last,
                                .branch_bias = l->index.block[layers - 1].mlp_proj_bias,
                                .weight = l->index.lnf_weight,
                                .bias = l->index.lnf_bias,
                                .to = l->at.norm,
                                .stats = l->at.stats};
    if (embed_rows(l, err) < 0)
        return -1;
    for (int layer = 0; layer < layers; layer++)
        if (block(l, layer, err) < 0)
            return -1;
    if (norm(l, &last, err) < 0 ||
        lane_multiply(l, LANE_HEAD, l->at.norm, l->at.wte, l->at.logits, 0, err) < 0)
        return -1;
    return classify(l, err);
}
