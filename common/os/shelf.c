#include "common/os/shelf.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union rights {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

int shelf_open(struct shelf *ret, struct error *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_errno(err, ERR_MACHINE, "make a shelf for a descriptor");
    *ret = (struct shelf){ends[0], ends[1]};
    return 0;
}

void shelf_clear(struct shelf *s)
{
    if (s->in >= 0)
        close(s->in);
    if (s->out >= 0)
        close(s->out);
    *s = (struct shelf){-1, -1};
}

int shelf_lay(const struct shelf *s, int fd, const void *note, size_t bytes, struct error *err)
{
    union rights control = {
        .header = {.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec part = {(void *)(uintptr_t)note, bytes};
    const struct msghdr message = {.msg_iov = &part,
                                   .msg_iovlen = 1,
                                   .msg_control = control.room,
                                   .msg_controllen = sizeof control.room};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    shelf_empty(s);
    ssize_t sent;
    do
        sent = sendmsg(s->in, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? err_errno(err, ERR_MACHINE, "lay a descriptor on the shelf") : 0;
}

/* Bytes of the note, with its descriptor or -1; -1: nothing lies there. */
static ssize_t receive_note(const struct shelf *s, int flags, void *note, size_t bytes, int *ret_fd)
{
    union rights control = {0};
    struct iovec part = {note, bytes};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    ssize_t n;
    *ret_fd = -1;
    do
        n = recvmsg(s->out, &message, flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
    while (n < 0 && errno == EINTR);
    const struct cmsghdr *header = n < 0 ? NULL : CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        memcpy(ret_fd, CMSG_DATA(header), sizeof *ret_fd);
    return n;
}

bool shelf_look(const struct shelf *s, int *ret_fd, void *note, size_t bytes)
{
    int fd;
    ssize_t n = receive_note(s, MSG_PEEK, note, bytes, &fd);
    if (n == (ssize_t)bytes && fd >= 0) {
        *ret_fd = fd;
        return true;
    }
    if (fd >= 0)
        close(fd);
    return false;
}

void shelf_empty(const struct shelf *s)
{
    char note;
    int fd;
    while (receive_note(s, 0, &note, sizeof note, &fd) > 0)
        if (fd >= 0)
            close(fd);
}
