#include "trainer/library/socket.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

const char *socket_path(void)
{
    return getenv("RINGMASTER_SOCKET");
}

int socket_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int failed;
    do
        failed = connect(fd, (struct sockaddr *)&address, sizeof address);
    while (failed && errno == EINTR);
    if (!failed)
        return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

int socket_send(int fd, const void *packet, size_t bytes)
{
    ssize_t sent;
    do
        sent = send(fd, packet, bytes, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)bytes ? 0 : -1;
}

ssize_t socket_receive(int fd, void *packet, size_t room, int *passed, int wait_ms)
{
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = packet, .iov_len = room};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (passed) {
        *passed = -1;
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
    }
    if (poll(&readable, 1, wait_ms) < 0)
        return -1;
    ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0)
        return -1;
    struct cmsghdr *first = passed ? CMSG_FIRSTHDR(&message) : NULL;
    if (first && first->cmsg_level == SOL_SOCKET && first->cmsg_type == SCM_RIGHTS &&
        first->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(passed, CMSG_DATA(first), sizeof(int));
    if (message.msg_flags & MSG_TRUNC) {
        if (passed && *passed >= 0)
            close(*passed);
        errno = EMSGSIZE;
        return -1;
    }
    return got;
}
