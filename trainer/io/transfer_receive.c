/* Pulls a state, or the kept update, from those who hold it: several sources at once, each for a range,
 * piece by piece. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/model/layout.h"
#include "common/os/clock.h"
#include "common/os/fault.h"
#include "trainer/io/crc32c.h"
#include "trainer/io/transfer_parts.h"

#define CALL_PATIENCE  (5 * RM_S)  /* to reach a source and be answered */
#define CHUNK_PATIENCE (30 * RM_S) /* where the caller names none */

/* The part of one source. */
struct pull {
    struct fetch *fetch;
    int index;
    int fd; /* -1 until connected; stays open until all pulls have ended */
    pthread_t thread;
    bool threaded;
    struct model_range range;
    bool exact;
    int32_t k[RM_TENSORS_MAX];
    int rc;
    struct error err;
};

/* One transfer with all its sources. */
struct fetch {
    const struct transfer_want *want;
    enum transfer_kind kind;
    int tensors;
    int64_t header_count;
    struct state_arrays arrays; /* STATE: the state's; UPDATE: its words */
    uint32_t *header;           /* UPDATE */
    pthread_mutex_t lock;       /* over failed and the descriptors of the others */
    int failed;                 /* index of the first source that failed, -1 */
    struct pull *pull;
};

static int receive_chunk(const struct transfer_want *want, int fd, uint8_t *at, size_t length,
                         struct error *err)
{
    rm_time silence = want->silence > 0 ? want->silence : CHUNK_PATIENCE;
    struct patience patience = {want->abort, clock_now() + silence};
    uint32_t crc;
    if (socket_receive(fd, &crc, 4, &patience, err) < 0 || socket_receive(fd, at, length, &patience, err) < 0)
        return -1;
    if (crc != chunk_crc32c(at, length))
        return err_set(err, ERR_PROTOCOL, "what arrived is not what was sent (checksum)");
    FAULT_FLIP("chunk-received", at, length);
    if (want->received)
        atomic_fetch_add_explicit(want->received, (long long)length, memory_order_relaxed);
    return 0;
}

/* Straight to where the bytes belong if that is near, else by way of `chunk`. */
static int receive_chunks(const struct transfer_want *want, int fd, struct memory *in, struct far to,
                          int64_t bytes, uint8_t *chunk, struct error *err)
{
    while (bytes > 0) {
        size_t length = bytes < TRANSFER_CHUNK ? (size_t)bytes : TRANSFER_CHUNK;
        uint8_t *at = chunk ? chunk : memory_near(in, to);
        if (receive_chunk(want, fd, at, length, err) < 0 ||
            (chunk && memory_write(in, to, chunk, length, err) < 0))
            return -1;
        to = far_add(to, (int64_t)length);
        bytes -= (int64_t)length;
        FAULT("receive-chunk");
    }
    return 0;
}

int transfer_chunks(const struct transfer_want *want, int fd, struct memory *in, struct far to, int64_t bytes,
                    struct error *err)
{
    bool is_near = !bytes || memory_near(in, to);
    uint8_t *chunk = is_near ? NULL : malloc(TRANSFER_CHUNK);
    if (!is_near && !chunk)
        return err_set(err, ERR_MACHINE, "no memory to receive in");
    int result = receive_chunks(want, fd, in, to, bytes, chunk, err);
    free(chunk);
    return result;
}

int transfer_chunks_here(const struct transfer_want *want, int fd, void *to, int64_t count, struct error *err)
{
    return transfer_chunks(want, fd, memory_here(), far_here(to), count * 4, err);
}

static int receive_array(struct pull *p, const struct state_array *a, struct error *err)
{
    struct far to = state_range_at(a, p->range.first, p->range.count);
    int64_t bytes = p->range.count * (int64_t)state_type_bytes(a->type);
    int rc = transfer_chunks(p->fetch->want, p->fd, p->fetch->arrays.in, to, bytes, err);
    FAULT_FLIP("array-received", memory_near(p->fetch->arrays.in, to),
               memory_near(p->fetch->arrays.in, to) ? (size_t)bytes : 0);
    return rc;
}

static int call_source(struct pull *p, const struct patience *patience, struct error *err)
{
    const struct transfer_want *want = p->fetch->want;
    const struct transfer_peer *peer = &want->source[p->index];
    struct handshake_claim claim = {HANDSHAKE_TRANSFER, want->generation, want->self, peer->end, 0};
    int fd;
    if (socket_connect(&fd, peer->address, patience, err) < 0)
        return -1;
    pthread_mutex_lock(&p->fetch->lock);
    p->fd = fd;
    bool late = p->fetch->failed >= 0;
    pthread_mutex_unlock(&p->fetch->lock);
    if (late)
        return err_set(err, ERR_PEER, "another source failed");
    return handshake_call(fd, &want->secret, &claim, patience, err);
}

/* Who has it is there, and answers: it is no broken connection. */
static int not_as_agreed(struct error *err, enum error_code code, const char *format, long long step)
{
    err_set(err, code, format, step);
    return err_class(err, CLASS_SOURCE);
}

static int ask_source(struct pull *p, struct transfer_reply *ret, struct error *err)
{
    const struct transfer_want *want = p->fetch->want;
    struct patience patience = {want->abort, clock_now() + CALL_PATIENCE};
    struct transfer_request request = {.magic = TRANSFER_MAGIC,
                                       .kind = p->fetch->kind,
                                       .step = want->step,
                                       .first = p->range.first,
                                       .count = p->range.count};
    memcpy(request.lineage, want->lineage, RM_HASH_BYTES);
    if (call_source(p, &patience, err) < 0 ||
        socket_send(p->fd, &request, sizeof request, &patience, err) < 0 ||
        socket_receive(p->fd, ret, sizeof *ret, &patience, err) < 0)
        return -1;
    if (ret->status != TRANSFER_OK)
        return not_as_agreed(err, ERR_PEER, "it does not hold step %lld as asked for", (long long)want->step);
    if (ret->tensors != p->fetch->tensors || ret->step != want->step ||
        ret->header_count != p->fetch->header_count)
        return not_as_agreed(err, ERR_PROTOCOL, "the model that it holds step %lld of is not ours",
                             (long long)want->step);
    return 0;
}

static int pull_all(struct pull *p, struct error *err)
{
    struct fetch *f = p->fetch;
    struct transfer_reply reply;
    if (ask_source(p, &reply, err) < 0 || transfer_chunks_here(f->want, p->fd, p->k, f->tensors, err) < 0)
        return -1;
    p->exact = reply.exact != 0;
    for (int i = 0; i < f->arrays.arrays; i++)
        if (receive_array(p, &f->arrays.array[i], err) < 0)
            return -1;
    if (f->kind == TRANSFER_UPDATE && p->range.first == 0)
        return transfer_chunks_here(f->want, p->fd, f->header, f->header_count, err);
    return 0;
}

/* The first failure ends the other pulls too. */
static void fail_all(struct pull *p)
{
    struct fetch *f = p->fetch;
    pthread_mutex_lock(&f->lock);
    if (f->failed < 0)
        f->failed = p->index;
    for (int i = 0; i < f->want->sources; i++)
        if (f->pull[i].fd >= 0)
            shutdown(f->pull[i].fd, SHUT_RDWR);
    pthread_mutex_unlock(&f->lock);
}

static void *pull_main(void *arg)
{
    struct pull *p = arg;
    p->rc = pull_all(p, &p->err);
    if (p->rc < 0)
        fail_all(p);
    return NULL;
}

static bool is_in_range(const int32_t *k, int tensors)
{
    for (int t = 0; t < tensors; t++)
        if (k[t] < -RM_EXPONENT_MOST || k[t] > RM_EXPONENT_MOST)
            return false;
    return true;
}

static bool have_the_same(const struct fetch *f, int a, int b)
{
    return !memcmp(f->pull[a].k, f->pull[b].k, (size_t)f->tensors * 4);
}

/* The first that has other exponents than more than half of all; -1: there is none, or nobody can tell. */
static int odd_source(const struct fetch *f)
{
    int n = f->want->sources, odd = -1;
    bool most = false;
    for (int i = 0; i < n; i++) {
        int same = 0;
        for (int j = 0; j < n; j++)
            same += have_the_same(f, i, j);
        most = most || 2 * same > n;
        odd = odd < 0 && 2 * same < n ? i : odd;
    }
    return most ? odd : -1;
}

/* Whoever can be told to have given something else is named; of two that differ either may have. */
static int same_exponents(const struct fetch *f, int *ret_source, struct error *err)
{
    for (int i = 0; i < f->want->sources; i++) {
        if (is_in_range(f->pull[i].k, f->tensors))
            continue;
        *ret_source = i;
        err_set(err, ERR_PROTOCOL, "worker %d names an exponent beyond %d", f->want->source[i].end.worker,
                RM_EXPONENT_MOST);
        return err_class(err, CLASS_SOURCE);
    }
    int odd = odd_source(f);
    if (odd >= 0) {
        *ret_source = odd;
        err_set(err, ERR_PROTOCOL, "worker %d gives other exponents than most who hold that step",
                f->want->source[odd].end.worker);
        return err_class(err, CLASS_SOURCE);
    }
    for (int i = 1; i < f->want->sources; i++)
        if (!have_the_same(f, 0, i))
            return err_set(err, ERR_PROTOCOL, "two sources disagree about the exponents");
    return 0;
}

static void start_pulls(struct fetch *f, int64_t total)
{
    for (int i = 0; i < f->want->sources; i++) {
        struct pull *p = &f->pull[i];
        *p = (struct pull){.fetch = f, .index = i, .fd = -1, .range = model_part(total, i, f->want->sources)};
    }
    for (int i = 1; i < f->want->sources; i++) {
        struct pull *p = &f->pull[i];
        p->threaded = !pthread_create(&p->thread, NULL, pull_main, p);
    }
    /* Source 0 here, and those for which there was no thread. */
    for (int i = 0; i < f->want->sources; i++)
        if (!f->pull[i].threaded)
            pull_main(&f->pull[i]);
}

/* Fills arrays, header and k (tensors) from all sources. */
static int fetch_run(struct fetch *f, int64_t total, int32_t *k, bool *ret_exact, int *ret_source,
                     struct error *err)
{
    int rc = 0;
    *ret_source = -1;
    if (f->want->sources < 1)
        return err_set(err, ERR_PROTOCOL, "nobody to receive from");
    f->pull = calloc((size_t)f->want->sources, sizeof *f->pull);
    if (!f->pull)
        return err_set(err, ERR_MACHINE, "no memory for a transfer");
    f->failed = -1;
    pthread_mutex_init(&f->lock, NULL);
    start_pulls(f, total);
    for (int i = 0; i < f->want->sources; i++) {
        if (f->pull[i].threaded)
            pthread_join(f->pull[i].thread, NULL);
        if (f->pull[i].fd >= 0)
            close(f->pull[i].fd);
    }
    if (f->failed >= 0) {
        struct error *first = &f->pull[f->failed].err;
        *ret_source = first->code == ERR_ABORTED ? -1 : f->failed;
        rc = err_from(err, first, "receive the state from worker %d: %s",
                      f->want->source[f->failed].end.worker, first->text);
    } else if ((rc = same_exponents(f, ret_source, err)) == 0) {
        memcpy(k, f->pull[0].k, (size_t)f->tensors * 4);
        *ret_exact = f->pull[0].exact;
    }
    pthread_mutex_destroy(&f->lock);
    free(f->pull);
    return rc;
}

int transfer_receive_state(struct state *state, const struct transfer_want *want, bool *ret_exact,
                           int *ret_source, struct error *err)
{
    state_receive_begin(state);
    struct state_point point = {.step = want->step};
    struct fetch f = {
        .want = want, .kind = TRANSFER_STATE, .tensors = want->tensors, .arrays = state_arrays(state)};
    if (fetch_run(&f, f.arrays.count, point.k, ret_exact, ret_source, err) < 0)
        return -1;
    memcpy(point.lineage, want->lineage, RM_HASH_BYTES);
    FAULT("received");
    return state_receive_end(state, &point, err);
}

/* 4 bytes each, as the arrays of a state. */
static struct state_arrays words_of(const struct state_update *u)
{
    return (struct state_arrays){.in = u->in,
                                 .count = u->words_count,
                                 .arrays = 1,
                                 .array = {{"words", STATE_F32, 0, u->words_count, u->words}}};
}

int transfer_receive_update(struct state *state, const struct transfer_want *want, bool *ret_exact,
                            int *ret_source, struct error *err)
{
    struct state_update update;
    state_update_receive_begin(state, &update);
    struct fetch f = {.want = want,
                      .kind = TRANSFER_UPDATE,
                      .tensors = want->tensors,
                      .header_count = update.header_count,
                      .arrays = words_of(&update),
                      .header = update.header};
    if (fetch_run(&f, update.words_count, update.k, ret_exact, ret_source, err) < 0)
        return -1;
    FAULT("update-received");
    return 0;
}
