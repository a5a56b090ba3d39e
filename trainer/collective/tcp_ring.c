/* The ring over TCP: each pass sends a block to the next rank while one comes from the rank before, first to
 * sum them, then to hand the sums around. */
#include "trainer/collective/tcp_ring.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/fault.h"
#include "trainer/collective/segments.h"
#include "trainer/collective/socket.h"

enum {
    SCRATCH = 256 << 10,   /* received bytes that are added while they lie in the cache */
    SEND_MOST = 512 << 10, /* one send, so that both directions get their turn */
    ZEROS = 16 << 10,      /* one send of a rank that adds nothing */
    SWAP_MOST = 16 << 10,  /* elements that two ranks swap whole */
    BEAT_MS = 100          /* of the pulse, at least so often */
};

struct ring {
    struct collective base;
    struct abort_flag *abort;
    atomic_llong *pulse, *place;
    int next, prev;
    bool broken;    /* a reduce failed: the streams are out of step for ever */
    uint64_t round; /* reduces begun */
    int64_t came;   /* bytes in all reduces before this one, as if own blocks had come in, too */
    uint8_t *scratch;
};

/* First on the wire in each reduce. */
struct header {
    uint64_t round, shape, total;
};

/* A place in a stream of blocks. block 0 .. 2 * (world - 1) - 1; header bytes come before block 0. */
struct cursor {
    int64_t header;
    int block;
    int64_t offset; /* bytes of the block done */
};

/* One reduce under way. */
struct pass {
    struct ring *ring;
    const struct collective_segment *segments;
    int n;
    int64_t total; /* elements */
    bool swap;     /* of two ranks each sends all that it adds, and adds what comes */
    int blocks;    /* of each stream */
    struct header own, got;
    struct cursor out, in;
    int64_t proven; /* bytes of the incoming block that are final, and in the proof */
    int64_t carry;  /* bytes of an element cut in two by recv, at the start of scratch */
    int64_t received;
    int *ret_peer;
    struct error *err;
};

static struct ring *ring_of(struct collective *self)
{
    return (struct ring *)(void *)self;
}

static int rank_at(const struct ring *ring, int distance)
{
    int world = ring->base.world;
    return ((ring->base.rank + distance) % world + world) % world;
}

/* Where block number `block` of a stream that starts with the block of `start` lies: bytes [first, +size). */
static void block_place(const struct pass *p, int start, int block, int64_t *first, int64_t *size)
{
    int64_t world = p->swap ? 1 : p->ring->base.world;
    int64_t b = ((start - block) % world + world) % world;
    *first = b * p->total / world * 4;
    *size = (b + 1) * p->total / world * 4 - *first;
}

static void out_place(const struct pass *p, int64_t *first, int64_t *size)
{
    block_place(p, p->ring->base.rank, p->out.block, first, size);
}

static void in_place(const struct pass *p, int64_t *first, int64_t *size)
{
    block_place(p, p->ring->base.rank - 1, p->in.block, first, size);
}

static bool out_done(const struct pass *p)
{
    return p->out.block == p->blocks;
}

static bool in_done(const struct pass *p)
{
    return p->in.block == p->blocks;
}

/* Steps over blocks that are complete, empty ones too. */
static void settle_blocks(struct pass *p)
{
    int64_t first, size;
    while (!in_done(p) && (in_place(p, &first, &size), p->in.offset == size)) {
        p->in.block++;
        p->in.offset = p->proven = 0;
    }
    while (!out_done(p) && (out_place(p, &first, &size), p->out.offset == size)) {
        p->out.block++;
        p->out.offset = 0;
    }
}

/* Bytes of the current outgoing block that may leave: block j is what came in as block j - 1. */
static int64_t sendable(const struct pass *p)
{
    int64_t first, size;
    if (out_done(p))
        return 0;
    out_place(p, &first, &size);
    if (p->out.block == 0 || p->in.block >= p->out.block)
        return size - p->out.offset;
    return p->in.block == p->out.block - 1 ? p->in.offset - p->out.offset : 0;
}

static int fail_peer(struct pass *p, int distance, const char *what)
{
    *p->ret_peer = rank_at(p->ring, distance);
    return err_set(p->err, ERR_PEER, "the ring's connection %s rank %d ended: %s",
                   distance > 0 ? "to" : "from", *p->ret_peer, what);
}

/* 1: some bytes moved, 0: would block, -1: failed. */
static int send_some(struct pass *p, const void *bytes, int64_t length, int flags)
{
    ssize_t n = send(p->ring->next, bytes, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT | flags);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : fail_peer(p, +1, strerror(errno));
    p->ring->base.sent += n;
    if (p->out.header < (int64_t)sizeof p->own)
        p->out.header += n;
    else
        p->out.offset += n;
    return n > 0;
}

static const uint8_t zeros[ZEROS];

/* The own block leaves as it lies in `from`; the later ones are what came in. */
static int pump_out(struct pass *p)
{
    int64_t first, size, ready;
    if (p->out.header < (int64_t)sizeof p->own)
        return send_some(p, (uint8_t *)&p->own + p->out.header, (int64_t)sizeof p->own - p->out.header,
                         sendable(p) > 0 ? MSG_MORE : 0);
    ready = sendable(p);
    if (ready == 0)
        return 0;
    out_place(p, &first, &size);
    if (ready > SEND_MOST)
        ready = SEND_MOST;
    struct segment_run run = segments_run(p->segments, p->n, first + p->out.offset, ready);
    const uint8_t *bytes = p->out.block ? run.to : run.from;
    if (!bytes) {
        bytes = zeros;
        run.bytes = run.bytes < ZEROS ? run.bytes : ZEROS;
    }
    int moved = send_some(p, bytes, run.bytes, run.bytes < ready ? MSG_MORE : 0);
    settle_blocks(p);
    return moved;
}

static void set_place(const struct ring *ring, int64_t received)
{
    if (ring->place)
        atomic_store_explicit(ring->place, ring->came + received, memory_order_relaxed);
}

/* Bytes received (> 0), 0: would block, -1: failed. */
static int64_t receive_some(struct pass *p, void *bytes, int64_t length)
{
    ssize_t n = recv(p->ring->prev, bytes, (size_t)length, MSG_DONTWAIT);
    if (n == 0)
        return fail_peer(p, -1, "closed");
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : fail_peer(p, -1, strerror(errno));
    p->received += n;
    set_place(p->ring, p->received);
    return n;
}

static int header_in(struct pass *p)
{
    int64_t want = (int64_t)sizeof p->got - p->in.header;
    int64_t n = receive_some(p, (uint8_t *)&p->got + p->in.header, want);
    if (n <= 0)
        return (int)n;
    p->in.header += n;
    if (n == want && memcmp(&p->got, &p->own, sizeof p->own)) {
        *p->ret_peer = rank_at(p->ring, -1);
        return err_set(p->err, ERR_PROTOCOL, "rank %d sums something else (round %llu, %llu elements)",
                       *p->ret_peer, (unsigned long long)p->got.round, (unsigned long long)p->got.total);
    }
    return 1;
}

/* Of fp32, too, both ranks of two that swap have the same bits, NaN's included: rank 0's come first. */
static void add_run(const struct pass *p, const struct segment_run *run, const void *came)
{
    bool last = p->swap && p->ring->base.rank == 1 && run->from;
    segments_add(run->type, run->to, last ? came : run->from, last ? run->from : came, run->bytes / 4);
}

/* Puts the sum of `from` and the whole elements that lie in scratch where it belongs; the rest waits there.
 */
static void add_scratch(struct pass *p, int64_t first, int64_t have)
{
    int64_t whole = have / 4 * 4;
    for (int64_t done = 0; done < whole;) {
        struct segment_run run = segments_run(p->segments, p->n, first + p->in.offset + done, whole - done);
        add_run(p, &run, p->ring->scratch + done);
        done += run.bytes;
    }
    p->in.offset += whole;
    p->carry = have - whole;
    memmove(p->ring->scratch, p->ring->scratch + whole, (size_t)p->carry);
}

/* The last block that is added to, and all that follow, are sums of all ranks: what came of them still lies
 * in the cache. */
static void prove(struct pass *p, int64_t first)
{
    int64_t whole = p->in.offset / 4 * 4;
    if (p->in.block < p->ring->base.world - 2)
        return;
    segments_prove(p->segments, p->n, first + p->proven, whole - p->proven);
    p->proven = whole;
}

static int pump_in(struct pass *p)
{
    int64_t first, size, n;
    if (p->in.header < (int64_t)sizeof p->got)
        return header_in(p);
    if (in_done(p))
        return 0;
    in_place(p, &first, &size);
    if (p->in.block < p->ring->base.world - 1) {
        int64_t room = size - p->in.offset < SCRATCH ? size - p->in.offset : SCRATCH;
        n = receive_some(p, p->ring->scratch + p->carry, room - p->carry);
        if (n > 0) {
            FAULT_FLIP("block-received", p->ring->scratch + p->carry, (size_t)n);
            add_scratch(p, first, p->carry + n);
        }
    } else {
        struct segment_run run = segments_run(p->segments, p->n, first + p->in.offset, size - p->in.offset);
        n = receive_some(p, run.to, run.bytes);
        if (n > 0) {
            FAULT_FLIP("sum-received", run.to, (size_t)n);
            p->in.offset += n;
        }
    }
    if (n > 0)
        prove(p, first);
    settle_blocks(p);
    return n > 0 ? 1 : (int)n;
}

/* Sleeps until something can move, or it is time for a beat. The next rank's end is watched only while it
 * lacks bytes from us: it may rightly be done and gone before we are. */
static int wait_turn(struct pass *p)
{
    bool header_left = p->out.header < (int64_t)sizeof p->own;
    bool out_left = header_left || !out_done(p);
    bool in_left = p->in.header < (int64_t)sizeof p->got || !in_done(p);
    short out_events = header_left || sendable(p) > 0 ? POLLOUT | POLLRDHUP : POLLRDHUP;
    struct pollfd fds[3] = {
        {.fd = p->ring->abort->event_fd, .events = POLLIN},
        {.fd = in_left ? p->ring->prev : -1, .events = POLLIN},
        {.fd = out_left ? p->ring->next : -1, .events = out_events},
    };
    if (poll(fds, 3, BEAT_MS) < 0)
        return errno == EINTR ? 0 : err_errno(p->err, ERR_MACHINE, "poll");
    if (fds[2].revents & (POLLRDHUP | POLLHUP | POLLERR))
        return fail_peer(p, +1, "closed");
    return 0;
}

/* A reduce that was cut by our own abort says so, whatever the sockets said first. */
static int aborted_or(struct pass *p, int rc)
{
    if (!abort_flag_is_set(p->ring->abort))
        return rc;
    *p->ret_peer = -1;
    return err_set(p->err, ERR_ABORTED, "aborted");
}

static void beat(const struct ring *ring)
{
    if (ring->pulse)
        atomic_fetch_add_explicit(ring->pulse, 1, memory_order_relaxed);
}

static int run_pass(struct pass *p)
{
    const int64_t header = (int64_t)sizeof p->own;
    bool half = false;
    settle_blocks(p);
    while (p->out.header < header || p->in.header < header || !out_done(p) || !in_done(p)) {
        if (abort_flag_is_set(p->ring->abort))
            return aborted_or(p, -1);
        int in = pump_in(p);
        int out = in < 0 ? -1 : pump_out(p);
        if (in < 0 || out < 0)
            return aborted_or(p, -1);
        if (!in && !out && wait_turn(p) < 0)
            return aborted_or(p, -1);
        beat(p->ring);
        FAULT("ring-turn");
        if (!half && p->in.block >= p->ring->base.world - 1)
            FAULT("reduce-half");
        half = p->in.block >= p->ring->base.world - 1;
    }
    return 0;
}

/* What is swapped says so: who would take it for blocks, as an older release does, sums something else. */
static void set_shape(struct pass *p)
{
    int world = p->ring->base.world;
    p->total = segments_total(p->segments, p->n);
    p->swap = world == 2 && p->total <= SWAP_MOST;
    p->blocks = p->swap ? 1 : 2 * (world - 1);
    p->own =
        (struct header){++p->ring->round, segments_shape(p->segments, p->n) ^ p->swap, (uint64_t)p->total};
}

static int ring_reduce(struct collective *self, const struct collective_segment *segments, int n,
                       int *ret_peer, struct error *err)
{
    struct ring *ring = ring_of(self);
    struct error ignored;
    int nobody;
    struct pass p = {
        .ring = ring,
        .segments = segments,
        .n = n,
        .ret_peer = ret_peer ? ret_peer : &nobody,
        .err = err ? err : &ignored,
    };
    *p.ret_peer = -1;
    segments_check(segments, n);
    segments_unproven(segments, n);
    set_shape(&p);
    if (abort_flag_is_set(ring->abort))
        return aborted_or(&p, -1);
    if (ring->broken)
        return err_set(err, ERR_PEER, "this ring is broken");
    if (self->world == 1) {
        segments_copy(segments, n);
        segments_prove(segments, n, 0, 4 * p.total);
        return 0;
    }
    int rc = run_pass(&p);
    ring->broken = rc < 0;
    if (rc < 0)
        return rc;
    /* Which is more by the sizes of own blocks. */
    ring->came += (int64_t)sizeof p.own + (p.swap ? 1 : 2) * 4 * p.total;
    set_place(ring, 0);
    return 0;
}

static void ring_abort(struct collective *self)
{
    struct ring *ring = ring_of(self);
    abort_flag_set(ring->abort);
    if (ring->next >= 0)
        shutdown(ring->next, SHUT_RDWR);
    if (ring->prev >= 0)
        shutdown(ring->prev, SHUT_RDWR);
}

static void ring_close(struct collective *self)
{
    struct ring *ring = ring_of(self);
    if (ring->next >= 0)
        close(ring->next);
    if (ring->prev >= 0)
        close(ring->prev);
    free(ring->scratch);
    free(ring);
}

static int ring_watch(struct collective *self, int fds[2], int peers[2])
{
    struct ring *ring = ring_of(self);
    if (self->world == 1)
        return 0;
    fds[0] = ring->next;
    peers[0] = rank_at(ring, +1);
    fds[1] = ring->prev;
    peers[1] = rank_at(ring, -1);
    return 2;
}

static const struct collective_ops ring_ops = {ring_reduce, ring_abort, ring_close, ring_watch};

int tcp_ring_open(struct collective **ret, const struct tcp_ring_options *options, struct error *err)
{
    struct ring *ring = calloc(1, sizeof *ring);
    uint8_t *scratch = malloc(SCRATCH + 4);
    if (!ring || !scratch) {
        free(ring);
        free(scratch);
        if (options->next_fd >= 0)
            close(options->next_fd);
        if (options->prev_fd >= 0)
            close(options->prev_fd);
        return err_set(err, ERR_MACHINE, "no memory for a ring");
    }
    *ring = (struct ring){
        .base = {.ops = &ring_ops, .rank = options->rank, .world = options->world},
        .abort = options->abort,
        .pulse = options->pulse,
        .place = options->place,
        .next = options->next_fd,
        .prev = options->prev_fd,
        .scratch = scratch,
    };
    set_place(ring, 0);
    *ret = &ring->base;
    return 0;
}
