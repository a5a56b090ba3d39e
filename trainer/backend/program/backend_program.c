/* Carries out the table of who computes (trainer/backend/backend.h) by asking a user's program, one task
 * after the other, and keeps the sums and the update that such a program leaves to us. */
#include "trainer/backend/program/backend_program.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/prng.h"
#include "common/base/str.h"
#include "common/os/clock.h"
#include "common/os/crypto.h"
#include "common/os/log.h"
#include "common/os/pool.h"
#include "trainer/backend/cpu/sums/lanes.h"
#include "trainer/backend/program/apply.h"
#include "trainer/backend/program/audit_prove.h"
#include "trainer/backend/program/image.h"
#include "trainer/backend/program/state_watch.h"
#include "trainer/backend/program/talk.h"
#include "trainer/core/cursor.h"
#include "trainer/exact/header.h"
#include "trainer/state/state_file.h"

enum {
    WORDS_BYTES = 8, /* of the state, for each element of a gradient: two buffers */
    PAGE = 4096,
};

/* What lies in the image's place. */
enum image {
    IMAGE_OLD,  /* nothing of use: the program has moved on since */
    IMAGE_HERE, /* the state that the program has */
    IMAGE_NEW,  /* the state that the program is still to be given */
};

struct backend_program {
    struct backend base;
    struct memory memory; /* the image's */
    struct backend_program_options options;
    struct talk_program program;
    struct cursor cursor;
    struct program_welcome at; /* where what lies in the memory */
    char *map;
    int fd;
    struct pool *pool;
    struct state *state; /* NULL until attached; likewise: */
    struct lanes *lanes;

    pthread_mutex_t lock; /* over the conversation, and: */
    struct talk *talk;
    enum image image;
    bool untouched; /* the program is as it began */

    int pending; /* lane that the program is at, or has done, and that is not yet added; -1 none */
    int area;    /* for the next one */
    uint32_t passes;
    const int32_t *k; /* of the pass; NULL: the state's own */
    struct audit_pass audit;
    int handed;              /* lanes of this pass to the program, but for the audited one */
    struct header_rank said; /* of this pass: the lane that it audited */
    uint32_t *header, *sum;  // (header words) of this pass: with what it audited; everybody's
    bool fresh;              /* since it got its state no step was made in which it audited a lane */
};

static struct backend_program *program_of(struct backend *b)
{
    return (struct backend_program *)(void *)b;
}

static const struct backend_program *program_seen(const struct backend *b)
{
    return (const struct backend_program *)(const void *)b;
}

static struct backend_program *owner_of(struct memory *m)
{
    return (struct backend_program *)(void *)((char *)m - offsetof(struct backend_program, memory));
}

static float *area_at(const struct backend_program *p, int area)
{
    return (float *)(void *)(p->map + p->at.area_at[area]);
}

static int64_t *samples_at(const struct backend_program *p, int area)
{
    return (int64_t *)(void *)(p->map + p->at.samples_at[area]);
}

static void *image_at(const struct backend_program *p)
{
    return p->map + p->at.image_at;
}

/* ---- the image ---- */

static int64_t step_held(const struct backend_program *p)
{
    const struct state_point *now = p->state ? state_current(p->state) : NULL;
    return now ? now->step : 0;
}

/* The program's word is awaited; the lock is held. */
static int do_task(struct backend_program *p, const struct program_task_packet *task, const atomic_int *stop,
                   struct error *err)
{
    return talk_task(p->talk, task, stop, err) < 0 ? -1 : talk_settle(p->talk, stop, NULL, err);
}

static int save(struct backend_program *p, struct error *err)
{
    if (p->image != IMAGE_OLD)
        return 0;
    if (do_task(p, &(struct program_task_packet){.kind = PROGRAM_SAVE, .step = step_held(p)}, NULL, err) < 0)
        return -1;
    p->image = IMAGE_HERE;
    return 0;
}

static int give_image(struct backend_program *p, const atomic_int *stop, struct error *err)
{
    if (p->image != IMAGE_NEW)
        return 0;
    if (do_task(p, &(struct program_task_packet){.kind = PROGRAM_LOAD, .step = step_held(p)}, stop, err) < 0)
        return -1;
    p->image = IMAGE_HERE;
    return 0;
}

/* What is read stands still meanwhile (trainer/io/transfer.h), so the copy needs no lock. */
static int image_read(struct memory *m, void *to, struct far from, size_t bytes, struct error *err)
{
    struct backend_program *p = owner_of(m);
    struct error ignored;
    pthread_mutex_lock(&p->lock);
    int result = save(p, err ? err : &ignored);
    pthread_mutex_unlock(&p->lock);
    if (result == 0)
        memcpy(to, (const void *)(uintptr_t)from.at, bytes);
    return result;
}

static int image_write(struct memory *m, struct far to, const void *from, size_t bytes, struct error *err)
{
    struct backend_program *p = owner_of(m);
    (void)err;
    pthread_mutex_lock(&p->lock);
    p->image = IMAGE_NEW;
    p->untouched = false;
    p->fresh = true;
    pthread_mutex_unlock(&p->lock);
    memcpy((void *)(uintptr_t)to.at, from, bytes);
    return 0;
}

static void *image_near(struct memory *m, struct far at)
{
    (void)m, (void)at;
    return NULL; /* not without asking the program */
}

static const struct memory_ops image_ops = {image_read, image_write, image_near};

static int program_memory(struct backend *b, size_t bytes, struct memory **ret, struct far *ret_base,
                          struct error *err)
{
    struct backend_program *p = program_of(b);
    (void)err;
    RM_ASSERT(bytes == (size_t)b->image_bytes, "an image of %zu bytes, not %lld", bytes,
              (long long)b->image_bytes);
    *ret = &p->memory;
    *ret_base = far_here(image_at(p));
    return 0;
}

static int program_copy_out(struct backend *b, void *to, struct far from, size_t bytes, struct error *err)
{
    return image_read(&program_of(b)->memory, to, from, bytes, err);
}

static int program_copy_in(struct backend *b, struct far to, const void *from, size_t bytes,
                           struct error *err)
{
    return image_write(&program_of(b)->memory, to, from, bytes, err);
}

static int program_first(struct backend *b, uint8_t out[RM_HASH_BYTES], struct error *err)
{
    struct backend_program *p = program_of(b);
    pthread_mutex_lock(&p->lock);
    int result = p->untouched
                     ? save(p, err)
                     : err_set(err, ERR_MACHINE,
                               "the program has moved on from its first weights; it is started anew");
    pthread_mutex_unlock(&p->lock);
    if (result == 0)
        sha256_once(image_at(p), (size_t)b->image_bytes, out);
    return result;
}

static int program_digest(struct backend *b, uint8_t out[RM_HASH_BYTES], struct error *err)
{
    struct backend_program *p = program_of(b);
    pthread_mutex_lock(&p->lock);
    int result = save(p, err);
    pthread_mutex_unlock(&p->lock);
    return result < 0 ? -1 : image_digest(image_at(p), b->image_bytes, out, err);
}

static int program_image_sum(struct backend *b, uint64_t *ret, struct error *err)
{
    struct backend_program *p = program_of(b);
    uint8_t sum[RM_HASH_BYTES];
    pthread_mutex_lock(&p->lock);
    int result = save(p, err);
    if (result == 0)
        watch_sum(image_at(p), (size_t)b->image_bytes, sum);
    pthread_mutex_unlock(&p->lock);
    if (result == 0)
        memcpy(ret, sum, sizeof *ret);
    return result;
}

/* ---- what it is ---- */

static void program_free(struct backend *b)
{
    struct backend_program *p = program_of(b);
    if (!p)
        return;
    bool complete = p->state && step_held(p) == p->options.steps;
    talk_free(p->talk, complete ? "" : "this worker's part is over before the job's last step");
    lanes_free(p->lanes);
    free(p->header);
    pool_free(p->pool);
    if (p->map)
        munmap(p->map, (size_t)p->at.bytes);
    if (p->fd >= 0)
        close(p->fd);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static struct backend_needs program_needs(const struct backend *b)
{
    const struct backend_program *p = program_seen(b);
    return (struct backend_needs){.lane = (size_t)p->at.bytes,
                                  .state = (size_t)p->options.layout->parameters * WORDS_BYTES};
}

/* Gradients by their hash, arithmetic in the program's own words as far as they fit. */
static void program_fingerprint(const struct backend *b, char *out)
{
    const struct backend_program *p = program_seen(b);
    const struct program_hello *hello = &p->program.hello;
    uint8_t both[RM_HASH_BYTES];
    char hex[RM_HASH_HEX];
    struct sha256 *h = sha256_open();
    sha256_add(h, p->program.gradients_sha256, RM_HASH_BYTES);
    sha256_add(h, hello->arithmetic, strlen(hello->arithmetic));
    sha256_add(h, &b->image_bytes, sizeof b->image_bytes);
    sha256_add(h, &hello->determinate, sizeof hello->determinate); /* all audit, or none */
    sha256_finish(h, both);
    hex_encode(both, RM_HASH_BYTES, hex);
    snprintf(out, RM_FINGERPRINT_MAX, "program %.16s %.200s", hex, hello->arithmetic);
}

void backend_program_data(const struct backend *b, uint8_t out[RM_HASH_BYTES])
{
    char text[64];
    int length =
        snprintf(text, sizeof text, "%lld samples", (long long)program_seen(b)->program.hello.samples);
    sha256_once(text, (size_t)length, out);
}

static int program_attach(struct backend *b, struct state *state, struct error *err)
{
    struct backend_program *p = program_of(b);
    RM_ASSERT(!p->state, "a second state for %p", (void *)p);
    p->state = state;
    p->header = calloc((size_t)state->header_words, sizeof *p->header);
    if (!p->header)
        return err_set(err, ERR_MACHINE, "no memory for the header words");
    return lanes_open(&p->lanes, state, p->pool, err);
}

static int program_weights(struct backend *b, struct far params, struct error *err)
{
    struct backend_program *p = program_of(b);
    (void)params;
    pthread_mutex_lock(&p->lock);
    int result = give_image(p, p->options.stop, err);
    pthread_mutex_unlock(&p->lock);
    return result;
}

static void program_warm_up(struct backend *b, struct far params)
{
    (void)b, (void)params; /* the program has done that itself, or has not */
}

static void program_idle(struct backend *b)
{
    struct backend_program *p = program_of(b);
    if (pthread_mutex_trylock(&p->lock))
        return;
    talk_idle(p->talk);
    pthread_mutex_unlock(&p->lock);
}

/* ---- a pass ---- */

static int program_begin(struct backend *b, const struct backend_pass *pass, struct error *err)
{
    struct backend_program *p = program_of(b);
    const struct lanes_pass said = {
        .rank = pass->rank, .world = pass->world, .flags = pass->flags, .tokens = pass->tokens, .k = pass->k};
    (void)err;
    p->audit = (struct audit_pass){.step = step_held(p) + 1,
                                   .rank = pass->rank,
                                   .fresh = p->fresh,
                                   .room = pass->room,
                                   .all = pass->disputed - 1};
    if (pass->shares)
        p->audit.shares = *pass->shares;
    else
        shares_even(&p->audit.shares, p->options.lanes, pass->world > 0 ? pass->world : 1);
    p->handed = 0;
    p->said.audited = -1;
    p->k = pass->k;
    p->pending = -1;
    p->passes = pass->k || pass->disputed ? p->passes + 1 : 0;
    lanes_begin(p->lanes, &said);
    return 0;
}

/* A lane's random numbers follow from it, whoever computes it, and however often. */
static uint64_t lane_seed(uint64_t seed, int64_t step, int lane)
{
    uint64_t state = seed ^ 0x6c616e6500000000u; /* "lane": apart from the order of the samples */
    struct philox_block block = philox4x32(splitmix64(&state), (uint64_t)step, (uint64_t)lane);
    return block.word[0] | (uint64_t)block.word[1] << 32;
}

static void name_samples(const struct backend_program *p, int64_t step, int lane, int area)
{
    int64_t *at = samples_at(p, area);
    for (int i = 0; i < p->options.sequences; i++)
        at[i] = cursor_sample(&p->cursor, step, lane, i);
}

/* The lane that the program has done; the lock is held. */
static int add_pending(struct backend_program *p, struct error *err)
{
    double loss;
    if (p->pending < 0)
        return 0;
    if (talk_settle(p->talk, p->options.stop, &loss, err) < 0)
        return -1;
    lanes_add(p->lanes, p->pending, area_at(p, !p->area), (float)loss);
    if (p->options.pulse)
        atomic_fetch_add(p->options.pulse, 1);
    p->pending = -1;
    return 0;
}

/* While the program computes this one, the one before is added to the sums. */
static int hand_out(struct backend_program *p, int lane, struct error *err)
{
    double loss = 0;
    int64_t step = step_held(p);
    int before = p->pending, area = p->area;
    struct program_task_packet task = {.kind = PROGRAM_LANE,
                                       .step = step + 1,
                                       .lane = (uint32_t)lane,
                                       .pass = p->passes,
                                       .area = (uint32_t)area,
                                       .seed = lane_seed(p->options.seed, step + 1, lane)};
    if (talk_settle(p->talk, p->options.stop, &loss, err) < 0)
        return -1;
    name_samples(p, step, lane, area);
    if (talk_task(p->talk, &task, p->options.stop, err) < 0)
        return -1;
    p->pending = lane;
    p->handed++;
    p->area = !area;
    if (before >= 0)
        lanes_add(p->lanes, before, area_at(p, !area), (float)loss);
    return 0;
}

static int program_lane(struct backend *b, int lane, const int32_t *tokens, const atomic_int *stop,
                        struct error *err)
{
    struct backend_program *p = program_of(b);
    (void)tokens, (void)stop; /* the same as the options' */
    pthread_mutex_lock(&p->lock);
    int result = hand_out(p, lane, err);
    pthread_mutex_unlock(&p->lock);
    return result;
}

/* The last one is done only now: each took so many us more. The lock is held. */
static int end_lanes(struct backend_program *p, uint32_t *ret_more, struct error *err)
{
    rm_time begun = clock_now();
    int handed = p->handed;
    if (add_pending(p, err) < 0)
        return -1;
    const rm_time each = handed ? (clock_now() - begun) / handed / RM_US : 0;
    *ret_more = each < INT32_MAX ? (uint32_t)each : INT32_MAX; /* as what it is added to */
    return 0;
}

/* A lane of another rank, where one is due; the lock is held. */
static int audit(struct backend_program *p, struct error *err)
{
    double loss;
    int lane = p->program.hello.determinate ? audit_lane(&p->audit) : -1;
    if (lane < 0)
        return 0;
    if (hand_out(p, lane, err) < 0 || talk_settle(p->talk, p->options.stop, &loss, err) < 0)
        return -1;
    p->pending = -1;
    p->said.audited = lane;
    p->said.audited_loss = (float)loss;
    p->said.audited_proof = audit_prove(p->state, p->pool, p->k, area_at(p, !p->area));
    return 0;
}

/* What the lanes say of themselves, and of the audited one. */
static void add_audit(struct backend_program *p, const struct lanes_sums *sums)
{
    int tensors = p->options.layout->tensors, lanes = p->options.lanes, rank = p->audit.rank;
    struct header_rank all;
    p->sum = sums->header_to;
    memcpy(p->header, sums->header, (size_t)sums->header_count * sizeof *p->header);
    bool there = header_rank_read(sums->header, tensors, lanes, rank, &all);
    RM_ASSERT(there, "rank %d says nothing in its own header", rank);
    all.audited = p->said.audited;
    all.audited_loss = p->said.audited_loss;
    all.audited_proof = p->said.audited_proof;
    header_rank_write(p->header, tensors, lanes, rank, &all);
}

static int program_end(struct backend *b, uint32_t lane_us, struct backend_sums *ret, struct error *err)
{
    struct backend_program *p = program_of(b);
    struct lanes_sums sums;
    uint32_t rest = 0;
    pthread_mutex_lock(&p->lock);
    int result = end_lanes(p, &rest, err) < 0 ? -1 : audit(p, err);
    pthread_mutex_unlock(&p->lock);
    if (result < 0)
        return -1;
    if (lane_us)
        lanes_took(p->lanes, lane_us + rest);
    lanes_end(p->lanes, &sums);
    add_audit(p, &sums);
    *ret = (struct backend_sums){.words = far_here(sums.words),
                                 .header = p->header,
                                 .header_to = sums.header_to,
                                 .words_count = sums.words_count,
                                 .header_count = sums.header_count,
                                 .floats = sums.floats};
    return 0;
}

static void program_decide(struct backend *b, struct verdict *ret)
{
    struct backend_program *p = program_of(b);
    lanes_decide(p->lanes, ret);
    if (ret->kind == VERDICT_FITS && p->said.audited >= 0)
        p->fresh = false;
}

static bool program_audited(const struct backend *b, struct audit_found *ret)
{
    const struct backend_program *p = program_seen(b);
    return audit_find(p->sum, p->options.layout->tensors, &p->audit.shares, ret);
}

static bool program_words_to(struct backend *b, struct far *ret)
{
    const uint32_t *to = lanes_words_to(program_of(b)->lanes);
    *ret = far_here(to);
    return to != NULL;
}

/* ---- updates ---- */

/* *ret: the state's sum, in `sum`, where the next lineage wants it; else NULL. */
static int sum_when_watched(struct backend_program *p, uint8_t sum[RM_HASH_BYTES], const uint8_t **ret,
                            struct error *err)
{
    *ret = NULL;
    if (!watch_is_due(step_held(p)))
        return 0;
    pthread_mutex_lock(&p->lock);
    int result = save(p, err);
    if (result == 0)
        watch_sum(image_at(p), (size_t)p->base.image_bytes, sum);
    pthread_mutex_unlock(&p->lock);
    *ret = sum;
    return result;
}

/* The sealed update, by the program; the lock is held. */
static int update(struct backend_program *p, const struct apply *a, struct error *err)
{
    struct program_task_packet task = {.kind = PROGRAM_UPDATE, .step = a->next.step, .loss = a->next.loss};
    if (give_image(p, NULL, err) < 0 || talk_settle(p->talk, NULL, NULL, err) < 0)
        return -1;
    apply_mean(a, area_at(p, 0));
    if (do_task(p, &task, NULL, err) < 0)
        return -1;
    p->image = IMAGE_OLD;
    p->untouched = false;
    apply_done(a);
    return 0;
}

static int carry_out(struct backend_program *p, const struct apply *a, struct error *err)
{
    pthread_mutex_lock(&p->lock);
    int result = update(p, a, err);
    pthread_mutex_unlock(&p->lock);
    return result;
}

static int program_commit(struct backend *b, struct backend_info *ret, struct error *err)
{
    struct backend_program *p = program_of(b);
    struct apply a;
    uint8_t sum[RM_HASH_BYTES];
    const uint8_t *held;
    if (sum_when_watched(p, sum, &held, err) < 0)
        return -1;
    apply_begin_own(&a, p->lanes, held);
    apply_seal(&a);
    if (carry_out(p, &a, err) < 0)
        return -1;
    *ret = (struct backend_info){a.next.step, a.next.loss, a.norm, NAN, NAN}; /* its optimizer is its own */
    return 0;
}

static int program_check(struct backend *b, const struct state_point *wanted, struct error *err)
{
    struct backend_program *p = program_of(b);
    uint8_t sum[RM_HASH_BYTES];
    const uint8_t *held;
    if (sum_when_watched(p, sum, &held, err) < 0)
        return -1;
    return apply_check(p->state, p->pool, held, wanted, err);
}

static int program_finish(struct backend *b, struct error *err)
{
    struct backend_program *p = program_of(b);
    struct apply a;
    uint8_t sum[RM_HASH_BYTES];
    const uint8_t *held;
    if (sum_when_watched(p, sum, &held, err) < 0)
        return -1;
    apply_begin_pending(&a, p->state, p->pool, held);
    return carry_out(p, &a, err);
}

static const struct backend_ops program_ops = {
    .free = program_free,
    .needs = program_needs,
    .fingerprint = program_fingerprint,
    .memory = program_memory,
    .attach = program_attach,
    .first = program_first,
    .digest = program_digest,
    .weights = program_weights,
    .warm_up = program_warm_up,
    .idle = program_idle,
    .begin = program_begin,
    .lane = program_lane,
    .end = program_end,
    .decide = program_decide,
    .audited = program_audited,
    .words_to = program_words_to,
    .commit = program_commit,
    .check = program_check,
    .finish = program_finish,
    .image_sum = program_image_sum,
    .copy_out = program_copy_out,
    .copy_in = program_copy_in,
};

/* ---- beginning ---- */

static int64_t page_up(int64_t bytes)
{
    return (bytes + PAGE - 1) & ~(int64_t)(PAGE - 1);
}

static void place(struct backend_program *p)
{
    struct program_welcome *w = &p->at;
    int64_t at = 0;
    *w = (struct program_welcome){.lanes = (uint32_t)p->options.lanes,
                                  .sequences = (uint32_t)p->options.sequences,
                                  .steps = p->options.steps,
                                  .seed = p->options.seed};
    for (int i = 0; i < PROGRAM_AREAS; i++) {
        w->area_at[i] = at;
        at += page_up(p->options.layout->parameters * (int64_t)sizeof(float));
        w->samples_at[i] = at;
        at += page_up(p->options.sequences * (int64_t)sizeof(int64_t));
    }
    w->image_at = at;
    w->bytes = at + page_up(p->program.image_bytes);
}

/* Its size is sealed: a program that made it smaller would end this process with a signal. */
static int take_memory(struct backend_program *p, struct error *err)
{
    place(p);
    p->fd = memfd_create("ringmaster-program", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (p->fd < 0 || ftruncate(p->fd, (off_t)p->at.bytes) < 0 ||
        fcntl(p->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return err_errno(err, ERR_MACHINE, "the memory shared with the program (%lld MiB)",
                         (long long)(p->at.bytes >> 20));
    void *map = mmap(NULL, (size_t)p->at.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
    if (map == MAP_FAILED)
        return err_errno(err, ERR_MACHINE, "map the memory shared with the program");
    p->map = map;
    return 0;
}

static int meet(struct backend_program *p, struct error *err)
{
    const struct backend_program_options *o = &p->options;
    struct talk_options talk = {
        .fd = o->fd, .patience = o->patience, .stop = o->stop, .at_work = o->patient ? o->pulse : NULL};
    if (talk_open(&p->talk, &talk, o->layout, &p->program, err) < 0 || take_memory(p, err) < 0 ||
        talk_welcome(p->talk, &p->at, p->fd, err) < 0 || pool_open(&p->pool, o->threads, err) < 0)
        return -1;
    if (o->pulse)
        pool_pulse(p->pool, o->pulse);
    p->base.image_bytes = p->program.image_bytes;
    p->cursor = (struct cursor){o->seed, p->program.hello.samples, o->lanes, o->sequences};
    log_info("the program is here", "pid=%u gradients=%d elements=%lld image_mebibytes=%lld",
             p->program.hello.pid, o->layout->tensors, (long long)o->layout->parameters,
             (long long)(p->program.image_bytes >> 20));
    return 0;
}

int backend_program_open(struct backend **ret, const struct backend_program_options *options,
                         struct error *err)
{
    struct backend_program *p = calloc(1, sizeof *p);
    if (!p)
        return err_set(err, ERR_MACHINE, "no memory for who computes");
    p->base.ops = &program_ops;
    p->memory.ops = &image_ops;
    p->options = *options;
    p->fd = p->pending = -1;
    p->untouched = p->fresh = true;
    pthread_mutex_init(&p->lock, NULL);
    if (meet(p, err) < 0) {
        program_free(&p->base);
        return -1;
    }
    *ret = &p->base;
    return 0;
}
