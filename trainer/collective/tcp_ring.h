/* The collective over stream sockets: each rank sends to the next one and receives from the previous one.
 *
 * The flat view of the segments is cut into `world` blocks. A rank's outgoing stream is its own block as it
 * lies in `from`, then each block that came in, as soon as its bytes have come in; its incoming stream is the
 * blocks rank-1, rank-2, ... twice round: world-1 blocks to which `from` is added, world-1 blocks to copy,
 * all into `to`. So both directions work at once and a byte is on its way again when it has been added,
 * without steps to wait for. Two ranks that sum no more than a few words swap them: each sends all of its own
 * and adds what comes, so that they wait for one way and not for two. Each reduce begins with a header
 * (round, shape), so that ranks that disagree about what they sum fail at once.
 *
 * Whoever is inside a reduce beats: the pulse grows with what moves, and about ten times a second while
 * nothing does. So one that waits for its neighbour can be told from one that stands still in the middle of
 * waiting.
 *
 * Where a connection carries nothing all ranks soon wait for each other, and only how far each has come tells
 * which one it is: the place grows with what comes in and is the same at all ranks between two reduces. The
 * connection that stands still leads to the rank whose place is lowest. */
#ifndef RM_COLLECTIVE_TCP_RING_H
#define RM_COLLECTIVE_TCP_RING_H

#include "trainer/collective/abort_flag.h"
#include "trainer/collective/collective.h"

struct tcp_ring_options {
    int rank, world;
    int next_fd, prev_fd;     /* proven connections (handshake.h); -1 in a world of 1 */
    struct abort_flag *abort; /* borrowed, must outlive the ring; collective abort sets it */
    atomic_llong *pulse;      /* borrowed; NULL: nobody feels it */
    atomic_llong *place;      /* borrowed, set to 0 by tcp_ring_open; NULL: nobody looks */
};

/* Owns the descriptors from here on, also where it fails. */
int tcp_ring_open(struct collective **ret, const struct tcp_ring_options *options, struct error *err);

#endif
