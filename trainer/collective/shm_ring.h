/* The collective between ranks of one machine: each reads what the others have laid out on boards (board.h).
 *
 * The flat view of the segments is cut into portions, and each portion into one block a rank. A rank lays out
 * what it adds to the others' blocks (`given`); when all have, it adds up its own block, in the order of
 * ranks, and lays out the sum (`summed`); and it takes the sums of the others' blocks from their boards.
 * When it has all of a portion (`taken`) the others may use that portion's room again. So several portions
 * are under way, and what is read was written a moment ago and lies in a cache. Of little each rank lays out
 * all that it adds, and adds up everything itself: one wait instead of two.
 *
 * Who waits looks for a moment, if there are processors enough for all, then sleeps in poll on the sockets of
 * the others: each sends a byte when one that sleeps has what it wants, and the end of a process is the end
 * of its sockets. Nothing else is sent by them. What a rank that has gone has left on its board stays there:
 * only where something of it is lacking does a reduce fail.
 *
 * Sums of fp32 are added in the order of ranks, so their bits are the same everywhere, and others than those
 * of a ring over TCP. Whoever is inside a reduce beats as in tcp_ring.h; its place is how many bytes of sums
 * it has, and the same at all ranks between two reduces. */
#ifndef RM_COLLECTIVE_SHM_RING_H
#define RM_COLLECTIVE_SHM_RING_H

#include <stdbool.h>

#include "trainer/collective/abort_flag.h"
#include "trainer/collective/board.h"
#include "trainer/collective/collective.h"

struct shm_ring_options {
    int rank, world;           /* world at least 2 */
    const int *fd;             // (world) proven Unix sockets, one to each other rank; the own one is -1
    const struct board *board; // (world) at [rank] the own one
    struct abort_flag *abort;  /* as of tcp_ring.h, and so are these: */
    atomic_llong *pulse, *place;
    bool trusts; /* sleeps until it is woken, without a beat: a wake-up that is lost is seen then (tests) */
};

/* Owns descriptors and boards from here on, also where it fails. */
int shm_ring_open(struct collective **ret, const struct shm_ring_options *options, struct error *err);

#endif
