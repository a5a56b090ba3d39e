/* The ring in shared memory: portions of a sum are laid out, added up and taken, each as soon as the others
 * have done their part. */
#include "trainer/collective/shm_ring.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/limits.h"
#include "common/os/clock.h"
#include "common/os/cores.h"
#include "common/os/cpu.h"
#include "common/os/fault.h"
#include "trainer/collective/segments.h"
#include "trainer/collective/stream_copy.h"

enum {
    ELEMENTS = BOARD_PORTION / 4, /* of a portion */
    LARGE_LEAST = 2 << 20,        /* elements of which no cache keeps the sum for whoever reads it next */
    WHOLE_MOST = 16 << 10,        /* elements of which each rank adds up all */
    CHUNK = 32 << 10, /* bytes that are added, laid out and proven while they lie in the nearest cache */
    VAIN_MOST = 127,  /* waits without spinning */
    BEAT_MS = 100     /* of the pulse, at least so often */
};
_Static_assert(WHOLE_MOST <= ELEMENTS, "what is summed whole is one portion");

/* To be put to sleep and woken takes about as long: who waits no longer than that should not sleep. */
#define SPIN (30 * RM_US)

#define NOTHING UINT64_MAX /* that is wanted of a counter */

struct ring {
    struct collective base;
    struct abort_flag *abort;
    atomic_llong *pulse, *place;
    int fd[RM_WORKERS_MAX];
    struct board board[RM_WORKERS_MAX];
    bool gone[RM_WORKERS_MAX];      /* its process has left the ring */
    uint64_t woken[RM_WORKERS_MAX]; /* its newest sleep that we have ended */
    uint64_t sleeps;                /* of this rank */
    int vain, unspun; /* waits to pass without spinning after it was in vain; that are still to */
    bool spins, trusts, broken;
    uint64_t round;    /* reduces begun */
    uint64_t portions; /* of all reduces before this one */
    int64_t came;      /* bytes of sums of all of them */
    uint8_t scratch[CHUNK];
};

/* One reduce under way. Portions are counted from its beginning. */
struct pass {
    struct ring *ring;
    const struct collective_segment *segments;
    int n;
    bool whole;    /* each rank adds up all */
    bool large;    /* sums go past the cache */
    int64_t total; /* elements */
    int64_t portions, given, summed;
    int64_t took[RM_WORKERS_MAX]; /* of each rank's sums; the own ones by summing them */
    int64_t taken;                /* the least of them */
    int64_t final;                /* bytes of sums in `to` */
    int *ret_peer;
    struct error *err;
};

/* Bytes of the flat view. */
struct range {
    int64_t first, bytes;
};

static struct ring *ring_of(struct collective *self)
{
    return (struct ring *)(void *)self;
}

static struct board_page *page_of(const struct ring *ring, int rank)
{
    return ring->board[rank].page;
}

static struct board_page *own_page(const struct ring *ring)
{
    return page_of(ring, ring->base.rank);
}

static uint64_t read_count(const atomic_ullong *counter)
{
    return atomic_load_explicit(counter, memory_order_acquire);
}

static struct range portion_range(const struct pass *p, int64_t portion)
{
    int64_t first = portion * ELEMENTS, left = p->total - first;
    return (struct range){4 * first, 4 * (left < ELEMENTS ? left : ELEMENTS)};
}

/* The part of a portion that a rank adds up. */
static struct range block_range(const struct pass *p, int64_t portion, int rank)
{
    struct range all = portion_range(p, portion);
    int64_t elements = all.bytes / 4, world = p->ring->base.world;
    int64_t first = rank * elements / world, end = (rank + 1) * elements / world;
    if (p->whole)
        return all;
    return (struct range){all.first + 4 * first, 4 * (end - first)};
}

/* Where a byte of the flat view lies on a rank's board. */
static uint8_t *place_on(const struct pass *p, int rank, int64_t portion, int64_t byte)
{
    return board_room(&p->ring->board[rank], p->ring->portions + (uint64_t)portion) +
           (byte - 4 * portion * ELEMENTS);
}

/* ---- waking ---- */

static bool has_wanted(const struct board_page *own, const struct board_page *sleeper)
{
    return read_count(&own->given) >= read_count(&sleeper->wants_given) ||
           read_count(&own->summed) >= read_count(&sleeper->wants_summed) ||
           read_count(&own->taken) >= read_count(&sleeper->wants_taken);
}

/* Who falls asleep says so before it looks for the last time, and we look whether it does after we have
 * counted: one of both sees the other. A byte that finds no room is not needed: others lie there. */
static void wake_others(struct ring *ring)
{
    atomic_thread_fence(memory_order_seq_cst);
    for (int r = 0; r < ring->base.world; r++) {
        uint64_t asleep = r == ring->base.rank ? 0 : read_count(&page_of(ring, r)->asleep);
        if (!asleep || asleep == ring->woken[r] || !has_wanted(own_page(ring), page_of(ring, r)))
            continue;
        ssize_t sent = send(ring->fd[r], "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)sent;
        ring->woken[r] = asleep;
    }
}

static void count_up(struct pass *p, atomic_ullong *counter, int64_t portions)
{
    atomic_store_explicit(counter, p->ring->portions + (uint64_t)portions, memory_order_release);
    wake_others(p->ring);
}

/* ---- what moves ---- */

/* The least that a counter of the others has come to; of who has left, only where it counts. */
static bool all_have(const struct pass *p, size_t counter, uint64_t wanted, bool gone_too)
{
    for (int r = 0; r < p->ring->base.world; r++) {
        const char *page = (const char *)page_of(p->ring, r);
        if (r == p->ring->base.rank || (p->ring->gone[r] && !gone_too))
            continue;
        if (read_count((const atomic_ullong *)(const void *)(page + counter)) < wanted)
            return false;
    }
    return true;
}

/* Counted from the ring's beginning: what the next of each kind waits for. */
static uint64_t wanted_given(const struct pass *p)
{
    return p->summed < p->given ? p->ring->portions + (uint64_t)p->summed + 1 : NOTHING;
}

static uint64_t wanted_taken(const struct pass *p)
{
    uint64_t next = p->ring->portions + (uint64_t)p->given + 1;
    if (p->given == p->portions)
        return NOTHING;
    return next > BOARD_PORTIONS ? next - BOARD_PORTIONS : 0;
}

static uint64_t wanted_summed(const struct pass *p, int rank)
{
    bool lacks = p->took[rank] < p->summed; /* not before the own one: who disagrees is found out there */
    return lacks && rank != p->ring->base.rank ? p->ring->portions + (uint64_t)p->took[rank] + 1 : NOTHING;
}

static bool can_give(const struct pass *p)
{
    uint64_t wanted = wanted_taken(p);
    return wanted != NOTHING && all_have(p, offsetof(struct board_page, taken), wanted, false);
}

static bool can_sum(const struct pass *p)
{
    uint64_t wanted = wanted_given(p);
    return wanted != NOTHING && all_have(p, offsetof(struct board_page, given), wanted, true);
}

static bool can_take(const struct pass *p, int rank)
{
    uint64_t wanted = wanted_summed(p, rank);
    return wanted != NOTHING && read_count(&page_of(p->ring, rank)->summed) >= wanted;
}

static void lay_out(struct pass *p, struct range range, int64_t portion)
{
    for (int64_t done = 0; done < range.bytes;) {
        struct segment_run run = segments_run(p->segments, p->n, range.first + done, range.bytes - done);
        uint8_t *at = place_on(p, p->ring->base.rank, portion, range.first + done);
        if (run.from)
            memcpy(at, run.from, (size_t)run.bytes);
        else
            memset(at, 0, (size_t)run.bytes);
        done += run.bytes;
    }
    p->ring->base.sent += range.bytes;
}

static void give_words(struct pass *p)
{
    struct range all = portion_range(p, p->given), own = block_range(p, p->given, p->ring->base.rank);
    if (p->whole) {
        lay_out(p, all, p->given);
    } else {
        int64_t behind = own.first + own.bytes;
        lay_out(p, (struct range){all.first, own.first - all.first}, p->given);
        lay_out(p, (struct range){behind, all.first + all.bytes - behind}, p->given);
    }
    count_up(p, &own_page(p->ring)->given, ++p->given);
}

/* What one rank adds to a run, whose first byte is `byte` of the flat view; NULL: nothing. */
static const uint8_t *added_by(const struct pass *p, int rank, const struct segment_run *run, int64_t portion,
                               int64_t byte)
{
    return rank == p->ring->base.rank ? run->from : place_on(p, rank, portion, byte);
}

/* Into `to`, of `bytes` of a run that begins with byte `byte` of the flat view. In the order of ranks, so
 * that all have the same bits where each adds up all. */
static void add_run(const struct pass *p, const struct segment_run *run, int64_t portion, int64_t byte,
                    void *to)
{
    const uint8_t *sum = NULL;
    int count = 0;
    for (int r = 0; r < p->ring->base.world; r++) {
        const uint8_t *more = added_by(p, r, run, portion, byte);
        if (!more)
            continue;
        if (count++)
            segments_add(run->type, to, sum, more, run->bytes / 4);
        sum = count == 1 ? more : to;
    }
    if (count == 1) /* of two, one that adds nothing */
        memcpy(to, sum, (size_t)run->bytes);
}

static void set_place(const struct pass *p)
{
    if (p->ring->place)
        atomic_store_explicit(p->ring->place, p->ring->came + p->final, memory_order_relaxed);
}

/* Where a chunk of a sum is looked at before it is final: in `to`, or where much is summed beside it, from
 * where it goes there past the cache. */
static uint8_t *proven_at(const struct pass *p, const struct segment_run *run, uint8_t *beside)
{
    return p->large ? beside : run->to;
}

static void finish_chunk(struct pass *p, const struct segment_run *run, const uint8_t *sum)
{
    segments_prove_run(run, sum);
    if (sum != run->to)
        stream_copy(run->to, sum, (size_t)run->bytes);
    p->final += run->bytes;
    set_place(p);
}

static void sum_block(struct pass *p)
{
    struct range own = block_range(p, p->summed, p->ring->base.rank);
    for (int64_t done = 0; done < own.bytes;) {
        int64_t byte = own.first + done, left = own.bytes - done;
        struct segment_run run = segments_run(p->segments, p->n, byte, left < CHUNK ? left : CHUNK);
        uint8_t *shown = place_on(p, p->ring->base.rank, p->summed, byte), *sum = proven_at(p, &run, shown);
        add_run(p, &run, p->summed, byte, sum);
        FAULT_FLIP("block-received", sum, (size_t)run.bytes);
        if (!p->whole && sum != shown)
            memcpy(shown, sum, (size_t)run.bytes);
        finish_chunk(p, &run, sum);
        done += run.bytes;
    }
    p->ring->base.sent += p->whole ? 0 : own.bytes;
}

/* Whoever sums another thing than we do says so before it gives anything. */
static int check_said(struct pass *p)
{
    const struct ring *ring = p->ring;
    const struct board_said *own = &own_page(ring)->said[ring->round % 2];
    for (int r = 0; r < ring->base.world; r++) {
        const struct board_said *said = &page_of(ring, r)->said[ring->round % 2];
        if (!memcmp(said, own, sizeof *own))
            continue;
        *p->ret_peer = r;
        return err_set(p->err, ERR_PROTOCOL, "rank %d sums something else (round %llu, %llu elements)", r,
                       (unsigned long long)said->round, (unsigned long long)said->total);
    }
    return 0;
}

static void count_taken(struct pass *p)
{
    int64_t least = p->summed;
    for (int r = 0; r < p->ring->base.world && !p->whole; r++)
        if (r != p->ring->base.rank && p->took[r] < least)
            least = p->took[r];
    if (least > p->taken)
        count_up(p, &own_page(p->ring)->taken, p->taken = least);
}

static int sum(struct pass *p)
{
    if (p->summed == 0 && check_said(p) < 0)
        return -1;
    sum_block(p);
    count_up(p, &own_page(p->ring)->summed, ++p->summed);
    count_taken(p);
    return 0;
}

static void take_block(struct pass *p, int rank)
{
    struct range block = block_range(p, p->took[rank], rank);
    for (int64_t done = 0; done < block.bytes;) {
        int64_t byte = block.first + done, left = block.bytes - done;
        struct segment_run run = segments_run(p->segments, p->n, byte, left < CHUNK ? left : CHUNK);
        uint8_t *sum = proven_at(p, &run, p->ring->scratch);
        memcpy(sum, place_on(p, rank, p->took[rank], byte), (size_t)run.bytes);
        FAULT_FLIP("sum-received", sum, (size_t)run.bytes);
        finish_chunk(p, &run, sum);
        done += run.bytes;
    }
    p->took[rank]++;
    count_taken(p);
}

static bool take_any(struct pass *p)
{
    bool moved = false;
    for (int i = 1; i < p->ring->base.world && !p->whole; i++) {
        int rank = (p->ring->base.rank + i) % p->ring->base.world;
        if (!can_take(p, rank))
            continue;
        take_block(p, rank);
        moved = true;
    }
    return moved;
}

/* 1: something moved, 0: all depends on others, -1: failed. What others wait for goes first. */
static int move_on(struct pass *p)
{
    if (can_give(p)) {
        give_words(p);
        return 1;
    }
    if (can_sum(p))
        return sum(p) < 0 ? -1 : 1;
    return take_any(p);
}

/* ---- waiting ---- */

static bool can_move(const struct pass *p)
{
    bool can = can_give(p) || can_sum(p);
    for (int r = 0; r < p->ring->base.world && !p->whole; r++)
        can = can || can_take(p, r);
    return can;
}

/* Who has left gives nothing any more. */
static int miss_gone(struct pass *p)
{
    for (int r = 0; r < p->ring->base.world; r++) {
        if (!p->ring->gone[r])
            continue;
        const struct board_page *page = page_of(p->ring, r);
        bool lacks_given = wanted_given(p) != NOTHING && read_count(&page->given) < wanted_given(p);
        bool lacks_sum = !p->whole && wanted_summed(p, r) != NOTHING && !can_take(p, r);
        if (!lacks_given && !lacks_sum)
            continue;
        *p->ret_peer = r;
        return err_set(p->err, ERR_PEER, "rank %d has left the ring", r);
    }
    return 0;
}

static bool look_for(const struct pass *p, rm_time most)
{
    rm_time until = clock_now() + most;
    do {
        for (int i = 0; i < 16; i++) {
            if (can_move(p))
                return true;
            cpu_pause();
        }
    } while (clock_now() < until);
    return false;
}

/* Where others wait for the processor on which we look for them, looking only keeps them: each time that it
 * was in vain, twice as many waits pass without. */
static bool spin(const struct pass *p)
{
    struct ring *ring = p->ring;
    if (!ring->spins || ring->unspun > 0) {
        ring->unspun -= ring->unspun > 0;
        return false;
    }
    bool found = look_for(p, SPIN);
    ring->vain = found ? 0 : ring->vain < VAIN_MOST ? 2 * ring->vain + 1 : VAIN_MOST;
    ring->unspun = ring->vain;
    return found;
}

static void say_asleep(struct pass *p)
{
    struct board_page *own = own_page(p->ring);
    uint64_t summed = NOTHING;
    for (int r = 0; r < p->ring->base.world && !p->whole; r++)
        summed = wanted_summed(p, r) < summed ? wanted_summed(p, r) : summed;
    atomic_store_explicit(&own->wants_given, wanted_given(p), memory_order_relaxed);
    atomic_store_explicit(&own->wants_summed, summed, memory_order_relaxed);
    atomic_store_explicit(&own->wants_taken, wanted_taken(p), memory_order_relaxed);
    atomic_store(&own->asleep, ++p->ring->sleeps);
    atomic_thread_fence(memory_order_seq_cst);
}

/* Takes the bytes that woke us; none: the other side's end. */
static void read_wakes(struct ring *ring, int rank)
{
    char bytes[64];
    ssize_t n;
    do
        n = recv(ring->fd[rank], bytes, sizeof bytes, MSG_DONTWAIT);
    while (n == (ssize_t)sizeof bytes);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        ring->gone[rank] = true;
}

static int sleep_in_poll(struct pass *p)
{
    struct ring *ring = p->ring;
    struct pollfd fds[RM_WORKERS_MAX + 1];
    for (int r = 0; r < ring->base.world; r++)
        fds[r] = (struct pollfd){.fd = ring->gone[r] ? -1 : ring->fd[r], .events = POLLIN};
    fds[ring->base.world] = (struct pollfd){.fd = ring->abort->event_fd, .events = POLLIN};
    int n = poll(fds, (nfds_t)ring->base.world + 1, ring->trusts ? -1 : BEAT_MS);
    if (n < 0 && errno != EINTR)
        return err_errno(p->err, ERR_MACHINE, "poll");
    for (int r = 0; r < ring->base.world && n > 0; r++)
        if (fds[r].revents)
            read_wakes(ring, r);
    return 0;
}

static int wait_turn(struct pass *p)
{
    int rc = 0;
    if (miss_gone(p) < 0)
        return -1;
    if (spin(p))
        return 0;
    say_asleep(p);
    if (!can_move(p))
        rc = sleep_in_poll(p);
    atomic_store_explicit(&own_page(p->ring)->asleep, 0, memory_order_relaxed);
    return rc;
}

/* ---- a reduce ---- */

/* A reduce that was cut by our own abort says so, whatever was seen first. */
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
    bool half = false;
    while (p->taken < p->portions) {
        if (abort_flag_is_set(p->ring->abort))
            return aborted_or(p, -1);
        int moved = move_on(p);
        if (moved < 0 || (!moved && wait_turn(p) < 0))
            return aborted_or(p, -1);
        beat(p->ring);
        FAULT("ring-turn");
        if (!half && p->summed == p->portions)
            FAULT("reduce-half");
        half = p->summed == p->portions;
    }
    return 0;
}

static void say_round(struct pass *p)
{
    struct ring *ring = p->ring;
    p->total = segments_total(p->segments, p->n);
    p->whole = p->total <= WHOLE_MOST;
    p->large = p->total >= LARGE_LEAST;
    p->portions = p->whole ? 1 : (p->total + ELEMENTS - 1) / ELEMENTS;
    ring->round++;
    own_page(ring)->said[ring->round % 2] =
        (struct board_said){ring->round, segments_shape(p->segments, p->n), (uint64_t)p->total};
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
    if (abort_flag_is_set(ring->abort))
        return aborted_or(&p, -1);
    if (ring->broken)
        return err_set(p.err, ERR_PEER, "this ring is broken");
    say_round(&p);
    int rc = run_pass(&p);
    ring->broken = rc < 0;
    ring->portions += (uint64_t)p.portions;
    ring->came += 4 * p.total;
    return rc;
}

static void ring_abort(struct collective *self)
{
    struct ring *ring = ring_of(self);
    abort_flag_set(ring->abort);
    for (int r = 0; r < self->world; r++)
        if (ring->fd[r] >= 0)
            shutdown(ring->fd[r], SHUT_RDWR);
}

static void ring_close(struct collective *self)
{
    struct ring *ring = ring_of(self);
    for (int r = 0; r < self->world; r++) {
        if (ring->fd[r] >= 0)
            close(ring->fd[r]);
        board_free(&ring->board[r]);
    }
    free(ring);
}

static int ring_watch(struct collective *self, int fds[2], int peers[2])
{
    struct ring *ring = ring_of(self);
    for (int i = 0; i < 2; i++) {
        peers[i] = (self->rank + (i ? self->world - 1 : 1)) % self->world;
        fds[i] = ring->fd[peers[i]];
    }
    return self->world == 2 ? 1 : 2;
}

static const struct collective_ops ring_ops = {ring_reduce, ring_abort, ring_close, ring_watch};

int shm_ring_open(struct collective **ret, const struct shm_ring_options *options, struct error *err)
{
    struct ring *ring = calloc(1, sizeof *ring);
    RM_ASSERT(options->world >= 2 && options->world <= RM_WORKERS_MAX, "a ring of %d", options->world);
    for (int r = 0; r < options->world && !ring; r++) {
        struct board board = options->board[r];
        if (options->fd[r] >= 0)
            close(options->fd[r]);
        board_free(&board);
    }
    if (!ring)
        return err_set(err, ERR_MACHINE, "no memory for a ring");
    ring->base = (struct collective){.ops = &ring_ops, .rank = options->rank, .world = options->world};
    ring->abort = options->abort;
    ring->pulse = options->pulse;
    ring->place = options->place;
    ring->trusts = options->trusts;
    ring->spins = cores_usable() >= options->world;
    memcpy(ring->fd, options->fd, (size_t)options->world * sizeof *ring->fd);
    memcpy(ring->board, options->board, (size_t)options->world * sizeof *ring->board);
    for (int r = 0; r < options->world; r++)
        board_close_fd(&ring->board[r]);
    if (ring->place)
        atomic_store_explicit(ring->place, 0, memory_order_relaxed);
    *ret = &ring->base;
    return 0;
}
