/* What gpt*.c share. Nothing outside trainer/backend/cpu/model includes it. */
#ifndef RM_TRAINER_GPT_IMPL_H
#define RM_TRAINER_GPT_IMPL_H

#include "trainer/backend/cpu/model/activations.h"
#include "trainer/backend/cpu/model/crew.h"
#include "trainer/backend/cpu/model/gpt.h"

enum {
    GPT_ROWS = 32,         /* rows of one piece of a layer norm or an embedding */
    GPT_COLUMNS = 64,      /* columns of one piece of a sum over rows */
    GPT_ROUNDED = 1 << 16, /* weights of one piece that is rounded to bf16 */
};

struct gpt {
    struct model_layout layout;
    struct model_index index;
    int sequences;
    struct pool *pool;
    bool bf16, recompute;
    uint16_t *rounded; /* all parameters in bf16; NULL in fp32 */
    struct activations act;
};

/* One call at work: its sequences all have `length` tokens. */
struct gpt_pass {
    struct gpt *g;
    struct crew crew;
    const float *params;
    float *grads; /* NULL on the way forward */
    int sequences, length;
    int64_t rows; /* sequences * length */
};

/* A tensor's place in params or grads, by its index in the layout. */
static inline const float *gpt_param(const struct gpt_pass *pass, int tensor)
{
    return pass->params + pass->g->layout.tensor[tensor].first;
}

/* The same as an operand of a product. */
static inline const void *gpt_operand(const struct gpt_pass *pass, int tensor)
{
    const struct gpt *g = pass->g;
    return g->bf16 ? g->rounded + g->layout.tensor[tensor].first : (const void *)gpt_param(pass, tensor);
}

static inline float *gpt_grad(const struct gpt_pass *pass, int tensor)
{
    return pass->grads + pass->g->layout.tensor[tensor].first;
}

/* The four products of a block, as both ways need them. */
struct linear gpt_attn(const struct gpt_pass *pass, int layer);
struct linear gpt_attn_proj(const struct gpt_pass *pass, int layer);
struct linear gpt_fc(const struct gpt_pass *pass, int layer);
struct linear gpt_mlp_proj(const struct gpt_pass *pass, int layer);
struct attention gpt_attention(const struct gpt_pass *pass, int layer);
struct layernorm gpt_norm1(const struct gpt_pass *pass, int layer);
struct layernorm gpt_norm2(const struct gpt_pass *pass, int layer);
struct layernorm gpt_norm_last(const struct gpt_pass *pass);
struct embedding gpt_embedding(const struct gpt_pass *pass);

/* The residual stream that enters the layer. */
float *gpt_stream(const struct gpt_pass *pass, int layer);

/* From the tokens in act.tokens to act.norm. */
int gpt_forward(struct gpt_pass *pass);
/* What the way back needs of a block, again from the block's input. */
int gpt_forward_again(struct gpt_pass *pass, int layer);
/* From act.dnarrow, the gradient of act.norm, to all gradients; that of wte holds the head's part already. */
int gpt_backward(struct gpt_pass *pass);

#endif
