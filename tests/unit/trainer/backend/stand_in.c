#include "stand_in.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"
#include "tests/unit/trainer/backend/far_memory.h"
#include "trainer/backend/cpu/backend_cpu.h"
#include "trainer/state/state_file.h"

struct stand_in {
    struct backend base;
    struct backend_ops ops;
    struct backend *cpu;
    bool is_far;
    struct far_memory *memory;
    struct state inside; /* the state as the device sees it */
    struct str asked;
    const char *fails;
    bool spoilt;
};

static struct stand_in *newest;

static struct stand_in *of(const struct backend *b)
{
    return (struct stand_in *)(uintptr_t)b;
}

static struct backend *asked(const struct backend *b, const char *name)
{
    struct stand_in *s = of(b);
    str_adds(&s->asked, s->asked.length ? " " : "");
    str_adds(&s->asked, name);
    return s->cpu;
}

static int fails(const struct backend *b, const char *name, struct error *err)
{
    const struct stand_in *s = of(b);
    if (!s->fails || strcmp(s->fails, name) != 0)
        return 0;
    return err_set(err, ERR_MACHINE, "the device is lost in %s", name);
}

/* For the functions that only hand on: log, maybe fail, call. */
#define HAND_ON(b, name, err, ...)                                                                           \
    struct backend *cpu = asked(b, #name);                                                                   \
    return fails(b, #name, err) < 0 ? -1 : cpu->ops->name(__VA_ARGS__)

static void *see(const struct stand_in *s, const void *at)
{
    return s->memory ? far_memory_inside(s->memory, far_here(at)) : (void *)(uintptr_t)at;
}

static struct far see_far(const struct backend *b, struct far at)
{
    return of(b)->memory ? far_here(far_memory_inside(of(b)->memory, at)) : at;
}

/* An address of the device's own, as others name it. */
static struct far hide(const struct stand_in *s, struct far inside)
{
    struct far base = far_memory_base(s->memory);
    return far_add(base, (int64_t)(inside.at - far_here(far_memory_inside(s->memory, base)).at));
}

static void stand_in_free(struct backend *b)
{
    struct stand_in *s = of(b);
    if (!s)
        return;
    if (newest == s)
        newest = NULL;
    s->cpu->ops->free(s->cpu);
    far_memory_free(s->memory);
    str_clear(&s->asked);
    free(s);
}

static struct backend_needs needs(const struct backend *b)
{
    const struct backend *cpu = asked(b, "needs");
    return cpu->ops->needs(cpu);
}

static void fingerprint(const struct backend *b, char *out)
{
    const struct backend *cpu = asked(b, "fingerprint");
    cpu->ops->fingerprint(cpu, out);
}

static int probe(struct backend *b, uint8_t *out, struct error *err)
{
    HAND_ON(b, probe, err, cpu, out, err);
}

static int memory(struct backend *b, size_t bytes, struct memory **ret, struct far *ret_base,
                  struct error *err)
{
    struct stand_in *s = of(b);
    asked(b, "memory");
    if (fails(b, "memory", err) < 0)
        return -1;
    s->memory = far_memory_open(bytes);
    *ret = far_memory_of(s->memory);
    *ret_base = far_memory_base(s->memory);
    return 0;
}

static int attach(struct backend *b, struct state *state, struct error *err)
{
    struct stand_in *s = of(b);
    struct state *in = &s->inside;
    *in = *state;
    in->in = memory_here();
    in->stamp = see(s, (const void *)state->stamp);
    in->proof = see(s, state->proof);
    in->slot = see(s, state->slot);
    for (int i = 0; i < 2; i++)
        in->words[i] = see(s, state->words[i]);
    struct state_place *home = &in->place[STATE_HOME];
    *home = (struct state_place){see(s, home->params), see(s, home->m), see(s, home->v)};
    HAND_ON(b, attach, err, cpu, s->memory ? in : state, err);
}

static int init(struct backend *b, uint64_t seed, float *params, struct error *err)
{
    HAND_ON(b, init, err, cpu, seed, params, err);
}

static int weights(struct backend *b, struct far params, struct error *err)
{
    HAND_ON(b, weights, err, cpu, see_far(b, params), err);
}

static void warm_up(struct backend *b, struct far params)
{
    struct backend *cpu = asked(b, "warm_up");
    cpu->ops->warm_up(cpu, see_far(b, params));
}

static int begin(struct backend *b, const struct backend_pass *pass, struct error *err)
{
    HAND_ON(b, begin, err, cpu, pass, err);
}

static int resume(struct backend *b, const struct backend_pass *pass, struct error *err)
{
    HAND_ON(b, resume, err, cpu, pass, err);
}

static int lane(struct backend *b, int n, const int32_t *tokens, const atomic_int *stop, struct error *err)
{
    HAND_ON(b, lane, err, cpu, n, tokens, stop, err);
}

static int end(struct backend *b, uint32_t lane_us, struct backend_sums *ret, struct error *err)
{
    struct stand_in *s = of(b);
    struct backend *cpu = asked(b, "end");
    if (fails(b, "end", err) < 0 || cpu->ops->end(cpu, lane_us, ret, err) < 0)
        return -1;
    if (s->memory) {
        ret->in = far_memory_of(s->memory);
        ret->words = hide(s, ret->words);
    }
    return 0;
}

static void decide(struct backend *b, struct verdict *ret)
{
    struct backend *cpu = asked(b, "decide");
    cpu->ops->decide(cpu, ret);
}

static bool words_to(struct backend *b, struct far *ret)
{
    struct stand_in *s = of(b);
    struct backend *cpu = asked(b, "words_to");
    bool others = cpu->ops->words_to(cpu, ret);
    if (others && s->memory)
        *ret = hide(s, *ret);
    return others;
}

static int commit(struct backend *b, struct backend_info *ret, struct error *err)
{
    HAND_ON(b, commit, err, cpu, ret, err);
}

static int check(struct backend *b, const struct state_point *wanted, struct error *err)
{
    HAND_ON(b, check, err, cpu, wanted, err);
}

static int finish(struct backend *b, struct error *err)
{
    HAND_ON(b, finish, err, cpu, err);
}

static int losses(struct backend *b, const int32_t *tokens, int n, float *out, const atomic_int *stop,
                  struct error *err)
{
    HAND_ON(b, losses, err, cpu, tokens, n, out, stop, err);
}

static int logits(struct backend *b, const int32_t *tokens, int length, int known, float *out,
                  struct error *err)
{
    HAND_ON(b, logits, err, cpu, tokens, length, known, out, err);
}

static int image_sum(struct backend *b, uint64_t *ret, struct error *err)
{
    struct backend *cpu = asked(b, "image_sum");
    if (fails(b, "image_sum", err) < 0 || cpu->ops->image_sum(cpu, ret, err) < 0)
        return -1;
    *ret += of(b)->spoilt;
    return 0;
}

static int copy_out(struct backend *b, void *to, struct far from, size_t bytes, struct error *err)
{
    HAND_ON(b, copy_out, err, cpu, to, see_far(b, from), bytes, err);
}

static int copy_in(struct backend *b, struct far to, const void *from, size_t bytes, struct error *err)
{
    HAND_ON(b, copy_in, err, cpu, see_far(b, to), from, bytes, err);
}

static int open_as(bool is_far, bool lanes_only, struct backend **ret, const struct backend_options *options,
                   struct error *err)
{
    struct stand_in *s = calloc(1, sizeof *s);
    RM_ASSERT(s, "no memory");
    s->ops = (struct backend_ops){.free = stand_in_free,
                                  .needs = needs,
                                  .fingerprint = fingerprint,
                                  .probe = probe,
                                  .attach = attach,
                                  .init = init,
                                  .weights = weights,
                                  .warm_up = warm_up,
                                  .begin = begin,
                                  .resume = is_far ? NULL : resume,
                                  .lane = lane,
                                  .end = end,
                                  .decide = decide,
                                  .words_to = words_to,
                                  .commit = commit,
                                  .check = check,
                                  .finish = finish,
                                  .losses = losses,
                                  .logits = logits,
                                  .image_sum = image_sum,
                                  .copy_out = copy_out,
                                  .copy_in = copy_in,
                                  .memory = is_far ? memory : NULL};
    if (lanes_only)
        s->ops.losses = NULL, s->ops.logits = NULL, s->ops.probe = NULL;
    s->base = (struct backend){.ops = &s->ops, .aims = !is_far};
    s->asked = str_init(1 << 16);
    if (backend_cpu_open(&s->cpu, options, err) < 0) {
        str_clear(&s->asked);
        free(s);
        return -1;
    }
    newest = s;
    *ret = &s->base;
    return 0;
}

int stand_in_open(struct backend **ret, const struct backend_options *options, struct error *err)
{
    return open_as(false, false, ret, options, err);
}

int device_open(struct backend **ret, const struct backend_options *options, struct error *err)
{
    return open_as(true, false, ret, options, err);
}

int program_open(struct backend **ret, const struct backend_options *options, struct error *err)
{
    return open_as(false, true, ret, options, err);
}

struct stand_in *stand_in_newest(void)
{
    return newest;
}

const char *stand_in_asked(struct stand_in *s)
{
    static _Thread_local char said[1 << 16];
    text_copy(said, sizeof said, str_text(&s->asked));
    str_reset(&s->asked);
    return said;
}

void stand_in_fail(struct stand_in *s, const char *name)
{
    s->fails = name;
}

void stand_in_spoil(struct stand_in *s)
{
    s->spoilt = true;
}

struct far_memory *stand_in_memory(struct stand_in *s)
{
    return s->memory;
}
