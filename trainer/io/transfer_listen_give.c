/* Answers one who listens, from a state that stands while its owner makes the next step. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/os/clock.h"
#include "trainer/io/crc32c.h"
#include "trainer/io/transfer_parts.h"

enum answer { ANSWER_YES, ANSWER_LATER, ANSWER_RESTS, ANSWER_NO };

/* What is sent at once: copied under the gate. */
struct told {
    struct transfer_reply reply;
    uint8_t *bytes;
    size_t length;
    rm_time rests; /* for how long nothing may be given yet */
    rm_time begun; /* of a block of the state: when its turn, which it was given, began */
    uint64_t turn; /* 0: none */
};

static bool range_inside(const struct transfer_request *r, int64_t total)
{
    return r->first >= 0 && r->count >= 0 && r->count <= TRANSFER_BLOCK && r->first <= total &&
           r->count <= total - r->first;
}

static enum answer judge_request(struct transfer_source *source, const struct transfer_request *r)
{
    const struct state_point *point = &source->live.point;
    if (!source->live.open || (r->step >= 0 && point->step < r->step))
        return ANSWER_LATER;
    if (r->kind == TRANSFER_HEAD && r->step == point->step && transfer_keep_comes(source, r->step))
        return ANSWER_LATER;
    if (r->kind == TRANSFER_HEAD)
        return r->step < 0 || point->step == r->step ? ANSWER_YES : ANSWER_NO;
    bool same = point->step == r->step && !memcmp(point->lineage, r->lineage, RM_HASH_BYTES);
    if (r->kind == TRANSFER_BLOCK_STATE)
        return same && range_inside(r, source->live.arrays.count) ? ANSWER_YES : ANSWER_NO;
    bool words = same && r->kind == TRANSFER_BLOCK_WORDS;
    return words && range_inside(r, INT64_MAX) ? ANSWER_YES : ANSWER_NO;
}

static void append(struct told *t, const void *bytes, size_t length)
{
    memcpy(t->bytes + t->length, bytes, length);
    t->length += length;
}

static bool room_for(struct told *t, size_t length)
{
    t->bytes = malloc(length ? length : 1);
    return t->bytes != NULL;
}

static bool copy_head(struct transfer_source *source, struct told *t)
{
    const struct losses *losses = &source->live.losses;
    size_t k = (size_t)source->tensors * 4, header = (size_t)source->live.update.header_count * 4;
    size_t known = (size_t)losses->count * sizeof *losses->loss;
    if (!room_for(t, 2 * k + RM_HASH_BYTES + 2 * known + header))
        return false;
    append(t, source->live.point.k, k);
    append(t, source->live.point.lineage, RM_HASH_BYTES);
    append(t, losses->loss, known);
    append(t, losses->held_out, known);
    t->reply.losses = losses->count;
    int32_t *of_update = (int32_t *)(void *)(t->bytes + t->length);
    uint32_t *words = (uint32_t *)(void *)(t->bytes + t->length + k);
    if (transfer_keep_head(source, source->live.point.step, (int64_t)(header / 4), of_update, words)) {
        t->reply.header_count = (int64_t)(header / 4);
        t->length += k + header;
    }
    return true;
}

static bool copy_range(struct told *t, struct memory *in, struct far from, size_t length)
{
    if (memory_read(in, t->bytes + t->length, from, length, NULL) < 0)
        return false;
    t->length += length;
    return true;
}

static bool copy_state(const struct transfer_source *source, const struct transfer_request *r, struct told *t)
{
    const struct state_arrays *a = &source->live.arrays;
    if (!room_for(t, (size_t)r->count * 4 * (size_t)a->arrays))
        return false;
    for (int i = 0; i < a->arrays; i++)
        if (!copy_range(t, a->in, state_range_at(&a->array[i], r->first, r->count), (size_t)r->count * 4))
            return false;
    return true;
}

static bool copy_words(struct transfer_source *source, const struct transfer_request *r, struct told *t)
{
    t->length = (size_t)r->count * 4;
    return room_for(t, t->length) && transfer_keep_words(source, r->step, r->first, r->count, t->bytes);
}

static bool copy_answer(struct transfer_source *source, const struct transfer_request *r, struct told *t)
{
    if (r->kind == TRANSFER_HEAD)
        return copy_head(source, t);
    return r->kind == TRANSFER_BLOCK_STATE ? copy_state(source, r, t) : copy_words(source, r, t);
}

/* The step that is being made goes first. */
static bool is_its_turn(struct transfer_source *source, const struct transfer_request *r, struct told *t)
{
    if (r->kind != TRANSFER_BLOCK_STATE)
        return true;
    pthread_mutex_lock(&source->pull.lock);
    t->begun = clock_now();
    t->rests = pull_pace_take(&source->pull.pace, t->begun, &t->turn);
    pthread_mutex_unlock(&source->pull.lock);
    return !t->rests;
}

static void end_turn(struct transfer_source *source, const struct told *t)
{
    if (!t->turn)
        return;
    pthread_mutex_lock(&source->pull.lock);
    pull_pace_gave(&source->pull.pace, t->turn, t->begun, clock_now());
    pthread_mutex_unlock(&source->pull.lock);
}

/* Takes what is asked for under the gate. */
static enum answer look_at_live(const struct service *s, const struct transfer_request *r, struct told *t)
{
    struct transfer_source *source = s->source;
    pthread_rwlock_rdlock(&source->gate);
    enum answer answer = judge_request(source, r);
    t->rests = 0;
    t->reply = (struct transfer_reply){.status = TRANSFER_NOT_HELD,
                                       .exact = source->live.exact,
                                       .step = source->live.open ? source->live.point.step : -1,
                                       .tensors = source->tensors};
    if (answer == ANSWER_YES && !is_its_turn(source, r, t)) {
        answer = ANSWER_RESTS;
        t->reply.step = -1;
    }
    if (answer == ANSWER_YES && copy_answer(source, r, t))
        t->reply.status = TRANSFER_OK;
    pthread_rwlock_unlock(&source->gate);
    return answer;
}

enum { LOOK_MS = 10 }; /* a turn may end at any moment, and the steps with it */

/* Until the bell rings, or who rests looks again. False: the receiver has gone, or this source ends. */
static bool wait_for_step(const struct service *s, struct ear *ear, rm_time rests, bool *ret_asked)
{
    int rest = rests < LOOK_MS * RM_MS ? (int)(rests / RM_MS) + 1 : LOOK_MS;
    struct pollfd fds[3] = {{.fd = ear->bell.event_fd, .events = POLLIN},
                            {.fd = s->fd, .events = POLLIN | POLLRDHUP},
                            {.fd = s->closing->event_fd, .events = POLLIN}};
    poll(fds, 3, rests ? rest : -1);
    *ret_asked = fds[1].revents == POLLIN;
    return !(fds[1].revents & ~POLLIN) && !fds[2].revents;
}

static int send_told(const struct service *s, const struct told *t)
{
    if (service_send(s, &t->reply, sizeof t->reply) < 0)
        return -1;
    return t->reply.status == TRANSFER_OK ? service_send_checked(s, t->bytes, t->length) : 0;
}

/* The bell is taken down before the look: what comes after that rings it again. */
static int tell_step(const struct service *s, struct ear *ear, const struct transfer_request *r)
{
    bool asked = false;
    struct told t = {0};
    for (;;) {
        abort_flag_reset(&ear->bell);
        enum answer answer = look_at_live(s, r, &t);
        if ((answer != ANSWER_LATER && answer != ANSWER_RESTS) || asked)
            break;
        if (!wait_for_step(s, ear, t.rests, &asked))
            return -1;
    }
    int result = send_told(s, &t);
    end_turn(s->source, &t);
    free(t.bytes);
    return result;
}

static void put_ear(struct transfer_source *source, struct ear *ear)
{
    pthread_rwlock_wrlock(&source->gate);
    ear->next = source->live.ears;
    source->live.ears = ear;
    transfer_keep_want(source);
    pthread_rwlock_unlock(&source->gate);
}

static void take_ear(struct transfer_source *source, const struct ear *ear)
{
    pthread_rwlock_wrlock(&source->gate);
    struct ear **at = &source->live.ears;
    while (*at != ear)
        at = &(*at)->next;
    *at = ear->next;
    bool last = !source->live.ears;
    pthread_rwlock_unlock(&source->gate);
    if (last)
        transfer_keep_drop(source);
}

bool service_is_told(const struct transfer_request *r)
{
    return r->kind >= TRANSFER_HEAD && r->kind <= TRANSFER_BLOCK_WORDS;
}

void service_tell(struct service *s, struct transfer_request *r)
{
    struct patience patience = {s->closing, RM_NEVER};
    struct ear ear;
    if (abort_flag_init(&ear.bell, NULL) < 0)
        return;
    socket_watch(s->fd);
    put_ear(s->source, &ear);
    while (r->magic == TRANSFER_MAGIC && service_is_told(r) && tell_step(s, &ear, r) == 0)
        if (socket_receive(s->fd, r, sizeof *r, &patience, NULL) < 0)
            break;
    take_ear(s->source, &ear);
    abort_flag_clear(&ear.bell);
}
