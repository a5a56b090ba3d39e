#include "trainer/backend/cpu/sums/lanes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/backend/cpu/sums/kernels.h"
#include "trainer/backend/cpu/sums/pieces.h"
#include "trainer/state/state_file.h"

struct lanes {
    struct state *state;
    struct pool *pool;
    struct lanes_pass pass;
    int buffer;
    bool first;                  /* no lane has been added yet: the next one is stored, not added */
    float scale[RM_TENSORS_MAX]; /* a lane's gradient times this is its share of the sum */
    const float *grads;          /* of the lane under way */
};

int lanes_open(struct lanes **ret, struct state *state, struct pool *pool, struct error *err)
{
    struct lanes *l = calloc(1, sizeof *l);
    if (!l)
        return err_set(err, ERR_MACHINE, "no memory for the lanes' sums");
    l->state = state;
    l->pool = pool;
    *ret = l;
    return 0;
}

void lanes_free(struct lanes *l)
{
    free(l);
}

struct state *lanes_state(const struct lanes *l)
{
    return l->state;
}

struct pool *lanes_pool(const struct lanes *l)
{
    return l->pool;
}

int lanes_buffer_index(const struct lanes *l)
{
    return l->buffer;
}

void lanes_begin(struct lanes *l, const struct lanes_pass *pass)
{
    struct state *s = l->state;
    int tensors = s->shape.layout->tensors;
    const int32_t *k = pass->k ? pass->k : state_current(s)->k;
    l->pass = *pass;
    l->buffer = state_take_spare(s);
    l->first = true;
    memcpy(s->header->update[l->buffer].k, k, (size_t)tensors * sizeof *k);
    memset(state_header_words(s, l->buffer), 0, (size_t)s->header_words * sizeof(uint32_t));
    for (int t = 0; t < tensors; t++)
        l->scale[t] = (float)((s->shape.fast ? 1 : ldexp(1, k[t])) / s->shape.lanes);
}

static void add_piece(void *ctx, int i, int thread)
{
    (void)thread;
    struct lanes *l = ctx;
    struct state *s = l->state;
    const struct state_piece *p = &s->piece[i];
    const struct kernel_lane_args args = {
        .grads = l->grads + p->first,
        .words = s->words[l->buffer] + p->first,
        .count = p->count,
        .scale = l->scale[p->tensor],
        .store = l->first,
    };
    const struct kernels *kernels = kernels_best();
    s->piece_max[i] = s->shape.fast ? kernel_add_float(kernels, &args) : kernel_add_fixed(kernels, &args);
}

void lanes_add(struct lanes *l, int lane, const float *grads, float loss)
{
    struct state *s = l->state;
    uint32_t *slot = state_header_words(s, l->buffer) + verdict_lane_at(s->shape.layout->tensors, lane);
    l->grads = grads;
    pieces_run(s, l->pool, add_piece, l);
    l->first = false;
    memcpy(slot, &loss, sizeof loss);
    for (int i = 0; i < s->pieces; i++) {
        uint32_t *max = &slot[1 + s->piece[i].tensor];
        if (*max < s->piece_max[i])
            *max = s->piece_max[i];
    }
}

void lanes_end(struct lanes *l, struct lanes_buffer *out)
{
    struct state *s = l->state;
    const struct model_layout *layout = s->shape.layout;
    uint32_t *words = s->words[l->buffer], *header = state_header_words(s, l->buffer);
    if (l->first)
        memset(words, 0, (size_t)layout->parameters * sizeof *words);
    verdict_rank_write(header, layout->tensors, s->shape.lanes, l->pass.rank, l->pass.flags,
                       state_current(s)->lineage);
    *out = (struct lanes_buffer){words, header, layout->parameters, s->header_words, s->shape.fast};
}

void lanes_decide(struct lanes *l, struct verdict *out)
{
    const struct state *s = l->state;
    verdict_decide(out, state_header_words(s, l->buffer), s->shape.layout->tensors, s->shape.lanes,
                   s->shape.fast, s->header->update[l->buffer].k);
}
