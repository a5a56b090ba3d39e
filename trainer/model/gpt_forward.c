#include "trainer/model/attention.h"
#include "trainer/model/embedding.h"
#include "trainer/model/gpt_impl.h"
#include "trainer/model/linear.h"

struct norm_task {
    struct layernorm norm;
    float *y;
};

static int64_t rows_of_piece(int64_t rows, int piece)
{
    int64_t left = rows - (int64_t)piece * GPT_ROWS;
    return left < GPT_ROWS ? left : GPT_ROWS;
}

static void norm_piece(void *ctx, int piece, int thread)
{
    (void)thread;
    struct norm_task *task = ctx;
    layernorm_forward(&task->norm, task->y, (int64_t)piece * GPT_ROWS, rows_of_piece(task->norm.rows, piece));
}

static int norm(struct gpt_pass *pass, struct layernorm norm, float *y)
{
    struct norm_task task = {norm, y};
    return crew_run(&pass->crew, crew_pieces(pass->rows, GPT_ROWS), norm_piece, &task);
}

static void embed_piece(void *ctx, int piece, int thread)
{
    (void)thread;
    struct gpt_pass *pass = ctx;
    struct embedding e = gpt_embedding(pass);
    embedding_forward(&e, gpt_param(pass, pass->g->index.wte), gpt_param(pass, pass->g->index.wpe),
                      pass->g->act.embedded, (int64_t)piece * GPT_ROWS, rows_of_piece(pass->rows, piece));
}

static int block(struct gpt_pass *pass, int layer)
{
    struct linear attn = gpt_attn(pass, layer), proj = gpt_attn_proj(pass, layer);
    struct linear fc = gpt_fc(pass, layer), mlp_proj = gpt_mlp_proj(pass, layer);
    struct attention attention = gpt_attention(pass, layer);
    struct block_activations *b = &pass->g->act.block[layer];
    if (norm(pass, gpt_norm1(pass, layer), b->norm1) < 0 || linear_forward(&pass->crew, &attn) < 0 ||
        attention_forward(&pass->crew, &attention) < 0 || linear_forward(&pass->crew, &proj) < 0)
        return -1;
    if (norm(pass, gpt_norm2(pass, layer), b->norm2) < 0 || linear_forward(&pass->crew, &fc) < 0)
        return -1;
    return linear_forward(&pass->crew, &mlp_proj);
}

int gpt_forward(struct gpt_pass *pass)
{
    if (crew_run(&pass->crew, crew_pieces(pass->rows, GPT_ROWS), embed_piece, pass) < 0)
        return -1;
    for (int layer = 0; layer < pass->g->layout.shape.layers; layer++)
        if (block(pass, layer) < 0)
            return -1;
    return norm(pass, gpt_norm_last(pass), pass->g->act.norm);
}
