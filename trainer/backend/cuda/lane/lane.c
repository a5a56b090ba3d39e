/* A lane on a GPU: its memory, its graph and its way through the model. */
#include "trainer/backend/cuda/lane/lane.h"

#include <stdlib.h>

#include "common/base/assert.h"
#include "trainer/backend/cuda/kernels/attend.h"
#include "trainer/backend/cuda/kernels/halve.h"
#include "trainer/backend/cuda/lane/lane_parts.h"
#include "trainer/backend/cuda/tokens.h"

enum { WIDTH_UNIT = 8 /* of a matrix: 16 bytes */ };

static int refuse_shape(const struct model_shape *s, struct error *err)
{
    const int size = s->width / s->heads;
    if (size <= ATTEND_WIDEST && s->width % WIDTH_UNIT == 0)
        return 0;
    return err_set(
        err, ERR_USAGE,
        "a model of width %d with %d heads can't be trained on a GPU: heads are %d wide, at most %d "
        "are possible, and the width must be a multiple of %d",
        s->width, s->heads, size, ATTEND_WIDEST, WIDTH_UNIT);
}

static int take_memory(struct cuda_lane *l, struct error *err)
{
    lane_place(l, 0);
    if (cuda_memory_open(&l->memory, l->device, l->at.bytes, "a lane", err) < 0 ||
        cuda_pinned_open(&l->pinned, l->device, lane_host_bytes(l), "a lane's tokens", err) < 0)
        return -1;
    lane_place(l, l->memory.at);
    lane_place_host(l, l->pinned);
    l->scratch = calloc((size_t)l->rows, sizeof *l->scratch);
    return l->scratch ? 0 : err_set(err, ERR_MACHINE, "no memory for a lane's tokens");
}

int cuda_lane_open(struct cuda_lane **ret, struct cuda_blas *blas, const struct cuda_lane_options *options,
                   struct error *err)
{
    const struct model_shape *shape = &options->layout->shape;
    struct cuda_lane *l;
    if (refuse_shape(shape, err) < 0)
        return -1;
    l = calloc(1, sizeof *l);
    if (!l)
        return err_set(err, ERR_MACHINE, "no memory for a lane");
    l->device = blas->device;
    l->blas = blas;
    l->layout = options->layout;
    l->sequences = options->sequences;
    l->graphs = options->graphs;
    l->keep = options->keep;
    model_index_init(&l->index, l->layout);
    lane_measure(l);
    if (cuda_stream_open(&l->stream, l->device, false, err) < 0 || lane_open_kernels(l, options, err) < 0 ||
        lane_open_products(l, err) < 0 || take_memory(l, err) < 0 ||
        cuda_set_words(&l->stream, l->at.wte, 0, (size_t)(l->vocabulary * l->width / 2), err) < 0) {
        cuda_lane_free(l);
        return -1;
    }
    *ret = l;
    return 0;
}

void cuda_lane_free(struct cuda_lane *l)
{
    struct error ignored = {0};
    if (!l)
        return;
    if (l->stream.handle)
        cuda_stream_wait(&l->stream, &ignored);
    for (int i = 0; i < LANE_GRAPHS; i++)
        cuda_graph_clear(&l->graph[i].graph);
    for (int i = 0; i < LANE_PRODUCTS; i++)
        cuda_product_clear(&l->product[i]);
    if (l->pinned)
        cuda_pinned_free(l->device, l->pinned);
    cuda_memory_clear(&l->memory);
    cuda_stream_clear(&l->stream);
    free(l->scratch);
    free(l);
}

void cuda_lane_choice(const struct cuda_lane *l, uint8_t out[RM_HASH_BYTES])
{
    cuda_products_hash(l->product, LANE_PRODUCTS, out);
}

static int halve(struct cuda_lane *l, int tensor, CUdeviceptr to, struct error *err)
{
    const int64_t count = l->layout->tensor[tensor].count;
    const struct halve_args args = {lane_param(l, tensor), lane_at(to), count};
    return lane_launch(l, LANE_halve, (count + HALVE_THREADS - 1) / HALVE_THREADS, &args, err);
}

int cuda_lane_weights(struct cuda_lane *l, CUdeviceptr params, struct error *err)
{
    l->params = params;
    if (halve(l, l->index.wte, l->at.wte, err) < 0)
        return -1;
    for (int layer = 0; layer < l->layout->shape.layers; layer++) {
        const struct model_block_index *i = &l->index.block[layer];
        const struct lane_block *b = &l->at.block[layer];
        if (halve(l, i->attn_weight, b->attn, err) < 0 || halve(l, i->attn_bias, b->attn_bias, err) < 0 ||
            halve(l, i->proj_weight, b->proj, err) < 0 || halve(l, i->fc_weight, b->fc, err) < 0 ||
            halve(l, i->mlp_proj_weight, b->mlp, err) < 0)
            return -1;
    }
    return 0;
}

/* tokens (sequences, context + 1): each row's own and the next one. */
static void read_tokens(struct cuda_lane *l, const int32_t *tokens)
{
    const int context = l->layout->shape.context, vocabulary = l->layout->shape.vocabulary;
    struct cuda_token_groups g = {l->host.order, l->host.first, 0};
    for (int64_t n = 0; n < l->rows; n++) {
        const int32_t *at = tokens + n / context * (context + 1) + n % context;
        RM_ASSERT(at[0] >= 0 && at[0] < vocabulary && at[1] >= 0 && at[1] < vocabulary,
                  "tokens %d and %d of %d", at[0], at[1], vocabulary);
        l->host.tokens[n] = at[0];
        l->host.targets[n] = at[1];
    }
    cuda_tokens_group(&g, l->host.tokens, (int32_t)l->rows, vocabulary, l->scratch);
    *l->host.groups = g.groups;
}

/* From here on a lane, or one sequence in the first rows of its memory. */
static void set_under_way(struct cuda_lane *l, int sequences, bool forward_only)
{
    l->under_way = sequences;
    l->forward_only = forward_only;
    l->rows = (int64_t)sequences * l->layout->shape.context;
    lane_place_host(l, l->pinned);
}

static double mean_loss(const struct cuda_lane *l)
{
    double sum = 0;
    for (int64_t n = 0; n < l->rows; n++)
        sum += (double)l->losses[n];
    return sum / (double)l->rows;
}

int cuda_lane_run(struct cuda_lane *l, const int32_t *tokens, const struct cuda_lane_sums *sums, double *loss,
                  struct error *err)
{
    l->sums = sums;
    read_tokens(l, tokens);
    if ((l->graphs ? lane_replay(l, err) : lane_queue(l, err)) < 0 || cuda_stream_wait(&l->stream, err) < 0)
        return -1;
    *loss = mean_loss(l);
    return 0;
}

static int forward_once(struct cuda_lane *l, const int32_t *tokens, struct error *err)
{
    const size_t bytes = lane_rows_bytes(l->rows);
    read_tokens(l, tokens);
    if (cuda_copy_in(&l->stream, l->at.rows, l->host.tokens, bytes, err) < 0 || lane_forward(l, err) < 0 ||
        cuda_copy_out(&l->stream, l->losses, l->at.losses, (size_t)l->rows * sizeof(float), err) < 0)
        return -1;
    return cuda_stream_wait(&l->stream, err);
}

int cuda_lane_loss(struct cuda_lane *l, const int32_t *tokens, double *loss, struct error *err)
{
    set_under_way(l, 1, true);
    const int result = forward_once(l, tokens, err);
    if (result == 0)
        *loss = mean_loss(l);
    set_under_way(l, l->sequences, false);
    return result;
}
