/* Preloaded into a program: each of its TCP connections carries PACED_BYTES bytes a second at most, out of
 * it, as if a network of that speed lay behind it. The kernel does it (SO_MAX_PACING_RATE), also on loopback.
 */
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

static int pace(int fd, int family)
{
    const char *most = getenv("PACED_BYTES");
    unsigned long rate = most ? strtoul(most, NULL, 10) : 0;
    if (fd >= 0 && rate && (family == AF_INET || family == AF_INET6))
        setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate);
    return fd;
}

int socket(int family, int type, int protocol)
{
    int (*next)(int, int, int) = dlsym(RTLD_NEXT, "socket");
    return pace(next(family, type, protocol), family);
}

int accept4(int fd, struct sockaddr *from, socklen_t *size, int flags)
{
    int (*next)(int, struct sockaddr *, socklen_t *, int) = dlsym(RTLD_NEXT, "accept4");
    int family = AF_UNSPEC;
    socklen_t length = sizeof family;
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length);
    return pace(next(fd, from, size, flags), family);
}
