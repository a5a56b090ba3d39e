/* The model as its users see it: opened, a lane's gradient, losses, the next token's logits. The way forward
 * is in gpt_forward.c, the way back in gpt_backward.c. */
#include "trainer/backend/cpu/model/gpt.h"

#include <stdlib.h>
#include <string.h>

#include "common/os/pages.h"
#include "trainer/backend/cpu/model/bf16.h"
#include "trainer/backend/cpu/model/gpt_impl.h"
#include "trainer/backend/cpu/model/head.h"

int gpt_open(struct gpt **ret, const struct model_layout *layout, const struct gpt_options *options,
             struct pool *pool, struct error *err)
{
    if (matmul_use_isa(options->isa, err) < 0)
        return -1;
    struct gpt *g = calloc(1, sizeof *g);
    if (!g)
        return err_set(err, ERR_MACHINE, "no memory for the model");
    g->layout = *layout;
    model_index_init(&g->index, layout);
    g->sequences = options->sequences;
    g->pool = pool;
    g->bf16 = options->precision == GPT_BF16;
    g->recompute = options->recompute;
    struct activations_options wanted = {.shape = &layout->shape,
                                         .sequences = g->sequences,
                                         .threads = pool_threads(pool),
                                         .bf16 = g->bf16,
                                         .recompute = g->recompute};
    if (g->bf16)
        g->rounded = pages_alloc((size_t)layout->parameters * sizeof *g->rounded);
    if (g->bf16 && !g->rounded)
        err_set(err, ERR_MACHINE, "no memory for the weights in bf16");
    else if (activations_open(&g->act, &wanted, err) == 0) {
        *ret = g;
        return 0;
    }
    gpt_free(g);
    return -1;
}

void gpt_free(struct gpt *g)
{
    if (!g)
        return;
    activations_clear(&g->act);
    free(g->rounded);
    free(g);
}

size_t gpt_memory(const struct gpt *g)
{
    return g->act.bytes + (g->bf16 ? (size_t)g->layout.parameters * sizeof *g->rounded : 0);
}

struct rounding {
    struct gpt *g;
    const float *params;
};

static void round_piece(void *ctx, int piece, int thread)
{
    (void)thread;
    struct rounding *task = ctx;
    int64_t first = (int64_t)piece * GPT_ROUNDED, left = task->g->layout.parameters - first;
    bf16_narrow(task->g->rounded + first, task->params + first, left < GPT_ROUNDED ? left : GPT_ROUNDED);
}

void gpt_weights_changed(struct gpt *g, const float *params)
{
    struct rounding task = {g, params};
    if (g->bf16)
        pool_run(g->pool, crew_pieces(g->layout.parameters, GPT_ROUNDED), round_piece, &task);
}

static struct gpt_pass pass_of(struct gpt *g, const float *params, int sequences, int length,
                               const atomic_int *stop)
{
    return (struct gpt_pass){.g = g,
                             .crew = {.pool = g->pool, .stop = stop, .scratch = g->act.scratch},
                             .params = params,
                             .sequences = sequences,
                             .length = length,
                             .rows = (int64_t)sequences * length};
}

static int why_ended(struct gpt_pass *pass, struct error *err)
{
    if (pass->crew.failed)
        return err_set(err, ERR_MACHINE, "a matrix product failed: out of memory?");
    return err_set(err, ERR_ABORTED, "the pass was stopped");
}

/* tokens (sequences, length + 1) -> inputs and targets (sequences, length) */
static int read_tokens(struct gpt_pass *pass, const int32_t *tokens, struct error *err)
{
    struct activations *a = &pass->g->act;
    int vocabulary = pass->g->layout.shape.vocabulary, length = pass->length;
    for (int64_t i = 0; i < (int64_t)pass->sequences * (length + 1); i++)
        if (tokens[i] < 0 || tokens[i] >= vocabulary)
            return err_set(err, ERR_DATA, "token %d at %lld lies outside the vocabulary of %d",
                           (int)tokens[i], (long long)i, vocabulary);
    for (int b = 0; b < pass->sequences; b++) {
        const int32_t *from = tokens + (int64_t)b * (length + 1);
        size_t bytes = (size_t)length * sizeof *from;
        memcpy(a->tokens + (int64_t)b * length, from, bytes);
        memcpy(a->targets + (int64_t)b * length, from + 1, bytes);
    }
    return 0;
}

static struct head head_of(struct gpt_pass *pass)
{
    struct activations *a = &pass->g->act;
    return (struct head){.rows = pass->rows,
                         .width = pass->g->layout.shape.width,
                         .vocabulary = pass->g->layout.shape.vocabulary,
                         .bf16 = pass->g->bf16,
                         .x = a->norm,
                         .wte = gpt_operand(pass, pass->g->index.wte),
                         .targets = a->targets,
                         .losses = a->losses,
                         .logits = a->logits};
}

static float mean_loss(const struct gpt_pass *pass)
{
    double sum = 0;
    for (int64_t n = 0; n < pass->rows; n++)
        sum += pass->g->act.losses[n];
    return (float)(sum / (double)pass->rows);
}

int gpt_lane(struct gpt *g, const float *params, const int32_t *tokens, float *grads, float *loss,
             const atomic_int *stop, struct error *err)
{
    struct gpt_pass pass = pass_of(g, params, g->sequences, g->layout.shape.context, stop);
    pass.grads = grads;
    if (read_tokens(&pass, tokens, err) < 0)
        return -1;
    struct head head = head_of(&pass);
    head.dx = g->act.dnarrow;
    head.dwte = gpt_grad(&pass, g->index.wte);
    if (gpt_forward(&pass) < 0 || head_run(&pass.crew, &head) < 0 || gpt_backward(&pass) < 0)
        return why_ended(&pass, err);
    *loss = mean_loss(&pass);
    return 0;
}

/* One sequence at a time: its loss must not depend on how many others the caller happens to bring. */
int gpt_losses(struct gpt *g, const float *params, const int32_t *tokens, int n, float *losses,
               const atomic_int *stop, struct error *err)
{
    int length = g->layout.shape.context;
    for (int i = 0; i < n; i++) {
        struct gpt_pass pass = pass_of(g, params, 1, length, stop);
        if (read_tokens(&pass, tokens + (int64_t)i * (length + 1), err) < 0)
            return -1;
        struct head head = head_of(&pass);
        if (gpt_forward(&pass) < 0 || head_run(&pass.crew, &head) < 0)
            return why_ended(&pass, err);
        losses[i] = mean_loss(&pass);
    }
    return 0;
}

void gpt_next_logits(struct gpt *g, const float *params, const int32_t *tokens, int length, float *logits)
{
    struct gpt_pass pass = pass_of(g, params, 1, length, NULL);
    memcpy(g->act.tokens, tokens, (size_t)length * sizeof *tokens);
    struct head head = head_of(&pass);
    gpt_forward(&pass);
    head_logits(&pass.crew, &head, length - 1, logits);
}
