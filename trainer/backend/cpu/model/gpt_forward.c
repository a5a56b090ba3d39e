#include "trainer/backend/cpu/model/attention.h"
#include "trainer/backend/cpu/model/bf16.h"
#include "trainer/backend/cpu/model/embedding.h"
#include "trainer/backend/cpu/model/gpt_impl.h"
#include "trainer/backend/cpu/model/linear.h"

struct norm_task {
    struct layernorm norm;
    float *y;
    uint16_t *rounded; /* NULL in fp32 */
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
    int64_t first = (int64_t)piece * GPT_ROWS, count = rows_of_piece(task->norm.rows, piece);
    int64_t at = first * task->norm.width;
    layernorm_forward(&task->norm, task->y, first, count);
    if (task->rounded)
        bf16_narrow(task->rounded + at, task->y + at, count * task->norm.width);
}

/* In bf16 the fp32 rows pass through dnarrow, which nobody uses on the way forward. */
static int norm(struct gpt_pass *pass, struct layernorm norm, void *y)
{
    struct norm_task task = {.norm = norm, .y = y};
    if (pass->g->bf16)
        task = (struct norm_task){norm, pass->g->act.dnarrow, y};
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

static int attend(struct gpt_pass *pass, int layer)
{
    struct attention attention = gpt_attention(pass, layer);
    return pass->g->bf16 ? attention_bf16_forward(&pass->crew, &attention)
                         : attention_forward(&pass->crew, &attention);
}

int gpt_forward_again(struct gpt_pass *pass, int layer)
{
    struct linear attn = gpt_attn(pass, layer), proj = gpt_attn_proj(pass, layer), fc = gpt_fc(pass, layer);
    struct block_activations *b = &pass->g->act.block[layer];
    if (norm(pass, gpt_norm1(pass, layer), b->norm1) < 0 || linear_forward(&pass->crew, &attn) < 0 ||
        attend(pass, layer) < 0 || linear_forward(&pass->crew, &proj) < 0)
        return -1;
    if (norm(pass, gpt_norm2(pass, layer), b->norm2) < 0)
        return -1;
    return linear_forward(&pass->crew, &fc);
}

static int block(struct gpt_pass *pass, int layer)
{
    struct linear mlp_proj = gpt_mlp_proj(pass, layer);
    if (gpt_forward_again(pass, layer) < 0)
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
