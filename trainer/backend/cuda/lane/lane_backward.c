/* The way back of a lane on a GPU; each tensor's gradient goes into the words as soon as it is known. */
#include "trainer/backend/cuda/kernels/attend.h"
#include "trainer/backend/cuda/kernels/columns.h"
#include "trainer/backend/cuda/kernels/embed.h"
#include "trainer/backend/cuda/kernels/gelu.h"
#include "trainer/backend/cuda/kernels/lanes_add.h"
#include "trainer/backend/cuda/kernels/norm.h"
#include "trainer/backend/cuda/lane/lane_parts.h"

/* A tensor's gradient, which lies at `from`, into the words of the pass. */
static int add(struct cuda_lane *l, int tensor, CUdeviceptr from, struct error *err)
{
    const struct model_tensor *t = &l->layout->tensor[tensor];
    const struct cuda_lane_sums *s = l->sums;
    const struct lanes_add_args args = {.grads = lane_at(from),
                                        .words = lane_at(s->words + (CUdeviceptr)t->first * sizeof(uint32_t)),
                                        .max = lane_at(s->max + (CUdeviceptr)tensor * sizeof(uint32_t)),
                                        .proof = lane_at(s->proof),
                                        .count = t->count,
                                        .at = (uint64_t)t->first,
                                        .scale = s->scale[tensor],
                                        .store = s->store,
                                        .floats = s->floats};
    const int64_t each = LANES_ADD_THREADS * LANES_ADD_EACH;
    return lane_launch(l, LANE_lanes_add, (t->count + each - 1) / each, &args, err);
}

static int sum_columns(struct cuda_lane *l, struct columns_args args, struct error *err)
{
    const int64_t parts = (args.rows + args.each - 1) / args.each;
    return lane_launch(l, LANE_columns, parts * ((args.columns + COLUMNS_A_BLOCK - 1) / COLUMNS_A_BLOCK),
                       &args, err);
}

/* The gradient of a bias is the sums of dy's columns (N, columns), bf16. */
static int add_bias(struct cuda_lane *l, int tensor, CUdeviceptr dy, struct error *err)
{
    const int64_t columns = l->layout->tensor[tensor].count;
    const struct columns_args shares = {lane_at(dy),      lane_at(l->at.shares), columns, columns,
                                        (int32_t)l->rows, LANE_COLUMNS_EACH,     1};
    const int32_t rows = ((int32_t)l->rows + LANE_COLUMNS_EACH - 1) / LANE_COLUMNS_EACH;
    const struct columns_args all = {
        lane_at(l->at.shares), lane_at(l->at.sums), columns, columns, rows, rows, 0};
    if (sum_columns(l, shares, err) < 0 || sum_columns(l, all, err) < 0)
        return -1;
    return add(l, tensor, l->at.sums, err);
}

/* One linear layer: what its input gets, and its weight's and bias's gradients. */
struct linear {
    enum lane_product product;
    CUdeviceptr dy, x, weight, dx;
    int weight_tensor, bias_tensor;
};

static int linear(struct cuda_lane *l, const struct linear *a, struct error *err)
{
    if (lane_multiply(l, LANE_TO_INPUT + (int)a->product, a->dy, a->weight, a->dx, 0, err) < 0 ||
        lane_multiply(l, LANE_TO_WEIGHT + (int)a->product, a->x, a->dy, l->at.gradient, 0, err) < 0)
        return -1;
    return add(l, a->weight_tensor, l->at.gradient, err) < 0 ? -1 : add_bias(l, a->bias_tensor, a->dy, err);
}

struct normed {
    CUdeviceptr x, stats;
    int weight, bias;
    bool store; /* the first gradient of the stream */
};

static int norm(struct cuda_lane *l, const struct normed *n, struct error *err)
{
    const struct norm_back_args args = {.dy = lane_at(l->at.dnorm),
                                        .x = lane_at(n->x),
                                        .stats = lane_at(n->stats),
                                        .weight = lane_param(l, n->weight),
                                        .dstream = lane_at(l->at.dstream),
                                        .rounded = lane_at(l->at.dstream_half),
                                        .partial = lane_at(l->at.shares),
                                        .width = l->width,
                                        .rows = (int32_t)l->rows,
                                        .store = n->store};
    const int32_t shares = ((int32_t)l->rows + NORM_ROWS - 1) / NORM_ROWS;
    const struct columns_args both = {
        lane_at(l->at.shares), lane_at(l->at.sums), 2 * l->width, 2 * l->width, shares, shares, 0};
    if (lane_launch(l, LANE_norm_back, shares, &args, err) < 0 || sum_columns(l, both, err) < 0 ||
        add(l, n->weight, l->at.sums, err) < 0)
        return -1;
    return add(l, n->bias, l->at.sums + (CUdeviceptr)l->width * sizeof(float), err);
}

/* The word embedding's gradient stays where it is: the tokens' part comes last. */
static int head(struct cuda_lane *l, struct error *err)
{
    const struct normed last = {l->at.last, l->at.stats, l->index.lnf_weight, l->index.lnf_bias, true};
    if (lane_multiply(l, LANE_TO_INPUT + LANE_HEAD, l->at.logits, l->at.wte, l->at.dnorm, 0, err) < 0 ||
        lane_multiply(l, LANE_TO_WEIGHT + LANE_HEAD, l->at.logits, l->at.norm, l->at.dwte, 0, err) < 0)
        return -1;
    return norm(l, &last, err);
}

static int mlp(struct cuda_lane *l, int layer, struct error *err)
{
    const struct model_block_index *i = &l->index.block[layer];
    const struct lane_block *b = &l->at.block[layer];
    const struct linear proj = {LANE_MLP,    l->at.dstream_half, b->gelu,         b->mlp,
                                l->at.dwide, i->mlp_proj_weight, i->mlp_proj_bias};
    const struct linear fc = {LANE_FC, l->at.dwide, b->norm2, b->fc, l->at.dnorm, i->fc_weight, i->fc_bias};
    const struct gelu_back_args slope = {lane_at(b->wide), lane_at(l->at.dwide), 4 * l->rows * l->width, 1};
    const struct normed second = {b->middle, b->stats2, i->ln2_weight, i->ln2_bias, false};
    if (linear(l, &proj, err) < 0 ||
        lane_launch(l, LANE_gelu_back, (slope.count + GELU_THREADS - 1) / GELU_THREADS, &slope, err) < 0 ||
        linear(l, &fc, err) < 0)
        return -1;
    return norm(l, &second, err);
}

/* dmixed to the gradients of query, key and value, in the memory of dwide. */
static int attention(struct cuda_lane *l, const struct lane_block *b, struct error *err)
{
    struct attend_args args = lane_attention(l, b);
    args.dmixed = lane_at(l->at.dmixed);
    args.drift = lane_at(l->at.drift);
    args.dq = lane_at(l->at.dwide);
    args.dk = args.dq + l->width;
    args.dv = args.dq + 2 * l->width;
    if (lane_launch_attention(l, LANE_attend_queries, &args, err) < 0)
        return -1;
    return lane_launch_attention(l, LANE_attend_keys, &args, err);
}

static int attend(struct cuda_lane *l, int layer, struct error *err)
{
    const struct model_block_index *i = &l->index.block[layer];
    const struct lane_block *b = &l->at.block[layer];
    const struct linear proj = {LANE_PROJ,    l->at.dstream_half, b->mixed,    b->proj,
                                l->at.dmixed, i->proj_weight,     i->proj_bias};
    const struct linear qkv = {LANE_QKV,    l->at.dwide,    b->norm1,    b->attn,
                               l->at.dnorm, i->attn_weight, i->attn_bias};
    const struct normed first = {b->stream, b->stats1, i->ln1_weight, i->ln1_bias, false};
    if (linear(l, &proj, err) < 0 || attention(l, b, err) < 0 || linear(l, &qkv, err) < 0)
        return -1;
    return norm(l, &first, err);
}

static int embeddings(struct cuda_lane *l, struct error *err)
{
    const int32_t context = l->layout->shape.context;
    const struct lane_rows rows = lane_rows_at(l->rows, lane_at(l->at.rows));
    const struct embed_tokens_args words = {.tokens = rows.tokens,
                                            .order = rows.order,
                                            .first = rows.first,
                                            .groups = rows.groups,
                                            .dx = lane_at(l->at.dstream),
                                            .dwte = lane_at(l->at.dwte),
                                            .width = l->width};
    const struct embed_places_args places = {lane_at(l->at.dstream), lane_at(l->at.gradient), l->width,
                                             l->sequences, context};
    if (lane_launch(l, LANE_embed_tokens, l->rows, &words, err) < 0 ||
        add(l, l->index.wte, l->at.dwte, err) < 0 ||
        lane_launch(l, LANE_embed_places, context, &places, err) < 0)
        return -1;
    return add(l, l->index.wpe, l->at.gradient, err);
}

int lane_backward(struct cuda_lane *l, struct error *err)
{
    if (head(l, err) < 0)
        return -1;
    for (int layer = l->layout->shape.layers - 1; layer >= 0; layer--)
        if (lane_forward_again(l, layer, err) < 0 || mlp(l, layer, err) < 0 || attend(l, layer, err) < 0)
            return -1;
    return embeddings(l, err);
}
