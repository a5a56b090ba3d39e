/* Streams, as a thread that may block needs them: every wait has a deadline and an abort flag.
 *
 * All descriptors are non-blocking and close-on-exec. Errors: ERR_ABORTED where the flag was set, ERR_PEER
 * where the other side is gone, refuses, or is silent until the deadline. */
#ifndef RM_COLLECTIVE_SOCKET_H
#define RM_COLLECTIVE_SOCKET_H

#include <stddef.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "common/base/time.h"
#include "trainer/collective/abort_flag.h"

/* How long to wait and what ends the wait early. */
struct patience {
    const struct abort_flag *abort; /* NULL: nothing */
    rm_time deadline;               /* RM_NEVER: none */
};

/* Listens on host, an IPv4 or IPv6 address, on any free port; address becomes "127.0.0.1:PORT" or
 * "[::1]:PORT". */
int socket_listen(int *ret_fd, const char *host, char address[RM_ADDRESS_MAX], struct error *err);
int socket_connect(int *ret_fd, const char *address, const struct patience *patience, struct error *err);
/* Small messages leave at once. */
void socket_tune(int fd);
/* Who is at the other end and says nothing for long is asked for a sign; without one the connection ends. For
 * one on which nobody waits: a machine that is lost ends no connection. */
void socket_watch(int fd);

/* Waits until fd has one of the poll events. */
int socket_wait(int fd, short events, const struct patience *patience, struct error *err);
int socket_send(int fd, const void *bytes, size_t length, const struct patience *patience, struct error *err);
int socket_receive(int fd, void *bytes, size_t length, const struct patience *patience, struct error *err);

/* Hands a descriptor to the process at the other end of a Unix socket; here it stays open. */
int socket_send_fd(int fd, int handed, const struct patience *patience, struct error *err);
/* Takes one; the caller owns *ret. ERR_PROTOCOL where none comes. */
int socket_receive_fd(int fd, int *ret, const struct patience *patience, struct error *err);

#endif
