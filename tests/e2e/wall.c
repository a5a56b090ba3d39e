/* Preloaded into a program: its calls to the address in WALL_AGAINST are refused while the file WALL_WHILE is
 * there, as a firewall between two machines would. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int connect(int fd, const struct sockaddr *to, socklen_t size)
{
    int (*next)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "connect");
    const char *against = getenv("WALL_AGAINST"), *file = getenv("WALL_WHILE");
    struct in_addr address;
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)to;
    if (against && file && to->sa_family == AF_INET && inet_pton(AF_INET, against, &address) == 1 &&
        in->sin_addr.s_addr == address.s_addr && access(file, F_OK) == 0) {
        errno = ECONNREFUSED;
        return -1;
    }
    return next(fd, to, size);
}
