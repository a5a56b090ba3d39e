#include "trainer/io/ring_join.h"

#include <stddef.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/os/clock.h"
#include "trainer/collective/streams.h"
#include "trainer/collective/tcp_ring.h"
#include "trainer/io/ring_boards.h"

#define BEAT (100 * RM_MS)

static int call_next(const struct ring_join_options *o, int stream, int *ret_fd, struct error *err)
{
    struct patience patience = {o->abort, o->call_deadline};
    struct handshake_claim claim = {HANDSHAKE_RING, o->generation, o->self, o->next.end, stream};
    int fd;
    if (socket_connect(&fd, o->next.address, &patience, err) < 0)
        return err_wrap(err, "worker %d", o->next.end.worker);
    if (handshake_call(fd, &o->secret, &claim, &patience, err) < 0) {
        close(fd);
        return -1;
    }
    *ret_fd = fd;
    return 0;
}

/* Waits with a beat, so that nobody takes us for dead while the previous rank still receives its state. */
static int take_previous(const struct ring_join_options *o, int stream, int *ret_fd, struct error *err)
{
    for (;;) {
        rm_time now = clock_now();
        struct patience patience = {o->abort, o->wait_deadline < now + BEAT ? o->wait_deadline : now + BEAT};
        if (o->pulse)
            atomic_fetch_add_explicit(o->pulse, 1, memory_order_relaxed);
        if (data_port_take(o->port, o->generation, &o->previous.end, stream, &patience, ret_fd, err) == 0)
            return 0;
        if (err->code != ERR_PEER || clock_now() >= o->wait_deadline)
            return -1;
    }
}

static int open_ring(struct collective **ret, const struct ring_join_options *o,
                     const struct tcp_ring_options *ring, struct error *err)
{
    struct ring_boards_options boards = {.next_fd = ring->next_fd,
                                         .prev_fd = ring->prev_fd,
                                         .secret = o->secret,
                                         .generation = o->generation,
                                         .member = o->near,
                                         .abort = o->abort,
                                         .pulse = o->pulse,
                                         .place = o->place,
                                         .settled = o->settled,
                                         .ctx = o->ctx};
    if (tcp_ring_open(&boards.below, ring, err) < 0)
        return -1;
    if (o->near)
        return ring_boards_open(ret, &boards, err);
    *ret = boards.below;
    return 0;
}

struct wires {
    int next[STREAMS_MAX], prev[STREAMS_MAX];
};

static void drop_wires(const struct wires *w, int streams)
{
    for (int i = 0; i < streams; i++) {
        if (w->next[i] >= 0)
            close(w->next[i]);
        if (w->prev[i] >= 0)
            close(w->prev[i]);
    }
}

/* All of the next rank first, so that nobody waits for one who waits for us. */
static int make_wires(struct wires *w, const struct ring_join_options *o, int *ret_peer, struct error *err)
{
    *ret_peer = (o->rank + 1) % o->world;
    for (int i = 0; i < o->streams; i++)
        if (call_next(o, i, &w->next[i], err) < 0)
            return -1;
    *ret_peer = (o->rank + o->world - 1) % o->world;
    for (int i = 0; i < o->streams; i++)
        if (take_previous(o, i, &w->prev[i], err) < 0)
            return -1;
    *ret_peer = -1;
    return 0;
}

/* The first one tells how far this rank has come: to its neighbours all connections are alike. Takes each
 * descriptor over with the ring that is made of it. */
static int open_streams(struct collective **ret, const struct ring_join_options *o, struct wires *w,
                        struct error *err)
{
    struct streams *all;
    if (streams_open(&all, o->streams, o->abort, STREAMS_LEAST, err) < 0)
        return -1;
    for (int i = 0; i < o->streams; i++) {
        struct tcp_ring_options ring = {.rank = o->rank,
                                        .world = o->world,
                                        .next_fd = w->next[i],
                                        .prev_fd = w->prev[i],
                                        .abort = streams_flag(all, i),
                                        .pulse = o->pulse,
                                        .place = i ? NULL : o->place};
        struct collective *made;
        w->next[i] = w->prev[i] = -1;
        if (tcp_ring_open(&made, &ring, err) < 0) {
            streams_free(all);
            return -1;
        }
        streams_add(all, made);
    }
    *ret = streams_collective(all);
    return 0;
}

int ring_join(struct collective **ret, const struct ring_join_options *o, int *ret_peer, struct error *err)
{
    struct tcp_ring_options ring = {o->rank, o->world, -1, -1, o->abort, o->pulse, o->place};
    struct wires w;
    RM_ASSERT(o->streams >= 1 && o->streams <= STREAMS_MAX && (o->streams == 1 || !o->near), "%d streams%s",
              o->streams, o->near ? " of a ring that may go by boards" : "");
    *ret_peer = -1;
    data_port_advance(o->port, o->generation);
    if (o->world == 1)
        return tcp_ring_open(ret, &ring, err);
    for (int i = 0; i < o->streams; i++)
        w.next[i] = w.prev[i] = -1;
    if (make_wires(&w, o, ret_peer, err) < 0) {
        drop_wires(&w, o->streams);
        return -1;
    }
    if (o->streams == 1) {
        ring.next_fd = w.next[0];
        ring.prev_fd = w.prev[0];
        return open_ring(ret, o, &ring, err);
    }
    int rc = open_streams(ret, o, &w, err);
    drop_wires(&w, o->streams);
    return rc;
}
