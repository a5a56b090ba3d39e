/* The one port of a trainer that its peers call: ring connections and state transfers arrive here.
 *
 * A thread of its own accepts, and does the called side of the handshake for all callers at once, so that
 * nobody waits for the compute thread and a stranger costs a place for a moment. Without proof there are at
 * most DATA_PORT_CALLERS connections, each for DATA_PORT_PATIENCE: as many as all members of a ring may open
 * at once, a ring connection and a transfer each, and DATA_PORT_STRANGERS more. Where none is free the oldest
 * goes that has not named this very process in a hello yet, and only where all have, the oldest of those. So
 * whoever says nothing takes no place from who is due. Where this process may open no more descriptors,
 * callers wait in the kernel. A proven ring connection is parked until data_port_take asks for it (a peer may
 * have been told of a generation before we were); one of an older generation than data_port_advance named is
 * refused, and parked ones of older generations are closed. A proven transfer gets a thread that runs
 * `serve`. A probe ends with its proof. */
#ifndef RM_IO_DATA_PORT_H
#define RM_IO_DATA_PORT_H

#include "trainer/collective/handshake.h"

enum {
    DATA_PORT_STRANGERS = 32,
    DATA_PORT_CALLERS = 2 * RM_WORKERS_MAX + HANDSHAKE_STREAMS + DATA_PORT_STRANGERS,
    DATA_PORT_SERVERS = 2 * RM_WORKERS_MAX, /* each member's transfer, and one that has not noticed its end */
};
#define DATA_PORT_PATIENCE (5 * RM_S)

struct data_port;

struct data_port_options {
    const char *listen; /* an IP address; borrowed for data_port_open */
    struct handshake_secret secret;
    struct handshake_end self; /* a hello to anybody else is refused */
    /* Speaks with one proven receiver on a thread of its own, at most DATA_PORT_SERVERS at once; fd is
     * closed afterwards. Must return soon once `closing` is set. */
    void (*serve)(void *ctx, int fd, const struct handshake_claim *claim, const struct abort_flag *closing);
    /* One sentence for each caller that was sent away, on the port's thread. May be NULL. */
    void (*refused)(void *ctx, const char *why);
    void *ctx;
};

int data_port_open(struct data_port **ret, const struct data_port_options *options, struct error *err);
/* Waits for the serving threads. NULL is fine. */
void data_port_free(struct data_port *port);
const char *data_port_address(const struct data_port *port); /* "127.0.0.1:PORT", "[fd00::7]:PORT" */

/* From now on ring connections of generations below this one are refused; parked ones are closed. */
void data_port_advance(struct data_port *port, struct ring_generation generation);
/* The parked ring connection of that end, generation and stream, waiting for it; the caller owns *ret_fd. One
 * caller at a time. */
int data_port_take(struct data_port *port, struct ring_generation generation,
                   const struct handshake_end *from, int stream, const struct patience *patience, int *ret_fd,
                   struct error *err);

#endif
