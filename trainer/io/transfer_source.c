/* What may be read of a state, and when: opens it to those who pull it or listen, closes it before it
 * changes, and serves who asks for a slice or for an update. */
#include <stdlib.h>
#include <string.h>

#include "common/os/clock.h"
#include "common/os/fault.h"
#include "trainer/io/crc32c.h"
#include "trainer/io/transfer_parts.h"

/* Who reads, all the time and several at once, never keeps the owner from going on. */
static void init_gate(pthread_rwlock_t *gate)
{
    pthread_rwlockattr_t kind;
    pthread_rwlockattr_init(&kind);
    pthread_rwlockattr_setkind_np(&kind, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(gate, &kind);
    pthread_rwlockattr_destroy(&kind);
}

int transfer_source_open(struct transfer_source **ret, struct state *state, int tensors, struct error *err)
{
    struct transfer_source *source = calloc(1, sizeof *source);
    if (!source)
        return err_set(err, ERR_MACHINE, "no memory to serve transfers");
    source->state = state;
    source->tensors = tensors;
    if (abort_flag_init(&source->given, err) < 0) {
        free(source);
        return -1;
    }
    init_gate(&source->gate);
    transfer_keep_init(source);
    pthread_mutex_init(&source->pull.lock, NULL);
    pull_pace_begin(&source->pull.pace);
    *ret = source;
    return 0;
}

void transfer_source_free(struct transfer_source *source)
{
    if (!source)
        return;
    transfer_keep_clear(source);
    pthread_mutex_destroy(&source->pull.lock);
    pthread_rwlock_destroy(&source->gate);
    abort_flag_clear(&source->given);
    free(source);
}

/* Of a state that was not made here nothing is known of what led to it. */
static void note_loss(struct losses *losses, const struct state_point *point)
{
    if (point->loss_known)
        losses_add(losses, point->step, point->loss);
    else
        losses->count = 0;
}

static void pull_stands(struct transfer_source *source)
{
    pthread_mutex_lock(&source->pull.lock);
    if (source->open)
        pull_pace_stands(&source->pull.pace, source->point.step, clock_now());
    pthread_mutex_unlock(&source->pull.lock);
}

static void pull_moves(struct transfer_source *source)
{
    pthread_mutex_lock(&source->pull.lock);
    pull_pace_moves(&source->pull.pace);
    pthread_mutex_unlock(&source->pull.lock);
}

void transfer_ring_begins(struct transfer_source *source)
{
    pthread_mutex_lock(&source->pull.lock);
    pull_pace_begin(&source->pull.pace);
    pthread_mutex_unlock(&source->pull.lock);
}

/* Only what is near: who has a device or a program computes with it meanwhile. */
static void tell_live(struct transfer_source *source)
{
    struct state_arrays *a = &source->arrays;
    bool near = source->open && memory_near(a->in, a->array[0].at);
    source->live.open = near;
    source->live.kept = near && source->kept;
    source->live.exact = source->exact;
    source->live.point = source->point;
    source->live.arrays = *a;
    source->live.update = source->update;
    if (source->open)
        note_loss(&source->live.losses, &source->point);
    transfer_keep_want(source);
    transfer_ring_ears(source);
}

void transfer_allow(struct transfer_source *source, bool exact)
{
    pthread_rwlock_wrlock(&source->gate);
    source->epoch++;
    source->open = state_holds(source->state, &source->point);
    source->arrays = state_arrays(source->state);
    source->kept = source->open && state_kept(source->state, &source->update);
    source->exact = exact;
    pull_stands(source);
    tell_live(source);
    pthread_rwlock_unlock(&source->gate);
}

static void forbid(struct transfer_source *source)
{
    source->epoch++;
    source->share_epoch++;
    source->open = source->kept = source->gives = false;
    pull_moves(source);
}

void transfer_forbid(struct transfer_source *source)
{
    pthread_rwlock_wrlock(&source->gate);
    forbid(source);
    source->live.open = source->live.kept = false;
    pthread_rwlock_unlock(&source->gate);
}

void transfer_forbid_others(struct transfer_source *source)
{
    pthread_rwlock_wrlock(&source->gate);
    forbid(source);
    pthread_rwlock_unlock(&source->gate);
}

void transfer_forget_update(struct transfer_source *source)
{
    transfer_keep_wait(source);
    pthread_rwlock_wrlock(&source->gate);
    source->live.kept = false;
    pthread_rwlock_unlock(&source->gate);
}

void transfer_evaluated(struct transfer_source *source, int64_t step, double held_out)
{
    pthread_rwlock_wrlock(&source->gate);
    losses_evaluate(&source->live.losses, step, held_out);
    pthread_rwlock_unlock(&source->gate);
}

/* The update of a state stands while the lanes of the next step are computed. Under the gate. */
static bool has_live_update(const struct transfer_source *source, int64_t step)
{
    return source->live.open && source->live.kept && source->live.point.step == step &&
           source->live.update.step == step;
}

static bool is_current(const struct service *s)
{
    return s->live >= 0 ? has_live_update(s->source, s->live) : s->source->epoch == s->epoch;
}

/* Copies under the gate and sends outside it. -1 also where the state has moved on meanwhile, or its memory
 * is lost. */
static int send_chunk(const struct service *s, struct memory *in, struct far from, size_t length)
{
    pthread_rwlock_rdlock(&s->source->gate);
    bool current = is_current(s) && memory_read(in, s->chunk + 4, from, length, NULL) == 0;
    pthread_rwlock_unlock(&s->source->gate);
    if (!current)
        return -1;
    uint32_t crc = chunk_crc32c(s->chunk + 4, length);
    memcpy(s->chunk, &crc, 4);
    FAULT("transfer-chunk");
    return service_send(s, s->chunk, length + 4);
}

static int send_chunks(const struct service *s, struct memory *in, struct far from, int64_t bytes)
{
    while (bytes > 0) {
        size_t length = bytes < TRANSFER_CHUNK ? (size_t)bytes : TRANSFER_CHUNK;
        if (send_chunk(s, in, from, length) < 0)
            return -1;
        from = far_add(from, (int64_t)length);
        bytes -= (int64_t)length;
    }
    return 0;
}

static int send_arrays(const struct service *s, const struct state_arrays *a,
                       const struct transfer_request *r)
{
    for (int i = 0; i < a->arrays; i++) {
        const struct state_array *array = &a->array[i];
        struct far from = state_range_at(array, r->first, r->count);
        if (send_chunks(s, a->in, from, r->count * (int64_t)state_type_bytes(array->type)) < 0)
            return -1;
    }
    return 0;
}

static int send_update(const struct service *s, const struct state_update *u,
                       const struct transfer_request *r)
{
    if (send_chunks(s, u->in, far_add(u->words, r->first * 4), r->count * 4) < 0)
        return -1;
    return r->first ? 0 : send_chunks(s, memory_here(), far_here(u->header), u->header_count * 4);
}

/* What of the source answers the request; taken under the gate. */
struct offer {
    struct transfer_reply reply;
    const int32_t *k;
    struct state_arrays arrays;
    struct state_update update;
};

static bool range_inside(const struct transfer_request *r, int64_t total)
{
    return r->first >= 0 && r->count >= 0 && r->first <= total && r->count <= total - r->first;
}

static bool is_point(const struct state_point *point, const struct transfer_request *r)
{
    return point->step == r->step && !memcmp(point->lineage, r->lineage, RM_HASH_BYTES);
}

/* Also of one that makes the next step, or begins to meanwhile: who follows it asks for what led to the state
 * that it makes that from. */
static bool offer_live(struct service *s, const struct transfer_request *r, struct offer *o)
{
    struct transfer_source *source = s->source;
    const struct state_update *u = &source->live.update;
    if (r->kind != TRANSFER_UPDATE || !has_live_update(source, r->step) ||
        !is_point(&source->live.point, r) || !range_inside(r, u->words_count))
        return false;
    o->update = *u;
    o->reply = (struct transfer_reply){TRANSFER_OK,     source->live.exact, r->step,
                                       u->header_count, source->tensors,    0};
    s->live = r->step;
    return true;
}

static bool offer_resting(const struct transfer_source *source, const struct transfer_request *r,
                          struct offer *o)
{
    bool update = r->kind == TRANSFER_UPDATE;
    int64_t total = update ? source->update.words_count : source->arrays.count;
    bool same = source->open && is_point(&source->point, r) && range_inside(r, total);
    bool has = update ? source->kept && source->update.step == r->step : r->kind == TRANSFER_STATE;
    if (!same || !has)
        return false;
    o->update = source->update;
    o->reply = (struct transfer_reply){
        TRANSFER_OK, source->exact, r->step, update ? source->update.header_count : 0, source->tensors, 0};
    return true;
}

static void make_offer(struct service *s, const struct transfer_request *r, int32_t *k, struct offer *o)
{
    struct transfer_source *source = s->source;
    *o = (struct offer){.reply.status = TRANSFER_NOT_HELD};
    pthread_rwlock_rdlock(&source->gate);
    o->arrays = source->arrays;
    if (offer_live(s, r, o) || offer_resting(source, r, o))
        memcpy(k, r->kind == TRANSFER_UPDATE ? o->update.k : source->point.k, (size_t)source->tensors * 4);
    s->epoch = source->epoch;
    pthread_rwlock_unlock(&source->gate);
}

static void answer_request(struct service *s, const struct transfer_request *r)
{
    int32_t k[RM_TENSORS_MAX];
    struct offer o;
    make_offer(s, r, k, &o);
    if (service_send(s, &o.reply, sizeof o.reply) < 0 || o.reply.status != TRANSFER_OK ||
        service_send_checked(s, k, (size_t)o.reply.tensors * 4) < 0)
        return;
    if (r->kind == TRANSFER_STATE)
        send_arrays(s, &o.arrays, r);
    else
        send_update(s, &o.update, r);
}

void transfer_serve(void *ctx, int fd, const struct handshake_claim *claim, const struct abort_flag *closing)
{
    struct service s = {
        .source = ctx, .fd = fd, .closing = closing, .live = -1, .chunk = malloc(TRANSFER_CHUNK + 4)};
    struct patience patience = {closing, clock_now() + SERVE_PATIENCE};
    struct transfer_request r;
    bool asked =
        s.chunk && socket_receive(fd, &r, sizeof r, &patience, NULL) == 0 && r.magic == TRANSFER_MAGIC;
    if (asked && r.kind == TRANSFER_SHARE)
        service_give(&s, &r, claim->generation);
    else if (asked && service_is_told(&r))
        service_tell(&s, &r);
    else if (asked)
        answer_request(&s, &r);
    free(s.chunk);
}
