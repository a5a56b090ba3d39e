/* A port for the program's rendezvous: a new one for every generation, since what is left of an older one may
 * still knock at its own. */
#ifndef RM_LAUNCH_PORT_H
#define RM_LAUNCH_PORT_H

#include <stddef.h>

#include "common/base/error.h"

/* "HOST:PORT" of a port that nobody listens at now. It lies below those that the kernel gives to outgoing
 * connections, so that none takes it before the program does. host: an address of this machine. */
int port_choose(const char *host, char *ret, size_t size, struct error *err);

#endif
