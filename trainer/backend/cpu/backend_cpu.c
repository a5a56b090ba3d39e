/* Carries out the table of who computes with the C model on this machine's processors. */
#include "trainer/backend/cpu/backend_cpu.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/os/pages.h"
#include "common/os/pool.h"
#include "trainer/backend/cpu/model/gpt.h"
#include "trainer/backend/cpu/model/gpt_step.h"
#include "trainer/backend/cpu/probe_cpu.h"
#include "trainer/backend/cpu/sums/lanes.h"
#include "trainer/backend/cpu/sums/rest.h"
#include "trainer/backend/cpu/sums/update.h"

enum {
    STATE_BYTES = 20,     /* for each parameter (trainer/state/state.h) */
    COPY_PIECE = 1 << 20, /* bytes */
};

struct backend_cpu {
    struct backend base;
    const struct model_layout *layout;
    int sequences;
    const char *isa;
    enum gpt_precision precision;
    struct update_rule rule;
    struct pool *pool;
    struct gpt *gpt;
    float *grads;        // (parameters) of one lane; NULL until attached
    const float *params; // (parameters)
    struct state *state; /* NULL until attached */
    struct lanes *lanes; /* likewise */
    bool mixed;          /* others may be GPUs, which do not read a state at rest */
    int read_in;         /* of the pass under way: others have the same state, and read it at rest in so many
                            parts; 0: they do not */
    int begun_as;        /* rank of the ring in which the pass under way was begun */
    bool resumed;        /* and another one goes on with it: */
    int rank;            /* as this rank */
    uint32_t flags;      /* which says so */
};

static struct backend_cpu *cpu_of(struct backend *b)
{
    return (struct backend_cpu *)(void *)b;
}

static const struct backend_cpu *cpu_seen(const struct backend *b)
{
    return (const struct backend_cpu *)(const void *)b;
}

static float *floats_at(struct far at)
{
    return (float *)(uintptr_t)at.at;
}

static void cpu_free(struct backend *b)
{
    struct backend_cpu *c = cpu_of(b);
    if (!c)
        return;
    lanes_free(c->lanes);
    gpt_free(c->gpt);
    pool_free(c->pool);
    free(c->grads);
    free(c);
}

static struct backend_needs cpu_needs(const struct backend *b)
{
    const struct backend_cpu *c = cpu_seen(b);
    size_t parameters = (size_t)c->layout->parameters;
    return (struct backend_needs){.lane = gpt_memory(c->gpt) + parameters * sizeof *c->grads,
                                  .state = parameters * STATE_BYTES};
}

static void cpu_fingerprint(const struct backend *b, char *out)
{
    const struct backend_cpu *c = cpu_seen(b);
    gpt_fingerprint(c->isa, c->precision, out);
}

static int cpu_probe(struct backend *b, uint8_t *out, struct error *err)
{
    struct backend_cpu *c = cpu_of(b);
    return probe_cpu(c->isa, c->precision, c->pool, out, err);
}

static int cpu_attach(struct backend *b, struct state *state, struct error *err)
{
    struct backend_cpu *c = cpu_of(b);
    RM_ASSERT(!c->state, "a second state for %p", (void *)c);
    c->state = state;
    c->grads = pages_alloc((size_t)c->layout->parameters * sizeof *c->grads);
    if (!c->grads)
        return err_set(err, ERR_MACHINE, "no memory for a lane of %lld parameters",
                       (long long)c->layout->parameters);
    return lanes_open(&c->lanes, state, c->pool, err);
}

/* ---- weights ---- */

static int cpu_init(struct backend *b, uint64_t seed, float *params, struct error *err)
{
    (void)err;
    gpt_init_weights(cpu_of(b)->layout, seed, params);
    return 0;
}

static int cpu_weights(struct backend *b, struct far params, struct error *err)
{
    struct backend_cpu *c = cpu_of(b);
    (void)err;
    c->params = floats_at(params);
    gpt_weights_changed(c->gpt, c->params);
    return 0;
}

static void cpu_warm_up(struct backend *b, struct far params)
{
    struct backend_cpu *c = cpu_of(b);
    size_t count = (size_t)c->sequences * (size_t)(c->layout->shape.context + 1);
    int32_t *tokens = calloc(count, sizeof *tokens);
    float loss;
    cpu_weights(b, params, NULL);
    if (tokens)
        gpt_lane(c->gpt, c->params, tokens, c->grads, &loss, NULL, NULL);
    free(tokens);
}

/* ---- a pass ---- */

static int cpu_begin(struct backend *b, const struct backend_pass *pass, struct error *err)
{
    const struct lanes_pass p = {
        .rank = pass->rank, .world = pass->world, .flags = pass->flags, .tokens = pass->tokens, .k = pass->k};
    (void)err;
    struct backend_cpu *c = cpu_of(b);
    const int64_t tokens = rest_tokens(c->state, pass->tokens, pass->world);
    c->read_in = pass->world > 1 && !c->mixed ? rest_parts(tokens) : 0;
    c->begun_as = pass->rank;
    c->resumed = false;
    lanes_begin(c->lanes, &p);
    return 0;
}

static int cpu_resume(struct backend *b, const struct backend_pass *pass, struct error *err)
{
    struct backend_cpu *c = cpu_of(b);
    const int64_t tokens = rest_tokens(c->state, pass->tokens, pass->world);
    (void)err;
    RM_ASSERT(!pass->k && !pass->disputed, "rank %d goes on with a pass of other exponents", pass->rank);
    c->read_in = pass->world > 1 && !c->mixed ? rest_parts(tokens) : 0;
    c->resumed = true;
    c->rank = pass->rank;
    c->flags = pass->flags;
    return 0;
}

static int cpu_lane(struct backend *b, int lane, const int32_t *tokens, const atomic_int *stop,
                    struct error *err)
{
    struct backend_cpu *c = cpu_of(b);
    float loss;
    if (gpt_lane(c->gpt, c->params, tokens, c->grads, &loss, stop, err) < 0)
        return -1;
    lanes_add(c->lanes, lane, c->grads, loss);
    return 0;
}

static int cpu_end(struct backend *b, uint32_t lane_us, struct backend_sums *ret, struct error *err)
{
    struct backend_cpu *c = cpu_of(b);
    struct lanes_sums sums;
    (void)err;
    if (lane_us)
        lanes_took(c->lanes, lane_us);
    if (c->read_in)
        rest_say(c->state, c->read_in, c->pool);
    lanes_end(c->lanes, &sums);
    if (c->resumed)
        rest_say_as(c->state, (uint32_t *)(uintptr_t)sums.header, c->begun_as, c->rank, c->flags);
    *ret = (struct backend_sums){.words = far_here(sums.words),
                                 .header = sums.header,
                                 .header_to = sums.header_to,
                                 .words_count = sums.words_count,
                                 .header_count = sums.header_count,
                                 .floats = sums.floats};
    return 0;
}

static void cpu_decide(struct backend *b, struct verdict *ret)
{
    lanes_decide(cpu_of(b)->lanes, ret);
}

static bool cpu_words_to(struct backend *b, struct far *ret)
{
    const uint32_t *to = lanes_words_to(cpu_of(b)->lanes);
    *ret = far_here(to);
    return to != NULL;
}

static int cpu_commit(struct backend *b, struct backend_info *ret, struct error *err)
{
    struct backend_cpu *c = cpu_of(b);
    struct update_info info;
    (void)err;
    update_commit(c->lanes, &c->rule, &info);
    *ret = (struct backend_info){info.step, info.loss, info.norm, info.clip, info.rate};
    return 0;
}

/* ---- an update that was received, or begun by a predecessor ---- */

static int cpu_check(struct backend *b, const struct state_point *wanted, struct error *err)
{
    struct backend_cpu *c = cpu_of(b);
    return update_check_received(c->state, &c->rule, c->pool, wanted, err);
}

static int cpu_finish(struct backend *b, struct error *err)
{
    struct backend_cpu *c = cpu_of(b);
    (void)err;
    update_apply(c->state, &c->rule, c->pool, NULL);
    return 0;
}

static bool cpu_sound(struct backend *b)
{
    struct backend_cpu *c = cpu_of(b);
    return rest_sound(c->state, c->pool);
}

/* ---- forward only ---- */

static int cpu_losses(struct backend *b, const int32_t *tokens, int n, float *losses, const atomic_int *stop,
                      struct error *err)
{
    struct backend_cpu *c = cpu_of(b);
    return gpt_losses(c->gpt, c->params, tokens, n, losses, stop, err);
}

static int cpu_logits(struct backend *b, const int32_t *tokens, int length, int known, float *logits,
                      struct error *err)
{
    struct backend_cpu *c = cpu_of(b);
    (void)err;
    if (known > 0 && known == length - 1 && gpt_can_step(c->gpt))
        gpt_step_logits(c->gpt, c->params, tokens, length, logits);
    else
        gpt_next_logits(c->gpt, c->params, tokens, length, logits);
    return 0;
}

/* ---- copies, on all threads ---- */

struct copy {
    char *to;
    const char *from;
    size_t bytes;
};

static void copy_piece(void *ctx, int piece, int thread)
{
    const struct copy *c = ctx;
    size_t at = (size_t)piece * COPY_PIECE, left = c->bytes - at;
    (void)thread;
    memcpy(c->to + at, c->from + at, left < COPY_PIECE ? left : COPY_PIECE);
}

static int copy(struct backend *b, void *to, const void *from, size_t bytes)
{
    struct copy c = {to, from, bytes};
    if (bytes)
        pool_run(cpu_of(b)->pool, (int)((bytes + COPY_PIECE - 1) / COPY_PIECE), copy_piece, &c);
    return 0;
}

/* The sum is that of what its updates wrote. */
static int cpu_image_sum(struct backend *b, uint64_t *ret, struct error *err)
{
    (void)err;
    *ret = rest_written(cpu_of(b)->state, cpu_of(b)->pool);
    return 0;
}

static int cpu_copy_out(struct backend *b, void *to, struct far from, size_t bytes, struct error *err)
{
    (void)err;
    return copy(b, to, floats_at(from), bytes);
}

static int cpu_copy_in(struct backend *b, struct far to, const void *from, size_t bytes, struct error *err)
{
    (void)err;
    return copy(b, floats_at(to), from, bytes);
}

static const struct backend_ops cpu_ops = {
    .free = cpu_free,
    .needs = cpu_needs,
    .fingerprint = cpu_fingerprint,
    .probe = cpu_probe,
    .attach = cpu_attach,
    .init = cpu_init,
    .weights = cpu_weights,
    .warm_up = cpu_warm_up,
    .begin = cpu_begin,
    .resume = cpu_resume,
    .lane = cpu_lane,
    .end = cpu_end,
    .decide = cpu_decide,
    .words_to = cpu_words_to,
    .commit = cpu_commit,
    .check = cpu_check,
    .finish = cpu_finish,
    .sound = cpu_sound,
    .losses = cpu_losses,
    .logits = cpu_logits,
    .image_sum = cpu_image_sum,
    .copy_out = cpu_copy_out,
    .copy_in = cpu_copy_in,
};

static struct update_rule rule_of(const struct backend_rule *r)
{
    return (struct update_rule){.schedule = r->schedule,
                                .beta1 = r->beta1,
                                .beta2 = r->beta2,
                                .epsilon = r->epsilon,
                                .weight_decay = r->weight_decay,
                                .clip_norm = r->clip_norm};
}

static int take_parts(struct backend_cpu *c, const struct backend_options *o, struct error *err)
{
    struct gpt_options options = {
        .sequences = o->sequences, .isa = o->isa, .precision = c->precision, .recompute = o->recompute};
    if (pool_open(&c->pool, o->threads, err) < 0)
        return -1;
    if (o->pulse)
        pool_pulse(c->pool, o->pulse);
    return gpt_open(&c->gpt, c->layout, &options, c->pool, err);
}

int backend_cpu_open(struct backend **ret, const struct backend_options *options, struct error *err)
{
    struct backend_cpu *c = calloc(1, sizeof *c);
    if (!c)
        return err_set(err, ERR_MACHINE, "no memory for who computes");
    c->base = (struct backend){.ops = &cpu_ops, .aims = true};
    c->layout = options->layout;
    c->sequences = options->sequences;
    c->isa = options->isa;
    c->precision = options->bf16 ? GPT_BF16 : GPT_FP32;
    c->mixed = options->mixed;
    c->rule = rule_of(&options->rule);
    if (take_parts(c, options, err) < 0) {
        cpu_free(&c->base);
        return -1;
    }
    *ret = &c->base;
    return 0;
}
