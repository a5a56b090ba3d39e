#include "trainer/io/ring_join.h"

#include <unistd.h>

#include "common/os/clock.h"
#include "trainer/collective/tcp_ring.h"
#include "trainer/io/ring_boards.h"

#define BEAT (100 * RM_MS)

static int call_next(const struct ring_join_options *o, int *ret_fd, struct error *err)
{
    struct patience patience = {o->abort, o->call_deadline};
    struct handshake_claim claim = {HANDSHAKE_RING, o->generation, o->self, o->next.end};
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
static int take_previous(const struct ring_join_options *o, int *ret_fd, struct error *err)
{
    for (;;) {
        rm_time now = clock_now();
        struct patience patience = {o->abort, o->wait_deadline < now + BEAT ? o->wait_deadline : now + BEAT};
        if (o->pulse)
            atomic_fetch_add_explicit(o->pulse, 1, memory_order_relaxed);
        if (data_port_take(o->port, o->generation, &o->previous.end, &patience, ret_fd, err) == 0)
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

int ring_join(struct collective **ret, const struct ring_join_options *o, int *ret_peer, struct error *err)
{
    struct tcp_ring_options ring = {o->rank, o->world, -1, -1, o->abort, o->pulse, o->place};
    *ret_peer = -1;
    data_port_advance(o->port, o->generation);
    if (o->world == 1)
        return tcp_ring_open(ret, &ring, err);
    if (call_next(o, &ring.next_fd, err) < 0) {
        *ret_peer = (o->rank + 1) % o->world;
        return -1;
    }
    if (take_previous(o, &ring.prev_fd, err) < 0) {
        close(ring.next_fd);
        *ret_peer = (o->rank + o->world - 1) % o->world;
        return -1;
    }
    return open_ring(ret, o, &ring, err);
}
