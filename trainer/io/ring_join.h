/* Makes this rank's two connections of one generation's ring: calls the next rank, takes the previous one's
 * call from the data port, and hands both to the TCP ring; where all members have one address, to one that
 * may go by their memory instead (ring_boards.h). */
#ifndef RM_IO_RING_JOIN_H
#define RM_IO_RING_JOIN_H

#include "trainer/collective/collective.h"
#include "trainer/io/data_port.h"

struct ring_neighbour {
    struct handshake_end end;
    char address[RM_ADDRESS_MAX]; /* of its data port; used for the next rank only */
};

struct ring_join_options {
    struct data_port *port;
    struct handshake_secret secret;
    struct ring_generation generation;
    struct handshake_end self;
    int rank, world;
    int streams; /* connections to each neighbour, 1 at least; all ranks say the same */
    struct ring_neighbour next, previous; /* the same worker in a world of 2, nobody in a world of 1 */
    struct abort_flag *abort;             /* borrowed; must outlive the ring */
    atomic_llong *pulse;                  /* that of tcp_ring.h, and while we wait for the neighbours */
    atomic_llong *place;                  /* of tcp_ring.h */
    rm_time call_deadline;                /* for the next rank to answer: its port does so at once */
    rm_time wait_deadline;                /* for the previous rank's call: it may be receiving its state */
    /* (world) by rank, where all are at one address and may be on one machine; NULL: over TCP. All ranks
     * must think alike, so it follows from the form. */
    const struct handshake_end *near;
    void (*settled)(void *ctx, bool by_boards, const char *why); /* of ring_boards.h */
    void *ctx;
};

/* *ret_peer: the rank that could not be reached (ERR_PEER, ERR_PROTOCOL), else -1. */
int ring_join(struct collective **ret, const struct ring_join_options *options, int *ret_peer,
              struct error *err);

#endif
