/* Whether another trainer's data port answers: connects, proves who it is and has it proven, and goes.
 * Nothing of either side's work is touched, so that it may be done while both train. */
#ifndef RM_IO_REACH_H
#define RM_IO_REACH_H

#include "trainer/io/ring_join.h"

struct reach_options {
    struct handshake_secret secret;
    struct handshake_end self;
    const struct abort_flag *abort;
};

/* ERR_PEER, ERR_PROTOCOL: it does not, and why. */
int reach(const struct reach_options *options, const struct ring_neighbour *peer, struct error *err);

#endif
