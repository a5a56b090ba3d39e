#include "exact_case.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/prng.h"
#include "common/os/crypto.h"
#include "trainer/exact/lineage.h"
#include "trainer/exact/proof.h"
#include "trainer/state/state_file.h"

const struct model_layout *case_layout(void)
{
    static struct model_layout layout;
    const struct model_shape shape = {.layers = 1, .heads = 2, .width = 38, .context = 20, .vocabulary = 257};
    if (!layout.parameters)
        model_layout_init(&layout, &shape);
    return &layout;
}

struct update_rule case_rule(void)
{
    return (struct update_rule){
        .schedule = {.rate = 1e-2, .rate_min = 1e-3, .warmup = 2, .steps = 12, .cosine = true},
        .beta1 = 0.9,
        .beta2 = 0.95,
        .epsilon = 1e-8,
        .weight_decay = 0.1,
        .clip_norm = 0.05,
    };
}

int case_memfd(void)
{
    int fd = memfd_create("state", MFD_CLOEXEC);
    cr_assert_geq(fd, 0);
    return fd;
}

static float unit(uint64_t key, int64_t i)
{
    struct philox_block b = philox4x32(key, (uint64_t)i, 0);
    return (float)((double)b.word[0] / 4294967296.0 - 0.5);
}

void case_gradient(const float *params, int64_t step, int lane, float *grads, float *loss)
{
    const struct model_layout *layout = case_layout();
    uint64_t key = (uint64_t)step * 1000 + (uint64_t)lane;
    for (int t = 0; t < layout->tensors; t++) {
        const struct model_tensor *tensor = &layout->tensor[t];
        float size = 1.0f / (float)(1 << (t % 12)); /* tensors of very different sizes */
        for (int64_t i = tensor->first; i < tensor->first + tensor->count; i++)
            grads[i] = size * (unit(key, i) + params[i]) * 0.02f;
    }
    *loss = 4.0f + unit(key, -1);
}

void case_first_weights(struct state *s)
{
    struct state_point point = {.step = 0};
    state_receive_begin(s);
    struct near_arrays a = near_arrays(s);
    for (int64_t i = 0; i < a.count; i++)
        a.params[i] = unit(77, i);
    state_zero_moments(s, NULL);
    uint8_t data[RM_HASH_BYTES] = {1};
    lineage_first("{}", 2, data, a.params, a.count, point.lineage);
    state_receive_end(s, &point, NULL);
}

static void open_rank(struct ring *r, int rank)
{
    struct error err = {0};
    const struct state_shape shape = {.layout = case_layout(), .lanes = CASE_LANES, .fast = r->fast};
    r->fd[rank] = case_memfd();
    cr_assert_eq(state_open(&r->state[rank], r->fd[rank], &shape, &err), 0, "%s", err.text);
    cr_assert_not(state_holds(r->state[rank], NULL));
    case_first_weights(r->state[rank]);
    cr_assert_eq(lanes_open(&r->lanes[rank], r->state[rank], r->pool, &err), 0, "%s", err.text);
}

void ring_open(struct ring *r, int world, bool fast, int threads)
{
    memset(r, 0, sizeof *r);
    r->world = world;
    r->fast = fast;
    if (threads)
        cr_assert_eq(pool_open(&r->pool, threads, NULL), 0);
    for (int rank = 0; rank < world; rank++)
        open_rank(r, rank);
    for (int lane = 0; lane < CASE_LANES; lane++)
        r->owner[lane] = lane * world / CASE_LANES;
}

void ring_close(struct ring *r)
{
    for (int rank = 0; rank < r->world; rank++) {
        lanes_free(r->lanes[rank]);
        state_free(r->state[rank]);
        close(r->fd[rank]);
    }
    pool_free(r->pool);
}

void ring_deal(struct ring *r, uint64_t seed)
{
    for (int lane = 0; lane < CASE_LANES; lane++)
        r->owner[lane] = (int)prng_below(&seed, (uint64_t)r->world);
}

void ring_lanes(struct ring *r, int rank, const int32_t *k)
{
    struct state *s = r->state[rank];
    struct near_arrays a = near_arrays(s);
    struct state_point point;
    float *grads = malloc((size_t)a.count * sizeof *grads), loss;
    const struct lanes_pass pass = {.rank = rank, .world = r->world, .flags = r->flags[rank], .k = k};
    cr_assert(state_holds(s, &point));
    lanes_begin(r->lanes[rank], &pass);
    for (int lane = 0; lane < CASE_LANES; lane++) {
        if (r->owner[lane] != rank)
            continue;
        case_gradient(a.params, point.step + 1, lane, grads, &loss);
        if (r->meddle)
            r->meddle(point.step + 1, lane, grads, &loss);
        lanes_add(r->lanes[rank], lane, grads, loss);
    }
    lanes_end(r->lanes[rank], &r->sums[rank]);
    free(grads);
}

static void add_words(uint32_t *into, const uint32_t *from, int64_t count, bool floats)
{
    for (int64_t i = 0; i < count; i++) {
        float a, b;
        memcpy(&a, &into[i], sizeof a);
        memcpy(&b, &from[i], sizeof b);
        a += b;
        if (floats)
            memcpy(&into[i], &a, sizeof a);
        else
            into[i] += from[i];
    }
}

void ring_sum(const struct ring *r, uint32_t *out)
{
    const struct lanes_sums *first = &r->sums[0];
    memcpy(out, first->words, (size_t)first->words_count * sizeof *out);
    for (int rank = 1; rank < r->world; rank++)
        add_words(out, r->sums[rank].words, first->words_count, first->floats);
}

void ring_decide(struct ring *r, struct verdict *out)
{
    struct verdict other;
    const struct lanes_sums *first = &r->sums[0];
    size_t bytes = (size_t)first->header_count * sizeof *first->header;
    memcpy(first->header_to, first->header, bytes);
    for (int rank = 1; rank < r->world; rank++)
        add_words(first->header_to, r->sums[rank].header, first->header_count, false);
    for (int rank = 1; rank < r->world; rank++)
        memcpy(r->sums[rank].header_to, first->header_to, bytes);
    lanes_decide(r->lanes[0], out);
    for (int rank = 1; rank < r->world; rank++) {
        lanes_decide(r->lanes[rank], &other);
        cr_assert(memcmp(&other, out, sizeof other) == 0, "rank %d decides otherwise", rank);
    }
}

void ring_pass(struct ring *r, const int32_t *k, struct verdict *out)
{
    for (int rank = 0; rank < r->world; rank++)
        ring_lanes(r, rank, k);
    r->passes++;
    ring_decide(r, out);
}

/* Every rank's own words stand until all have the sum. */
void ring_words(struct ring *r)
{
    size_t bytes = (size_t)r->sums[0].words_count * sizeof(uint32_t);
    uint32_t *sum = malloc(bytes);
    ring_sum(r, sum);
    for (int rank = 0; rank < r->world; rank++) {
        uint32_t *to = lanes_words_to(r->lanes[rank]);
        cr_assert_eq(to != NULL, r->world > 1);
        if (to)
            memcpy(to, sum, bytes);
    }
    free(sum);
}

struct update_info ring_step(struct ring *r, uint64_t missing)
{
    struct verdict verdict;
    struct update_info first = {0}, info;
    const struct update_rule rule = case_rule();
    ring_pass(r, NULL, &verdict);
    if (verdict.kind == VERDICT_RESCALE) {
        int32_t k[RM_TENSORS_MAX];
        memcpy(k, verdict.k, sizeof k);
        ring_pass(r, k, &verdict);
    }
    cr_assert_eq(verdict.kind, VERDICT_FITS);
    ring_words(r);
    for (int rank = 0; rank < r->world; rank++) {
        if (missing >> rank & 1)
            continue;
        update_commit(r->lanes[rank], &rule, &info);
        if (rank == 0)
            first = info;
    }
    return first;
}

/* What stands beside each piece's stamp is the sum of the bits that are there, whatever led to them. */
static void expect_proven(struct state *s)
{
    struct near_arrays a = near_arrays(s);
    for (int i = 0; state_proven(s) && i < s->pieces; i++) {
        const struct state_piece *p = &s->piece[i];
        cr_assert_eq(s->proof[i], proof_piece(a.params + p->first, a.m + p->first, a.v + p->first, p->count),
                     "piece %d", i);
    }
}

struct case_hash case_hash(struct state *s)
{
    struct case_hash out = {{0}};
    struct near_arrays a = near_arrays(s);
    struct state_point point;
    memset(&point, 0, sizeof point);
    if (!state_holds(s, &point))
        return out;
    expect_proven(s);
    struct sha256 *h = sha256_open();
    sha256_add(h, a.params, (size_t)a.count * sizeof(float));
    sha256_add(h, a.m, (size_t)a.count * sizeof(float));
    sha256_add(h, a.v, (size_t)a.count * sizeof(float));
    sha256_add(h, &point.step, sizeof point.step);
    sha256_add(h, point.k, (size_t)case_layout()->tensors * sizeof *point.k);
    sha256_add(h, point.lineage, sizeof point.lineage);
    sha256_finish(h, out.bytes);
    return out;
}

bool case_same(struct case_hash a, struct case_hash b)
{
    return !memcmp(a.bytes, b.bytes, sizeof a.bytes);
}
