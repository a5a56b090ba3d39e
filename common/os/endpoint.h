/* An IP address of either family with its port, as the system's calls take it. */
#ifndef RM_OS_ENDPOINT_H
#define RM_OS_ENDPOINT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

struct endpoint {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    };
    socklen_t size;
};

/* host: "127.0.0.1" or "fd00::7", without brackets; false where it is none. */
bool endpoint_of(const char *host, int port, struct endpoint *ret);
int endpoint_port(const struct endpoint *endpoint);

#endif
