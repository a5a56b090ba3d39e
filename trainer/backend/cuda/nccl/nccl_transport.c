/* A link at a time, and sums by it: handed over to the stream, then asked about until it is done, or until
 * one of those who should add to it is gone. */
#include "trainer/backend/cuda/nccl/nccl_transport.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"
#include "common/os/clock.h"
#include "common/os/fault.h"
#include "trainer/backend/cuda/driver/stream.h"
#include "trainer/backend/cuda/nccl/link.h"

enum { GONE_MOST = 8, SPINS = 200 /* questions without rest, then one a millisecond */, JOIN_MS = 2000 };

/* An aborted communicator's kernels leave at once; those that do not by then never will. */
#define STUCK_AFTER (5 * RM_S)

struct nccl_transport {
    struct transport base;
    struct nccl *nccl;
    struct cuda_device *device;
    struct cuda_stream stream;
    struct cuda_event done;
    struct nccl_link *link;            /* NULL: idle */
    struct nccl_link *gone[GONE_MOST]; /* dropped, and their threads may not have ended */
    char why[RM_WHY_MAX];              /* there is no link, and can't be one; "" otherwise */
    bool stuck;                        /* a sum is still in the stream */
};

static struct nccl_transport *nccl_of(struct transport *t)
{
    return (struct nccl_transport *)(void *)t;
}

/* ---- links ---- */

static struct nccl_link **room_among_gone(struct nccl_transport *n)
{
    struct nccl_link **room = NULL;
    for (int i = 0; i < GONE_MOST; i++) {
        if (n->gone[i] && nccl_link_ended(n->gone[i])) {
            nccl_link_free(n->gone[i], 0);
            n->gone[i] = NULL;
        }
        room = n->gone[i] ? room : &n->gone[i];
    }
    return room;
}

static bool has_link(struct nccl_transport *n)
{
    if (n->link)
        return true;
    *n->why = 0;
    if (!room_among_gone(n))
        text_copy(n->why, sizeof n->why, "NCCL does not return from its abort, time and again");
    else if (!(n->link = nccl_link_open(n->nccl, n->device)))
        text_copy(n->why, sizeof n->why, "there is no memory or thread for NCCL");
    return n->link;
}

static void name_link(struct transport *t, bool open)
{
    struct nccl_transport *n = nccl_of(t);
    if (has_link(n))
        nccl_link_want_id(n->link, open);
}

static void copy_id(struct transport *t, uint8_t *out)
{
    struct nccl_transport *n = nccl_of(t);
    _Static_assert((int)TRANSPORT_ID == (int)NCCL_UNIQUE_ID_BYTES, "an id's size");
    RM_ASSERT(n->link, "the id of no link, %p", (void *)n);
    memcpy(out, n->link->id.internal, TRANSPORT_ID);
}

static void connect_link(struct transport *t, const uint8_t *id, int rank, int world, bool open)
{
    struct nccl_transport *n = nccl_of(t);
    if (has_link(n))
        nccl_link_connect(n->link, id, rank, world, open);
}

static enum transport_state state_of_link(struct transport *t, char *why)
{
    struct nccl_transport *n = nccl_of(t);
    struct error err;
    if (*n->why)
        text_copy(why, RM_WHY_MAX, n->why);
    if (!n->link)
        return *n->why ? TRANSPORT_FAILED : TRANSPORT_IDLE;
    if (cuda_device_use(n->device, &err) < 0)
        nccl_link_spoil(n->link, err.text);
    return nccl_link_state(n->link, why);
}

static void drop_link(struct transport *t)
{
    struct nccl_transport *n = nccl_of(t);
    *n->why = 0;
    if (!n->link)
        return;
    nccl_link_drop(n->link);
    struct nccl_link **room = room_among_gone(n);
    RM_ASSERT(room, "%d links are dropped, and one more", GONE_MOST);
    *room = n->link;
    n->link = NULL;
}

/* ---- sums ---- */

struct sum {
    struct nccl_transport *n;
    const struct transport_sum *given;
    bool marked; /* `done` is recorded behind it */
    int *ret_peer;
    struct error *err;
};

static int cut_off(struct sum *s)
{
    struct pollfd fds[TRANSPORT_WATCHED];
    const struct transport_sum *given = s->given;
    if (given->stop && atomic_load(given->stop))
        return err_set(s->err, ERR_ABORTED, "aborted");
    for (int i = 0; i < given->watched; i++)
        fds[i] = (struct pollfd){.fd = given->fds[i], .events = POLLRDHUP};
    if (poll(fds, (nfds_t)given->watched, 0) <= 0)
        return 0;
    for (int i = 0; i < given->watched; i++)
        if (fds[i].revents & (POLLRDHUP | POLLHUP | POLLERR)) {
            *s->ret_peer = given->peers[i];
            return err_set(s->err, ERR_PEER, "the ring's connection with rank %d ended during a sum by NCCL",
                           given->peers[i]);
        }
    return 0;
}

/* Where a rank has ended or gives up its ring, the library's error is what comes of that. */
static int failed_with(struct sum *s, ncclResult_t result)
{
    struct error err;
    if (cut_off(s) < 0)
        return -1;
    nccl_failed(s->n->nccl, result, "sum", &err);
    return err_set(s->err, ERR_PEER, "%s", err.text);
}

/* 1: it is done, 0: under way, -1. */
static int sum_asked(struct sum *s)
{
    struct nccl_transport *n = s->n;
    ncclResult_t now = NCCL_SUCCESS, asked = n->nccl->calls.ncclCommGetAsyncError(n->link->comm, &now);
    if (asked != NCCL_SUCCESS || (now != NCCL_SUCCESS && now != NCCL_IN_PROGRESS))
        return failed_with(s, asked != NCCL_SUCCESS ? asked : now);
    if (!s->marked && now == NCCL_SUCCESS) {
        if (cuda_event_record(&n->done, &n->stream, s->err) < 0)
            return -1;
        s->marked = true;
    }
    if (s->marked) {
        int done = cuda_event_done(&n->done, s->err);
        if (done != 0)
            return done;
    }
    return cut_off(s);
}

/* Of a rest that took long this process was stopped, or its machine: NCCL is not in it. */
static void sum_rest(const struct transport_sum *given)
{
    const rm_time begun = clock_now();
    poll(NULL, 0, 1);
    const rm_time took = clock_now() - begun;
    if (given->still && took > *given->still)
        *given->still = took;
}

static int sum_wait(struct sum *s)
{
    int done = 0;
    for (int turn = 0; done == 0; turn++) {
        FAULT("nccl-turn");
        if (turn > SPINS)
            sum_rest(s->given);
        done = sum_asked(s);
        if (s->given->pulse)
            atomic_fetch_add_explicit(s->given->pulse, 1, memory_order_relaxed);
    }
    return done;
}

static int sum_start(struct sum *s)
{
    struct nccl_transport *n = s->n;
    const struct transport_sum *given = s->given;
    FAULT("nccl-sum");
    ncclResult_t result = n->nccl->calls.ncclAllReduce(
        (const void *)(uintptr_t)given->from.at, (void *)(uintptr_t)given->to.at, (size_t)given->count,
        NCCL_UINT32, NCCL_SUM, n->link->comm, n->stream.handle);
    return result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS ? 0 : failed_with(s, result);
}

/* Nobody may touch the words while kernels of the aborted communicator might. */
static int wait_for_stream(struct nccl_transport *n, const struct transport_sum *given, struct error *err)
{
    const rm_time until = clock_now() + STUCK_AFTER;
    struct error asked;
    int done;
    while ((done = cuda_stream_done(&n->stream, &asked)) == 0 && clock_now() < until) {
        if (given->pulse)
            atomic_fetch_add_explicit(given->pulse, 1, memory_order_relaxed);
        poll(NULL, 0, 1);
    }
    if (done > 0)
        return 0;
    n->stuck = true;
    err_set(err, ERR_MACHINE, "a sum by NCCL is stuck in the GPU, also after its abort: %s",
            done < 0 ? asked.text : "it does not end");
    return err_class(err, CLASS_MACHINE);
}

static int reduce_by_link(struct transport *t, const struct transport_sum *sum, int *ret_peer,
                          struct error *err)
{
    struct nccl_transport *n = nccl_of(t);
    struct sum s = {.n = n, .given = sum, .ret_peer = ret_peer, .err = err};
    *ret_peer = -1;
    RM_ASSERT(n->link && !n->stuck, "a sum of %lld words without a link", (long long)sum->count);
    if (cuda_device_use(n->device, err) < 0)
        return -1;
    if (sum_start(&s) == 0 && sum_wait(&s) > 0)
        return 0;
    drop_link(t);
    struct error stuck;
    if (wait_for_stream(n, sum, &stuck) < 0) {
        *ret_peer = -1;
        *err = stuck;
    }
    return -1;
}

/* ---- open and free ---- */

/* What threads that do not end still use is left to the process's end. */
static void free_transport(struct transport *t)
{
    struct nccl_transport *n = nccl_of(t);
    struct error ignored;
    bool all_ended = true;
    if (!t)
        return;
    drop_link(t);
    for (int i = 0; i < GONE_MOST; i++)
        if (n->gone[i])
            all_ended = nccl_link_free(n->gone[i], all_ended ? JOIN_MS : 0) && all_ended;
    if (cuda_device_use(n->device, &ignored) == 0 && !n->stuck) {
        cuda_event_clear(&n->done);
        cuda_stream_clear(&n->stream);
    }
    if (all_ended)
        nccl_free(n->nccl);
    free(n);
}

static const struct transport_ops nccl_ops = {name_link,      copy_id,   connect_link,  state_of_link,
                                              reduce_by_link, drop_link, free_transport};

int nccl_transport_open(struct transport **ret, struct cuda_device *device, const char *key,
                        struct error *err)
{
    struct nccl_transport *n = calloc(1, sizeof *n);
    if (!n)
        return err_set(err, ERR_MACHINE, "no memory");
    n->device = device;
    n->base = (struct transport){.ops = &nccl_ops, .name = "NCCL"};
    if (nccl_open(&n->nccl, key, err) < 0) {
        free(n);
        return -1;
    }
    n->base.version = n->nccl->version;
    n->base.needs_key = n->nccl->needs_key;
    if (cuda_device_use(device, err) < 0 || cuda_stream_open(&n->stream, device, true, err) < 0 ||
        cuda_event_open(&n->done, device, false, err) < 0) {
        free_transport(&n->base);
        return -1;
    }
    *ret = &n->base;
    return 0;
}
