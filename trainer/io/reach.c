#include "trainer/io/reach.h"

#include <unistd.h>

#include "common/os/clock.h"

#define PATIENCE (5 * RM_S) /* a port answers at once, or not at all */

int reach(const struct reach_options *o, const struct ring_neighbour *peer, struct error *err)
{
    struct patience patience = {o->abort, clock_now() + PATIENCE};
    struct handshake_claim claim = {HANDSHAKE_PROBE, {0, 0}, o->self, peer->end, 0};
    int fd;
    if (socket_connect(&fd, peer->address, &patience, err) < 0)
        return -1;
    int rc = handshake_call(fd, &o->secret, &claim, &patience, err);
    close(fd);
    return rc;
}
