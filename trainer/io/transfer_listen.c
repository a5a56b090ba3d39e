/* Pulls a state from those who train on, block by block from all of them at once, and each update as they
 * commit it. */
#include "trainer/io/transfer_listen.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/os/clock.h"
#include "common/os/fault.h"
#include "common/os/log.h"
#include "trainer/io/crc32c.h"
#include "trainer/io/transfer_parts.h"

#define CALL_PATIENCE  (5 * RM_S)
#define BLOCK_PATIENCE (30 * RM_S) /* where the caller names none */

enum { FAILURES_MAX = 3 }; /* of one source, in a row */
enum { ARRAY_BYTES = TRANSFER_BLOCK * 4 };

/* One of those who hold it. */
struct voice {
    struct hearing *hearing;
    int index;
    int fd;       /* -1: not called */
    int owes;     /* answers to heads that were asked for */
    int failures; /* in a row */
    bool strange; /* it holds another history, or another model */
    bool ahead;   /* it has gone on from the step of this sweep */
    bool busy;    /* in a sweep, with what is no block */
    pthread_t thread;
    bool threaded;
    uint8_t *bytes; // (STATE_ARRAYS_MAX, TRANSFER_BLOCK * 4)
};

enum block { BLOCK_MISSING, BLOCK_ASKED, BLOCK_HERE };

struct hearing {
    struct transfer_listen *listen;
    struct state *state;
    struct state_point point; /* what the memory counts as */
    struct state_point next;  /* of the newest head, */
    struct losses known;      /* and what it says of the steps up to it */
    bool next_kept;           /* its update can be had */
    bool exact;
    struct state_update update; /* where that goes */
    int voices;
    struct voice voice[RM_WORKERS_MAX];
    struct {
        enum transfer_kind kind;
        const struct state_point *of;
        int64_t total; /* elements */
        int blocks;
        uint8_t *block; // (blocks) enum block
        int left;       /* that are not here */
    } sweep;
    uint8_t *have;        // (blocks) of the state: enum block
    uint8_t *words;       // (blocks) of the update
    pthread_mutex_t lock; /* over the sweep's blocks, and the descriptors of voices */
};

static bool is_lost(const struct voice *v)
{
    return v->strange || v->failures >= FAILURES_MAX;
}

static void hang_up(struct voice *v)
{
    pthread_mutex_lock(&v->hearing->lock);
    if (v->fd >= 0)
        close(v->fd);
    v->fd = -1;
    v->owes = 0;
    pthread_mutex_unlock(&v->hearing->lock);
}

static int failed(struct voice *v)
{
    hang_up(v);
    v->failures++;
    return -1;
}

static struct patience patient(const struct hearing *h)
{
    const struct transfer_want *want = h->listen->want;
    rm_time silence = want->silence > 0 ? want->silence : BLOCK_PATIENCE;
    return (struct patience){want->abort, clock_now() + silence};
}

static int call(struct voice *v, struct error *err)
{
    const struct transfer_want *want = v->hearing->listen->want;
    const struct transfer_peer *peer = &want->source[v->index];
    struct patience patience = {want->abort, clock_now() + CALL_PATIENCE};
    struct handshake_claim claim = {HANDSHAKE_TRANSFER, want->generation, want->self, peer->end, 0};
    int fd;
    if (v->fd >= 0)
        return 0;
    if (socket_connect(&fd, peer->address, &patience, err) < 0)
        return failed(v);
    socket_watch(fd);
    pthread_mutex_lock(&v->hearing->lock);
    v->fd = fd;
    pthread_mutex_unlock(&v->hearing->lock);
    return handshake_call(fd, &want->secret, &claim, &patience, err) < 0 ? failed(v) : 0;
}

static int ask_voice(struct voice *v, const struct transfer_request *request, struct error *err)
{
    struct patience patience = patient(v->hearing);
    return socket_send(v->fd, request, sizeof *request, &patience, err) < 0 ? failed(v) : 0;
}

/* ---- heads ---- */

static void keep_point(struct hearing *h, int64_t step, const uint8_t *bytes, int losses)
{
    size_t k = (size_t)h->listen->want->tensors * 4, known = (size_t)losses * sizeof *h->known.loss;
    memset(&h->next, 0, sizeof h->next);
    h->next.step = h->known.step = step;
    memcpy(h->next.k, bytes, k);
    memcpy(h->next.lineage, bytes + k, RM_HASH_BYTES);
    h->known.count = losses;
    memcpy(h->known.loss, bytes + k + RM_HASH_BYTES, known);
    memcpy(h->known.held_out, bytes + k + RM_HASH_BYTES + known, known);
    h->next.loss_known = losses_know(&h->known, step, &h->next.loss);
}

/* The answer to one that was asked for, which is there. What it says of the next step is kept. */
static int read_head(struct voice *v, int64_t wanted, bool *ret_found, struct error *err)
{
    struct hearing *h = v->hearing;
    struct patience patience = patient(h);
    struct transfer_reply reply;
    int tensors = h->listen->want->tensors;
    size_t k = (size_t)tensors * 4;
    *ret_found = false;
    if (socket_receive(v->fd, &reply, sizeof reply, &patience, err) < 0)
        return failed(v);
    v->owes--;
    v->failures = 0;
    v->ahead = reply.status != TRANSFER_OK && wanted >= 0 && reply.step > wanted;
    if (reply.status != TRANSFER_OK)
        return 0;
    bool fits = reply.step >= 0 && reply.step < INT64_MAX - LOSSES_KEPT && reply.tensors == tensors &&
                reply.losses >= 0 && reply.losses <= LOSSES_KEPT &&
                (!reply.header_count || reply.header_count == h->update.header_count);
    size_t update = k + RM_HASH_BYTES + 2 * (size_t)reply.losses * sizeof *h->known.loss;
    size_t length = update + (reply.header_count ? k + (size_t)reply.header_count * 4 : 0);
    uint8_t *bytes = fits ? malloc(length) : NULL;
    uint32_t crc = 0;
    if (!bytes || socket_receive(v->fd, &crc, 4, &patience, err) < 0 ||
        socket_receive(v->fd, bytes, length, &patience, err) < 0 || crc != chunk_crc32c(bytes, length)) {
        free(bytes);
        v->strange = !fits;
        return failed(v);
    }
    if (wanted < 0 || reply.step == wanted) {
        keep_point(h, reply.step, bytes, reply.losses);
        h->next_kept = reply.header_count > 0;
        h->exact = reply.exact != 0;
        if (h->next_kept && wanted >= 0) {
            memcpy(h->update.k, bytes + update, k);
            memcpy(h->update.header, bytes + update + k, (size_t)reply.header_count * 4);
        }
        *ret_found = true;
    }
    free(bytes);
    return 0;
}

/* It answers when it has come to that step. */
static void ask_head(struct voice *v, int64_t wanted)
{
    struct transfer_request request = {.magic = TRANSFER_MAGIC, .kind = TRANSFER_HEAD, .step = wanted};
    if (!is_lost(v) && call(v, NULL) == 0 && ask_voice(v, &request, NULL) == 0)
        v->owes++;
}

/* Those who owe an answer are not asked again. */
static void ask_heads(struct hearing *h, int64_t wanted)
{
    for (int i = 0; i < h->voices; i++)
        if (!h->voice[i].owes)
            ask_head(&h->voice[i], wanted);
}

/* Waits for any answer. -1: aborted, or nobody is left who owes one. */
static int wait_for_voice(struct hearing *h, struct error *err)
{
    struct pollfd fds[RM_WORKERS_MAX + 2];
    int which[RM_WORKERS_MAX], n = 0;
    for (int i = 0; i < h->voices; i++) {
        if (h->voice[i].fd < 0 || !h->voice[i].owes)
            continue;
        which[n] = i;
        fds[n++] = (struct pollfd){.fd = h->voice[i].fd, .events = POLLIN};
    }
    if (!n)
        return err_set(err, ERR_PEER, "nobody is left who holds the state");
    fds[n] = (struct pollfd){.fd = h->listen->want->abort->event_fd, .events = POLLIN};
    fds[n + 1] = (struct pollfd){.fd = h->listen->enough->event_fd, .events = POLLIN};
    poll(fds, (nfds_t)n + 2, -1);
    if (fds[n].revents || fds[n + 1].revents)
        return err_set(err, ERR_ABORTED, "aborted");
    for (int i = 0; i < n; i++)
        if (fds[i].revents)
            return which[i];
    return wait_for_voice(h, err);
}

enum heard { HEARD_NEXT, HEARD_TOO_LATE, HEARD_NOBODY, HEARD_ENOUGH };

static bool any_is_left(const struct hearing *h)
{
    for (int i = 0; i < h->voices; i++)
        if (!is_lost(&h->voice[i]))
            return true;
    return false;
}

static bool any_owes(const struct hearing *h)
{
    for (int i = 0; i < h->voices; i++)
        if (h->voice[i].owes)
            return true;
    return false;
}

/* Who has committed the step behind it has had everybody's word that they were in that one: the update is
 * kept by nobody any more. */
static bool any_is_ahead(const struct hearing *h)
{
    for (int i = 0; i < h->voices; i++)
        if (h->voice[i].ahead)
            return true;
    return false;
}

/* Reads answers until one is the head of that step. Who has not come to it is waited for, and who answered
 * what it was asked for earlier is asked anew. */
static enum heard hear_heads(struct hearing *h, int64_t wanted, struct error *err)
{
    bool found = false;
    for (int i = 0; i < h->voices; i++)
        h->voice[i].ahead = false;
    ask_heads(h, wanted);
    while (!found) {
        if (any_is_ahead(h))
            return HEARD_TOO_LATE;
        if (!any_is_left(h))
            return HEARD_NOBODY;
        if (!any_owes(h)) {
            ask_heads(h, wanted);
            continue;
        }
        int i = wait_for_voice(h, err);
        if (i < 0)
            return err->code == ERR_ABORTED ? HEARD_ENOUGH : HEARD_NOBODY;
        struct voice *v = &h->voice[i];
        read_head(v, wanted, &found, err);
        if (!found && !v->ahead && !v->owes)
            ask_head(v, wanted);
    }
    return HEARD_NEXT;
}

/* What a head that was asked for says that is of no use any more. */
static int settle_heads(struct voice *v, struct error *err)
{
    bool found;
    while (v->owes > 0)
        if (read_head(v, INT64_MAX, &found, err) < 0)
            return -1;
    return 0;
}

/* ---- blocks ---- */

static struct model_range range_of(const struct hearing *h, int block)
{
    int64_t first = (int64_t)block * TRANSFER_BLOCK, left = h->sweep.total - first;
    return (struct model_range){first, left < TRANSFER_BLOCK ? left : TRANSFER_BLOCK};
}

static void put_state(struct hearing *h, const struct voice *v, struct model_range r)
{
    struct state_arrays a = state_arrays(h->state);
    size_t length = (size_t)r.count * 4;
    for (int i = 0; i < a.arrays; i++) {
        void *to = memory_near(a.in, state_range_at(&a.array[i], r.first, r.count));
        memcpy(to, v->bytes + (size_t)i * length, length);
        FAULT_FLIP("array-received", to, length);
    }
}

static void put_words(struct hearing *h, const struct voice *v, struct model_range r)
{
    memcpy(memory_near(h->update.in, far_add(h->update.words, r.first * 4)), v->bytes, (size_t)r.count * 4);
}

/* 1: the source has gone on, 0: it is here. */
static int fetch_block(struct voice *v, int block, struct error *err)
{
    struct hearing *h = v->hearing;
    struct model_range r = range_of(h, block);
    bool state = h->sweep.kind == TRANSFER_BLOCK_STATE;
    size_t length = (size_t)r.count * 4 * (state ? (size_t)state_arrays(h->state).arrays : 1);
    struct transfer_request request = {.magic = TRANSFER_MAGIC,
                                       .kind = h->sweep.kind,
                                       .step = h->sweep.of->step,
                                       .first = r.first,
                                       .count = r.count};
    memcpy(request.lineage, h->sweep.of->lineage, RM_HASH_BYTES);
    struct patience patience = patient(h);
    struct transfer_reply reply;
    uint32_t crc;
    if (ask_voice(v, &request, err) < 0)
        return -1;
    if (socket_receive(v->fd, &reply, sizeof reply, &patience, err) < 0)
        return failed(v);
    if (reply.status != TRANSFER_OK) {
        v->strange = reply.step == h->sweep.of->step && state;
        return 1;
    }
    if (socket_receive(v->fd, &crc, 4, &patience, err) < 0 ||
        socket_receive(v->fd, v->bytes, length, &patience, err) < 0 || crc != chunk_crc32c(v->bytes, length))
        return failed(v);
    FAULT_FLIP("chunk-received", v->bytes, length);
    (state ? put_state : put_words)(h, v, r);
    v->failures = 0;
    if (h->listen->want->received)
        atomic_fetch_add_explicit(h->listen->want->received, (long long)length, memory_order_relaxed);
    FAULT("listen-block");
    return 0;
}

/* -1: all are here, or asked for. */
static int take_block(struct hearing *h)
{
    int found = -1;
    pthread_mutex_lock(&h->lock);
    for (int i = 0; i < h->sweep.blocks && found < 0; i++)
        found = h->sweep.block[i] == BLOCK_MISSING ? i : -1;
    if (found >= 0)
        h->sweep.block[found] = BLOCK_ASKED;
    pthread_mutex_unlock(&h->lock);
    return found;
}

/* Who comes to the end of it wakes those who still wait for something else. */
static void settle_block(struct hearing *h, int block, bool here)
{
    pthread_mutex_lock(&h->lock);
    h->sweep.block[block] = here ? BLOCK_HERE : BLOCK_MISSING;
    h->sweep.left -= here;
    for (int i = 0; i < h->voices && !h->sweep.left; i++)
        if (h->voice[i].busy && h->voice[i].fd >= 0)
            shutdown(h->voice[i].fd, SHUT_RDWR);
    pthread_mutex_unlock(&h->lock);
}

/* Called, and with no answer under way. */
static int get_ready(struct voice *v, struct error *err)
{
    struct hearing *h = v->hearing;
    pthread_mutex_lock(&h->lock);
    v->busy = h->sweep.left > 0;
    pthread_mutex_unlock(&h->lock);
    int result = v->busy && call(v, err) == 0 ? settle_heads(v, err) : -1;
    pthread_mutex_lock(&h->lock);
    v->busy = false;
    if (!h->sweep.left && v->failures)
        v->failures--; /* it was hung up on */
    pthread_mutex_unlock(&h->lock);
    return result;
}

static void *voice_main(void *arg)
{
    struct voice *v = arg;
    struct hearing *h = v->hearing;
    int block, got = 0;
    struct error err;
    if (get_ready(v, &err) < 0)
        return NULL;
    while (got == 0 && (block = take_block(h)) >= 0) {
        got = abort_flag_is_set(h->listen->enough) ? -1 : fetch_block(v, block, &err);
        settle_block(h, block, got == 0);
    }
    v->ahead = got > 0;
    return NULL;
}

/* All voices at once, until all blocks are here or none gives any more. */
static void run_sweep(struct hearing *h, enum transfer_kind kind, const struct state_point *of, int64_t total,
                      uint8_t *block)
{
    h->sweep.kind = kind;
    h->sweep.of = of;
    h->sweep.total = total;
    h->sweep.blocks = (int)((total + TRANSFER_BLOCK - 1) / TRANSFER_BLOCK);
    h->sweep.block = block;
    h->sweep.left = 0;
    for (int i = 0; i < h->sweep.blocks; i++) {
        block[i] = block[i] == BLOCK_ASKED ? BLOCK_MISSING : block[i];
        h->sweep.left += block[i] != BLOCK_HERE;
    }
    for (int i = 0; i < h->voices; i++) {
        struct voice *v = &h->voice[i];
        v->ahead = false;
        v->threaded = !is_lost(v) && !pthread_create(&v->thread, NULL, voice_main, v);
    }
    for (int i = 0; i < h->voices; i++) {
        if (h->voice[i].threaded)
            pthread_join(h->voice[i].thread, NULL);
        else if (!is_lost(&h->voice[i]))
            voice_main(&h->voice[i]); /* there was no thread for it */
    }
}

/* ---- a step ---- */

/* What has not come of the newest update comes with the ring that is formed now (ROLE_FOLLOW). */
static bool is_enough(const struct hearing *h)
{
    return abort_flag_is_set(h->listen->want->abort) || abort_flag_is_set(h->listen->enough);
}

/* The update behind the head that was heard: pulled and applied. */
static enum heard take_update(struct hearing *h, struct error *err)
{
    int64_t count = h->update.words_count;
    if (!h->next_kept)
        return HEARD_TOO_LATE;
    memset(h->words, BLOCK_MISSING, (size_t)((count + TRANSFER_BLOCK - 1) / TRANSFER_BLOCK));
    do
        run_sweep(h, TRANSFER_BLOCK_WORDS, &h->next, count, h->words);
    while (h->sweep.left && !any_is_ahead(h) && any_is_left(h) && !is_enough(h));
    if (h->sweep.left)
        return is_enough(h) ? HEARD_ENOUGH : HEARD_TOO_LATE;
    FAULT("listen-update");
    if (h->listen->apply(h->listen->ctx, h->next.step, h->next.lineage, err) < 0)
        return HEARD_TOO_LATE;
    h->point = h->next;
    losses_take(h->listen->losses, &h->known);
    return HEARD_NEXT;
}

/* From the step that the memory counts as to the next one, when there is one. */
static enum heard hear_step(struct hearing *h, struct error *err)
{
    if (is_enough(h))
        return HEARD_ENOUGH;
    state_update_receive_begin(h->state, &h->update);
    enum heard heard = hear_heads(h, h->point.step + 1, err);
    return heard == HEARD_NEXT ? take_update(h, err) : heard;
}

/* ---- all of it ---- */

static int cant_follow(enum heard heard, struct error *err)
{
    if (heard == HEARD_ENOUGH)
        return err_set(err, ERR_ABORTED, "enough was heard");
    if (heard == HEARD_NOBODY)
        return err_set(err, ERR_PEER, "nobody is left who holds the state");
    return err_set(err, ERR_PEER, "the steps are shorter than an update takes to come");
}

/* From the step on which the sources stand: nothing has come of it. */
static enum heard begin_listening(struct hearing *h, struct error *err)
{
    struct state_arrays a = state_arrays(h->state);
    enum heard heard;
    h->update.header_count = 0;
    state_update_receive_begin(h->state, &h->update);
    if ((heard = hear_heads(h, -1, err)) != HEARD_NEXT)
        return heard;
    h->point = h->next;
    *h->listen->losses = h->known;
    memset(h->have, BLOCK_MISSING, (size_t)((a.count + TRANSFER_BLOCK - 1) / TRANSFER_BLOCK));
    state_listen_begin(h->state, &h->point);
    return HEARD_NEXT;
}

/* All blocks, of whichever steps the sources make meanwhile. */
static enum heard pull(struct hearing *h, struct error *err)
{
    int64_t count = state_arrays(h->state).count;
    for (;;) {
        run_sweep(h, TRANSFER_BLOCK_STATE, &h->point, count, h->have);
        if (!h->sweep.left)
            return HEARD_NEXT;
        if (is_enough(h))
            return HEARD_ENOUGH;
        if (!any_is_left(h))
            return HEARD_NOBODY;
        enum heard heard = any_is_ahead(h) ? hear_step(h, err) : HEARD_NEXT;
        if (heard != HEARD_NEXT)
            return heard;
    }
}

/* Begins anew where an update was missed: each time from the step that the sources hold then. */
static enum heard pull_all(struct hearing *h, int *tries, struct error *err)
{
    enum heard heard = HEARD_TOO_LATE;
    while (heard == HEARD_TOO_LATE && (*tries)++ < LISTEN_TRIES) {
        heard = begin_listening(h, err);
        heard = heard == HEARD_NEXT ? pull(h, err) : heard;
        h->listen->missed += heard == HEARD_TOO_LATE;
    }
    if (heard == HEARD_NEXT)
        state_listen_end(h->state);
    else
        state_receive_begin(h->state);
    return heard;
}

/* From update to update; and all of it once more where one was missed. */
static enum heard follow(struct hearing *h, struct error *err)
{
    enum heard heard = HEARD_NEXT;
    int tries = 0;
    while (heard == HEARD_NEXT) {
        heard = hear_step(h, err);
        if (heard != HEARD_TOO_LATE)
            continue;
        h->listen->missed++;
        heard = pull_all(h, &tries, err);
    }
    return heard;
}

static int open_hearing(struct hearing *h, struct error *err)
{
    const struct transfer_want *want = h->listen->want;
    struct state_arrays a = state_arrays(h->state);
    size_t blocks = (size_t)((a.count + TRANSFER_BLOCK - 1) / TRANSFER_BLOCK) + 1;
    if (!memory_near(a.in, a.array[0].at) || !state_words_are_near(h->state))
        return err_set(err, ERR_PEER, "the state lies where it can't come in while others train");
    h->have = calloc(blocks, 1);
    h->words = calloc(blocks, 1);
    if (!h->have || !h->words)
        return err_set(err, ERR_MACHINE, "no memory to listen");
    h->voices = want->sources;
    for (int i = 0; i < h->voices; i++) {
        h->voice[i] = (struct voice){.hearing = h, .index = i, .fd = -1};
        h->voice[i].bytes = malloc((size_t)a.arrays * ARRAY_BYTES);
        if (!h->voice[i].bytes)
            return err_set(err, ERR_MACHINE, "no memory to listen");
    }
    return 0;
}

static void close_hearing(struct hearing *h)
{
    for (int i = 0; i < h->voices; i++) {
        hang_up(&h->voice[i]);
        free(h->voice[i].bytes);
    }
    free(h->have);
    free(h->words);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

static int listen_on(struct hearing *h, struct error *err)
{
    int tries = 0;
    bool holds = state_holds(h->state, &h->point);
    enum heard heard = holds ? follow(h, err) : pull_all(h, &tries, err);
    return heard == HEARD_NEXT ? 0 : cant_follow(heard, err);
}

int transfer_listen(struct state *state, struct transfer_listen *listen, bool *ret_exact, struct error *err)
{
    struct hearing *h = calloc(1, sizeof *h);
    if (!h)
        return err_set(err, ERR_MACHINE, "no memory to listen");
    h->listen = listen;
    listen->missed = 0;
    h->state = state;
    h->exact = *ret_exact;
    pthread_mutex_init(&h->lock, NULL);
    int result = open_hearing(h, err) < 0 ? -1 : listen_on(h, err);
    *ret_exact = h->exact;
    close_hearing(h);
    return result;
}
