#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "common/os/fault.h"
#include "trainer/io/crc32c.h"
#include "trainer/io/transfer_parts.h"

void transfer_share_give(struct transfer_source *source, const struct transfer_share *share)
{
    pthread_rwlock_wrlock(&source->gate);
    source->share_epoch++;
    source->share = *share;
    source->gives = true;
    abort_flag_set(&source->given);
    pthread_rwlock_unlock(&source->gate);
}

void transfer_share_move(struct transfer_source *source, const struct state_arrays *arrays)
{
    pthread_rwlock_wrlock(&source->gate);
    source->share.arrays = *arrays;
    pthread_rwlock_unlock(&source->gate);
}

enum answer { ANSWER_YES, ANSWER_LATER, ANSWER_NO };

static enum answer judge_request(const struct transfer_source *source, const struct transfer_request *r,
                                 struct ring_generation generation)
{
    const struct transfer_share *share = &source->share;
    int newer = ring_generation_compare(share->generation, generation);
    if (newer != 0)
        return newer < 0 ? ANSWER_LATER : ANSWER_NO;
    bool same = source->gives && share->point.step == r->step &&
                !memcmp(share->point.lineage, r->lineage, RM_HASH_BYTES);
    return same ? ANSWER_YES : ANSWER_NO;
}

/* Takes what is given under the gate. Whoever has to wait takes the sign down first: it goes up again, under
 * the same gate, with the next share. */
static enum answer look_at_share(struct service *s, const struct transfer_request *r,
                                 struct ring_generation generation, struct transfer_share *ret)
{
    struct transfer_source *source = s->source;
    pthread_rwlock_wrlock(&source->gate);
    enum answer answer = judge_request(source, r, generation);
    if (answer == ANSWER_LATER && abort_flag_is_set(&source->given))
        abort_flag_reset(&source->given);
    *ret = source->share;
    s->epoch = source->share_epoch;
    pthread_rwlock_unlock(&source->gate);
    return answer;
}

/* false: the receiver has gone, or this source ends. */
static bool wait_for_share(const struct service *s)
{
    struct pollfd fds[3] = {{.fd = s->source->given.event_fd, .events = POLLIN},
                            {.fd = s->fd, .events = POLLRDHUP},
                            {.fd = s->closing->event_fd, .events = POLLIN}};
    poll(fds, 3, -1);
    return !fds[1].revents && !fds[2].revents;
}

/* Copies under the gate, from where the share lies at that moment, and sends outside it. */
static int give_chunk(const struct service *s, int array, int64_t first, int64_t count)
{
    struct transfer_source *source = s->source;
    size_t length = (size_t)count * 4;
    pthread_rwlock_rdlock(&source->gate);
    bool current = source->gives && source->share_epoch == s->epoch;
    const struct state_arrays *a = &source->share.arrays;
    if (current) {
        struct far from = state_range_at(&a->array[array], first, count);
        current = memory_read(a->in, s->chunk + 4, from, length, NULL) == 0;
    }
    pthread_rwlock_unlock(&source->gate);
    if (!current)
        return -1;
    uint32_t crc = chunk_crc32c(s->chunk + 4, length);
    memcpy(s->chunk, &crc, 4);
    FAULT("share-chunk");
    return service_send(s, s->chunk, length + 4);
}

static int give_range(const struct service *s, int array, struct model_range range)
{
    for (int64_t left = range.count; left > 0;) {
        int64_t count = left < TRANSFER_CHUNK / 4 ? left : TRANSFER_CHUNK / 4;
        if (give_chunk(s, array, range.first + range.count - left, count) < 0)
            return -1;
        left -= count;
    }
    return 0;
}

static void give_share(struct service *s, const struct transfer_share *share)
{
    int tensors = s->source->tensors;
    struct transfer_reply reply = {TRANSFER_OK, share->exact, share->point.step, 0, tensors, 0};
    if (service_send(s, &reply, sizeof reply) < 0 ||
        service_send_checked(s, share->point.k, (size_t)tensors * 4) < 0 ||
        service_send_checked(s, share->range, (size_t)share->arrays.arrays * sizeof *share->range) < 0)
        return;
    for (int i = 0; i < share->arrays.arrays; i++)
        if (give_range(s, i, share->range[i]) < 0)
            return;
}

void service_give(struct service *s, const struct transfer_request *request,
                  struct ring_generation generation)
{
    struct transfer_reply refusal = {.status = TRANSFER_NOT_HELD};
    struct transfer_share share;
    enum answer answer;
    while ((answer = look_at_share(s, request, generation, &share)) == ANSWER_LATER)
        if (!wait_for_share(s))
            return;
    if (answer == ANSWER_YES)
        give_share(s, &share);
    else
        service_send(s, &refusal, sizeof refusal);
}
