/* Preloaded into a program: a firewall between it and the address in WALL_AGAINST, while the file WALL_WHILE
 * is there. Its calls there are refused; or, with WALL_AFTER=BYTES, they are let through, and what it sends
 * beyond so many bytes ends the connection (WALL_DOES=cut) or is lost (WALL_DOES=hold). */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FILES = 4096 };

static atomic_llong sent[FILES]; /* 0: no connection through the wall; else 1 + what was sent by it */

static int stands(void)
{
    const char *file = getenv("WALL_WHILE");
    return file && access(file, F_OK) == 0;
}

static int is_against(const struct sockaddr *to)
{
    const char *against = getenv("WALL_AGAINST");
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)to;
    struct in_addr address;
    return against && to->sa_family == AF_INET && inet_pton(AF_INET, against, &address) == 1 &&
           in->sin_addr.s_addr == address.s_addr;
}

int connect(int fd, const struct sockaddr *to, socklen_t size)
{
    int (*next)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "connect");
    int through = is_against(to);
    if (through && !getenv("WALL_AFTER") && stands()) {
        errno = ECONNREFUSED;
        return -1;
    }
    if (fd >= 0 && fd < FILES)
        sent[fd] = through;
    return next(fd, to, size);
}

int close(int fd)
{
    int (*next)(int) = dlsym(RTLD_NEXT, "close");
    if (fd >= 0 && fd < FILES)
        sent[fd] = 0;
    return next(fd);
}

ssize_t send(int fd, const void *bytes, size_t length, int flags)
{
    ssize_t (*next)(int, const void *, size_t, int) = dlsym(RTLD_NEXT, "send");
    const char *after = getenv("WALL_AFTER"), *does = getenv("WALL_DOES");
    int through = after && fd >= 0 && fd < FILES && sent[fd];
    if (through && stands() && sent[fd] - 1 + (long long)length > strtoll(after, NULL, 10)) {
        if (does && !strcmp(does, "hold"))
            return (ssize_t)length;
        shutdown(fd, SHUT_RDWR);
        errno = ECONNRESET;
        return -1;
    }
    ssize_t n = next(fd, bytes, length, flags);
    if (through && n > 0)
        sent[fd] += n;
    return n;
}
