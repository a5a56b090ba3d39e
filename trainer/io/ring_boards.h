/* The ring of ranks that may be on one machine: over TCP until its first reduce, in which all find out
 * whether each of them reaches every other one's memory, and from then on by boards (shm_ring.h) or over TCP.
 *
 * Nobody is believed to be on this machine: only a process of this machine and network namespace hears a
 * call to an abstract Unix socket, whose name is made anew each time and told over the ring's own, proven,
 * connections. Who calls there has the user of this process and proves itself as ring connections do
 * (handshake.h); then each hands its board to the other. Whether all have all boards goes round over TCP once
 * more, so that all decide alike: one that has no such memory, because of what guards it, has the whole ring
 * stay with TCP.
 *
 * The connections over TCP stay open beside it: by their end others learn of this rank's while nobody is
 * inside a reduce. */
#ifndef RM_IO_RING_BOARDS_H
#define RM_IO_RING_BOARDS_H

#include "trainer/collective/collective.h"
#include "trainer/collective/handshake.h"

struct ring_boards_options {
    struct collective *below; /* the ring over TCP */
    int next_fd, prev_fd;     /* its connections, for words before its first reduce; it owns them */
    struct handshake_secret secret;
    struct ring_generation generation;
    const struct handshake_end *member; // (world) copied
    struct abort_flag *abort;           /* as of tcp_ring.h, and so are these: */
    atomic_llong *pulse, *place;
    /* When that is settled, on the thread that reduces. why: one sentence where it is this rank that can't;
     * else "". May be NULL. */
    void (*settled)(void *ctx, bool by_boards, const char *why);
    void *ctx;
};

/* Owns `below` from here on, also where it fails. Its world is at least 2. */
int ring_boards_open(struct collective **ret, const struct ring_boards_options *options, struct error *err);

#endif
