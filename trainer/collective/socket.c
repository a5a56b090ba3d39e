/* TCP and Unix sockets for threads that may block: each wait ends with the deadline or the abort flag that
 * it is given. Ring, data port and state transfer (trainer/io) make and use their connections by it. */
#include "trainer/collective/socket.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/address.h"
#include "common/base/str.h"
#include "common/os/clock.h"
#include "common/os/endpoint.h"

enum { BACKLOG = 1024 }; /* all members may call at once, and strangers before them */

int socket_listen(int *ret_fd, const char *host, char address[RM_ADDRESS_MAX], struct error *err)
{
    struct endpoint at;
    if (!endpoint_of(host, 0, &at))
        return err_set(err, ERR_MACHINE, "'%s' is no address to listen on", host);
    int fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_errno(err, ERR_MACHINE, "open a socket for the data port");
    if (bind(fd, &at.any, at.size) < 0 || listen(fd, BACKLOG) < 0 || getsockname(fd, &at.any, &at.size) < 0) {
        err_errno(err, ERR_MACHINE, "listen on %s", host);
        close(fd);
        return -1;
    }
    address_join(address, RM_ADDRESS_MAX, host, endpoint_port(&at));
    *ret_fd = fd;
    return 0;
}

/* "127.0.0.1:40312" */
static int parse_address(const char *address, struct endpoint *ret, struct error *err)
{
    char host[RM_ADDRESS_MAX];
    int port;
    if (!address_split(address, host, sizeof host, &port))
        return err_set(err, ERR_PROTOCOL, "'%s' is no address (HOST:PORT)", address);
    if (!endpoint_of(host, port, ret))
        return err_set(err, ERR_PROTOCOL, "'%s' is no IP address", host);
    return 0;
}

void socket_tune(int fd)
{
    int on = 1;
    /* A Unix socket (in tests) has no such option, and needs none. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void socket_watch(int fd)
{
    int on = 1, idle_s = 10, between_s = 5, probes = 4;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof between_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

static int connected(int fd, const char *address, struct error *err)
{
    int broken = 0;
    socklen_t size = sizeof broken;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &broken, &size);
    errno = broken;
    return broken ? err_errno(err, ERR_PEER, "connect to %s", address) : 0;
}

int socket_connect(int *ret_fd, const char *address, const struct patience *patience, struct error *err)
{
    struct endpoint at;
    if (parse_address(address, &at, err) < 0)
        return -1;
    int fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_errno(err, ERR_MACHINE, "open a socket");
    int rc = 0;
    if (connect(fd, &at.any, at.size) < 0) {
        if (errno != EINPROGRESS)
            rc = err_errno(err, ERR_PEER, "connect to %s", address);
        else if ((rc = socket_wait(fd, POLLOUT, patience, err)) < 0)
            err_wrap(err, "connect to %s", address);
        else
            rc = connected(fd, address, err);
    }
    if (rc < 0) {
        close(fd);
        return -1;
    }
    socket_tune(fd);
    *ret_fd = fd;
    return 0;
}

/* Milliseconds for poll, rounded up so that it does not turn in vain; -1: no end. */
static int poll_ms(rm_time deadline)
{
    if (deadline == RM_NEVER)
        return -1;
    rm_time left = deadline - clock_now();
    if (left <= 0)
        return 0;
    rm_time ms = (left + RM_MS - 1) / RM_MS;
    return ms > 1000000 ? 1000000 : (int)ms;
}

int socket_wait(int fd, short events, const struct patience *patience, struct error *err)
{
    struct pollfd fds[2] = {{.fd = fd, .events = events},
                            {.fd = patience->abort ? patience->abort->event_fd : -1, .events = POLLIN}};
    for (;;) {
        int timeout = poll_ms(patience->deadline);
        int n = poll(fds, 2, timeout);
        if (n < 0 && errno != EINTR)
            return err_errno(err, ERR_MACHINE, "poll");
        if (n < 0)
            continue;
        if (fds[1].revents)
            return err_set(err, ERR_ABORTED, "aborted");
        if (fds[0].revents)
            return 0;
        if (timeout == 0)
            return err_set(err, ERR_PEER, "the other side is silent");
    }
}

static bool would_block(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

int socket_send(int fd, const void *bytes, size_t length, const struct patience *patience, struct error *err)
{
    const char *at = bytes;
    while (length) {
        if (patience->abort && abort_flag_is_set(patience->abort))
            return err_set(err, ERR_ABORTED, "aborted");
        ssize_t n = send(fd, at, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && !would_block())
            return err_errno(err, ERR_PEER, "send");
        if (n < 0 && socket_wait(fd, POLLOUT, patience, err) < 0)
            return -1;
        if (n > 0) {
            at += n;
            length -= (size_t)n;
        }
    }
    return 0;
}

int socket_receive(int fd, void *bytes, size_t length, const struct patience *patience, struct error *err)
{
    char *at = bytes;
    while (length) {
        if (patience->abort && abort_flag_is_set(patience->abort))
            return err_set(err, ERR_ABORTED, "aborted");
        ssize_t n = recv(fd, at, length, MSG_DONTWAIT);
        if (n == 0)
            return err_set(err, ERR_PEER, "the other side closed the connection");
        if (n < 0 && !would_block())
            return err_errno(err, ERR_PEER, "receive");
        if (n < 0 && socket_wait(fd, POLLIN, patience, err) < 0)
            return -1;
        if (n > 0) {
            at += n;
            length -= (size_t)n;
        }
    }
    return 0;
}

union fd_room {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

int socket_send_fd(int fd, int handed, const struct patience *patience, struct error *err)
{
    union fd_room control = {
        .header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec byte = {&(char){0}, 1};
    struct msghdr message = {.msg_iov = &byte,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    memcpy(CMSG_DATA(&control.header), &handed, sizeof handed);
    for (;;) {
        ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n == 1)
            return 0;
        if (!would_block())
            return err_errno(err, ERR_PEER, "hand over a descriptor");
        if (socket_wait(fd, POLLOUT, patience, err) < 0)
            return -1;
    }
}

int socket_receive_fd(int fd, int *ret, const struct patience *patience, struct error *err)
{
    union fd_room control;
    char byte;
    struct iovec bytes = {&byte, 1};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    ssize_t n;
    while ((n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) < 0) {
        if (!would_block())
            return err_errno(err, ERR_PEER, "receive a descriptor");
        if (socket_wait(fd, POLLIN, patience, err) < 0)
            return -1;
    }
    const struct cmsghdr *header = n == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
        return err_set(err, n ? ERR_PROTOCOL : ERR_PEER, "no descriptor came");
    memcpy(ret, CMSG_DATA(header), sizeof *ret);
    return 0;
}
