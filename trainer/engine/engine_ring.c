/* Connects the ring of a form, and sums over it. */
#include <string.h>

#include "common/base/address.h"
#include "common/base/assert.h"
#include "common/os/clock.h"
#include "common/os/fault.h"
#include "common/os/log.h"
#include "trainer/collective/staged.h"
#include "trainer/engine/engine_parts.h"
#include "trainer/io/ring_join.h"

/* A member whose port does not answer for so long is reported, before the coordinator judges who is late:
 * that would say less. For the previous rank's call there is no limit of ours: the coordinator aborts. */
#define CALL_PATIENCE (5 * RM_S)

/* Where nothing else is asked for: a cloud may give a connection no more than 5 Gb/s, and a machine much more
 * (AWS, outside of a placement group). */
enum { STREAMS_BETWEEN_MACHINES = 4 };

static rm_time call_patience(const struct engine *e)
{
    rm_time half = e->spec->elasticity.form_timeout / 2;
    return half > 0 && half < CALL_PATIENCE ? half : CALL_PATIENCE;
}

static int find_rank(const struct msg_form *form, int worker)
{
    for (int i = 0; i < form->count; i++)
        if (form->member[i].worker == worker)
            return i;
    return -1;
}

static struct ring_neighbour neighbour(const struct msg_form *form, int rank)
{
    const struct msg_member *m = &form->member[(rank + form->count) % form->count];
    struct ring_neighbour n = {.end = {m->worker, m->incarnation}};
    text_copy(n.address, sizeof n.address, m->address);
    return n;
}

void engine_identity(const struct engine *e, struct handshake_secret *ret_secret,
                     struct handshake_end *ret_self)
{
    *ret_secret = e->secret;
    *ret_self = e->self;
}

static void set_ring(struct engine *e, struct collective *ring)
{
    pthread_mutex_lock(&e->ring_lock);
    struct collective *old = e->ring;
    e->ring = ring;
    pthread_mutex_unlock(&e->ring_lock);
    if (old)
        old->ops->close(old);
}

void engine_disconnect(struct engine *e)
{
    set_ring(e, NULL);
    engine_transport_drop(e);
}

/* A trainer that has only just started took no part in the last snapshot; the coordinator knows of it. */
static void count_from_save(struct engine *e, const struct msg_form *form)
{
    rm_time published = clock_now() - form->saved_ago;
    if (e->saved_at < published)
        e->saved_at = published;
}

/* Words that this process can't touch go round by way of windows that it can. */
static bool is_far(struct engine *e)
{
    return !state_words_are_near(e->state);
}

/* On the thread that talks. Why this trainer can't is its machine's, so it is said once, and not of each
 * ring. */
static void ring_settled(void *ctx, bool by_boards, const char *why)
{
    struct engine *e = ctx;
    if (by_boards)
        log_info("the ring's workers share memory", "world=%d", e->ring->world);
    else if (*why && !atomic_exchange(&e->told_apart, true))
        log_warn(
            "this worker can't share memory with others on its machine; all train over TCP, which is slower",
            "why=\"%s\"", why);
}

/* Fills ends (count). Members that all call each other at one address may be on one machine. */
static bool may_be_near(const struct msg_form *form, struct handshake_end *ends)
{
    char first[RM_ADDRESS_MAX], host[RM_ADDRESS_MAX];
    int port;
    for (int i = 0; i < form->count; i++) {
        const struct msg_member *m = &form->member[i];
        ends[i] = (struct handshake_end){m->worker, m->incarnation};
        if (!address_split(m->address, i ? host : first, RM_ADDRESS_MAX, &port) ||
            (i && strcmp(host, first) != 0))
            return false;
    }
    return form->count > 1;
}

void engine_connect(struct engine *e, const struct message *message, struct elastic_result *ret)
{
    const struct msg_form *form = &message->form;
    int rank = find_rank(form, e->self.worker), peer = -1;
    struct error err;
    struct collective *ring;
    struct handshake_end ends[RM_WORKERS_MAX];
    bool near = may_be_near(form, ends);
    int streams = e->spec->ring_streams > 0 ? e->spec->ring_streams : near ? 1 : STREAMS_BETWEEN_MACHINES;
    RM_ASSERT(rank >= 0, "worker %d connects a ring of %d that it is not in", e->self.worker, form->count);
    int previous = (rank + form->count - 1) % form->count;
    engine_disconnect(e);
    transfer_ring_begins(e->source);
    atomic_store(&e->stop, false);
    atomic_store(&e->save, false);
    atomic_store(&e->exchanging, false);
    count_from_save(e, form);
    for (int i = 0; i < form->count; i++)
        e->ring_worker[i] = form->member[i].worker;
    struct ring_join_options o = {
        .port = e->port,
        .secret = e->secret,
        .generation = {message->generation.term, message->generation.n},
        .self = e->self,
        .rank = rank,
        .world = form->count,
        .next = neighbour(form, rank + 1),
        .previous = neighbour(form, rank - 1),
        .abort = &e->abort[ELASTIC_TALKS],
        .pulse = &e->counter,
        .place = &e->place,
        .call_deadline = clock_now() + call_patience(e),
        .wait_deadline = RM_NEVER,
        .streams = streams,
        .near = near && !e->spec->ring_streams ? ends : NULL,
        .settled = ring_settled,
        .ctx = e,
    };
    atomic_store(&e->waiting_for, form->count > 1 ? e->ring_worker[previous] : -1);
    int joined = ring_join(&ring, &o, &peer, &err);
    atomic_store(&e->waiting_for, -1);
    if (joined == 0 && is_far(e))
        joined = staged_open(&ring, ring, STAGED_WINDOW, &err);
    if (joined < 0)
        engine_failed(ret, &err, peer < 0 ? -1 : e->ring_worker[peer]);
    else {
        RM_ASSERT(ring->rank == rank && ring->world == form->count, "rank %d of %d in a ring for %d of %d",
                  ring->rank, ring->world, rank, form->count);
        set_ring(e, ring);
        engine_transport_ring(e, form, rank);
        engine_pace_ring(e);
        FAULT("ring-joined");
    }
}

int engine_reduce(struct engine *e, const struct collective_segment *segments, int n, int *ret_worker,
                  struct error *err)
{
    RM_ASSERT(e->ring && n > 0, "%d segments are to be summed, and %s ring is there", n,
              e->ring ? "a" : "no");
    int peer = -1, world = e->ring->world;
    atomic_store(&e->exchanging, true);
    atomic_store(&e->waiting_for, world > 1 ? e->ring_worker[(e->ring->rank + world - 1) % world] : -1);
    rm_time begun = clock_now();
    int64_t sent = e->ring->sent;
    int rc = e->ring->ops->reduce(e->ring, segments, n, &peer, err);
    e->reduce_time += clock_now() - begun;
    e->reduce_bytes += e->ring->sent - sent;
    atomic_store(&e->waiting_for, -1);
    *ret_worker = peer < 0 ? -1 : e->ring_worker[peer];
    atomic_fetch_add(&e->counter, 1);
    return rc;
}

bool engine_can_train(const struct engine *e, struct state_point *point, struct elastic_result *ret)
{
    struct error err;
    if (e->ring && state_holds(e->state, point))
        return true;
    err_set(&err, ERR_PEER, "there is no ring to train in");
    engine_failed(ret, &err, -1);
    return false;
}
