#include "trainer/backend/cpu/sums/rest.h"

#include <stdatomic.h>
#include <string.h>

#include "common/base/assert.h"
#include "trainer/backend/cpu/sums/kernels.h"
#include "trainer/backend/cpu/sums/pieces.h"
#include "trainer/exact/header.h"
#include "trainer/exact/proof.h"
#include "trainer/state/state_file.h"

enum { LANES_64 = 4 };
typedef uint64_t pairs __attribute__((vector_size(8 * LANES_64), aligned(4), may_alias));

/* proof_array's sum, two neighbours in each 64 bits. */
static uint64_t sum_bits(const float *values, int count)
{
    pairs low = {0}, high = {0};
    int i = 0;
    for (; i + 2 * LANES_64 <= count; i += 2 * LANES_64) {
        pairs two = *(const pairs *)(const void *)(values + i);
        low += two & UINT32_MAX;
        high += two >> 32;
    }
    uint64_t sum = proof_array(values + i, count - i);
    for (int j = 0; j < LANES_64; j++)
        sum += low[j] + high[j];
    return sum;
}

int64_t rest_tokens(const struct state *s, uint32_t of_lane, int world)
{
    return (int64_t)of_lane * s->shape.lanes / world;
}

int rest_parts(int64_t tokens)
{
    RM_ASSERT(tokens >= 0, "%lld tokens of a step", (long long)tokens);
    if (tokens * REST_PARTS_MAX <= REST_TOKENS)
        return REST_PARTS_MAX;
    return (int)((REST_TOKENS + tokens - 1) / tokens);
}

struct rest_turn {
    const struct state *state;
    int part, parts; /* of the pieces whose number leaves that rest */
};

static void sum_params(void *ctx, int i, int thread)
{
    const struct rest_turn *turn = ctx;
    const struct state *s = turn->state;
    const struct state_piece *p = &s->piece[i];
    (void)thread;
    if (i % turn->parts == turn->part)
        s->scratch[i].proof = sum_bits(s->place[state_placed(s)].params + p->first, p->count);
}

void rest_say(struct state *s, int parts, struct pool *pool)
{
    const int turns = parts < s->pieces ? parts : s->pieces;
    RM_ASSERT(turns >= 1, "%d pieces are read in %d parts", s->pieces, parts);
    struct rest_turn turn = {.state = s, .part = (int)(state_current(s)->step % turns), .parts = turns};
    pieces_run(s, pool, sum_params, &turn);
    s->resting = 0;
    for (int i = turn.part; i < s->pieces; i += turns)
        s->resting += s->scratch[i].proof * proof_weight((uint64_t)i);
}

void rest_say_as(const struct state *s, uint32_t *header, int was, int rank, uint32_t flags)
{
    const int tensors = s->shape.layout->tensors, lanes = s->shape.lanes;
    const int64_t at = header_rank_at(tensors, lanes, 0);
    struct header_rank said;
    bool there = header_rank_read(header, tensors, lanes, was, &said);
    RM_ASSERT(there, "rank %d has said nothing", was);
    memset(header + at, 0, (size_t)(s->header_words - at) * sizeof *header);
    said.flags = flags | LANES_HOLDS;
    header_rank_write(header, tensors, lanes, rank, &said);
}

static uint64_t proof_of(const struct state *s, int i)
{
    const struct state_piece *p = &s->piece[i];
    const struct state_place *at = &s->place[state_placed(s)];
    return kernel_prove(kernels_best(), at->params + p->first, at->m + p->first, at->v + p->first, p->count);
}

struct look {
    const struct state *state;
    atomic_bool changed;
};

static void look_at(void *ctx, int i, int thread)
{
    struct look *look = ctx;
    (void)thread;
    if (look->state->proof[i] != proof_of(look->state, i))
        atomic_store(&look->changed, true);
}

bool rest_sound(struct state *s, struct pool *pool)
{
    struct look look = {.state = s};
    if (state_proven(s))
        pieces_run(s, pool, look_at, &look);
    return !atomic_load(&look.changed);
}

static void prove_piece(void *ctx, int i, int thread)
{
    struct state *s = ctx;
    (void)thread;
    s->proof[i] = proof_of(s, i);
}

uint64_t rest_written(struct state *s, struct pool *pool)
{
    if (s->shape.fast)
        return 0;
    if (!state_proven(s)) {
        pieces_run(s, pool, prove_piece, s);
        state_set_proven(s);
    }
    return state_sum_of(s, s->proof);
}
