#include "tests/unit/trainer/backend/one.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/prng.h"
#include "common/os/crypto.h"
#include "common/os/file.h"
#include "trainer/backend/cpu/model/gpt.h"

enum { TOKENS_MOST = 64 };

const struct backend_rule one_rule = {.schedule = {.rate = 1e-2, .steps = 10},
                                      .beta1 = 0.9,
                                      .beta2 = 0.95,
                                      .epsilon = 1e-8,
                                      .weight_decay = 0.1,
                                      .clip_norm = 1};
const int one_in_order[ONE_LANES] = {0, 1, 2}, one_backwards[ONE_LANES] = {2, 1, 0};

static struct error why;

static void well(int rc)
{
    cr_assert_eq(rc, 0, "%s", why.text);
}

size_t one_bytes(const struct model_layout *layout)
{
    return (size_t)layout->parameters * sizeof(float);
}

float *one_first_weights(const struct model_layout *layout)
{
    float *params = malloc(one_bytes(layout));
    gpt_init_weights(layout, ONE_SEED, params);
    return params;
}

struct far one_params(struct one *o)
{
    struct state_arrays a = state_arrays(o->state);
    return state_array_named(&a, "params")->at;
}

void one_first(struct one *o)
{
    struct state_point point = {.lineage = {9}};
    float *params = one_first_weights(o->layout);
    state_receive_begin(o->state);
    well(o->ops->copy_in(o->b, one_params(o), params, one_bytes(o->layout), &why));
    well(state_zero_moments(o->state, &why));
    well(state_receive_end(o->state, &point, &why));
    free(params);
}

struct one one_attach(one_opener *open, const struct backend_options *options, bool fast, int fd)
{
    struct state_shape shape = {.layout = options->layout, .lanes = ONE_LANES, .fast = fast};
    struct one o = {.layout = options->layout, .fd = fd};
    well(open(&o.b, options, &why));
    o.ops = o.b->ops;
    if (o.ops->memory)
        well(o.ops->memory(o.b, state_bulk_bytes(&shape), &shape.in, &shape.at, &why));
    shape.kept = o.b->kept;
    well(state_open(&o.state, o.fd, &shape, &why));
    well(o.ops->attach(o.b, o.state, &why));
    return o;
}

struct one one_open(one_opener *open, const struct backend_options *options, bool fast)
{
    int fd = -1;
    well(file_memory(&fd, "state", 0, &why));
    struct one o = one_attach(open, options, fast, fd);
    one_first(&o);
    return o;
}

void one_close(struct one *o)
{
    o->ops->free(o->b);
    state_free(o->state);
    close(o->fd);
}

const int32_t *one_tokens(const struct model_layout *layout, int lane)
{
    static _Thread_local int32_t tokens[TOKENS_MOST];
    int count = ONE_SEQUENCES * (layout->shape.context + 1);
    uint64_t seed = (uint64_t)lane + 1;
    cr_assert_leq(count, TOKENS_MOST);
    for (int i = 0; i < count; i++)
        tokens[i] = (int32_t)prng_below(&seed, (uint64_t)layout->shape.vocabulary);
    return tokens;
}

void one_pass(struct one *o, const int *order, const int32_t *k, struct backend_sums *sums)
{
    const struct backend_pass p = {
        .world = 1, .tokens = (uint32_t)(ONE_SEQUENCES * o->layout->shape.context), .k = k};
    well(o->ops->begin(o->b, &p, &why));
    for (int i = 0; i < ONE_LANES; i++)
        well(o->ops->lane(o->b, order[i], one_tokens(o->layout, order[i]), NULL, &why));
    well(o->ops->end(o->b, 0, sums, &why));
}

void one_decided(struct one *o, const int *order)
{
    struct backend_sums sums;
    struct verdict v = {.kind = VERDICT_FITS};
    struct far to;
    well(o->ops->weights(o->b, one_params(o), &why));
    do {
        const struct verdict last = v;
        one_pass(o, order, last.kind == VERDICT_RESCALE ? last.k : NULL, &sums);
        memcpy(sums.header_to, sums.header, (size_t)sums.header_count * sizeof *sums.header);
        o->ops->decide(o->b, &v);
    } while (v.kind == VERDICT_RESCALE);
    cr_assert_eq(v.kind, VERDICT_FITS);
    cr_assert_not(o->ops->words_to(o->b, &to), "alone, the own words are everybody's");
}

struct backend_info one_step(struct one *o, const int *order)
{
    struct backend_info info;
    one_decided(o, order);
    well(o->ops->commit(o->b, &info, &why));
    return info;
}

void one_give_update(struct one *from, struct one *to)
{
    struct state_update kept, got;
    cr_assert(state_kept(from->state, &kept));
    state_update_receive_begin(to->state, &got);
    size_t bytes = (size_t)kept.words_count * sizeof(uint32_t);
    uint32_t *words = malloc(bytes);
    well(memory_read(kept.in, words, kept.words, bytes, &why));
    well(memory_write(got.in, got.words, words, bytes, &why));
    memcpy(got.header, kept.header, (size_t)kept.header_count * sizeof *got.header);
    memcpy(got.k, kept.k, (size_t)from->layout->tensors * sizeof *got.k);
    free(words);
}

static void add(void *ctx, const void *at, size_t bytes)
{
    sha256_add(ctx, at, bytes);
}

struct one_bits one_bits(const struct one *o)
{
    struct state_arrays a = state_arrays(o->state);
    struct state_point point;
    struct one_bits out;
    struct sha256 *h = sha256_open();
    cr_assert(state_holds(o->state, &point));
    for (int i = 0; i < a.arrays; i++)
        well(memory_visit(a.in, a.array[i].at, one_bytes(o->layout), add, h, &why));
    sha256_add(h, point.lineage, sizeof point.lineage);
    sha256_finish(h, out.of);
    return out;
}

bool one_same(struct one_bits a, struct one_bits b)
{
    return !memcmp(a.of, b.of, sizeof a.of);
}
