#include "common/os/endpoint.h"

#include <arpa/inet.h>
#include <stdint.h>

bool endpoint_of(const char *host, int port, struct endpoint *ret)
{
    *ret = (struct endpoint){.size = sizeof ret->v4};
    if (inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1) {
        ret->v4.sin_family = AF_INET;
        ret->v4.sin_port = htons((uint16_t)port);
        return true;
    }
    *ret = (struct endpoint){.size = sizeof ret->v6};
    ret->v6.sin6_family = AF_INET6;
    ret->v6.sin6_port = htons((uint16_t)port);
    return inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1;
}

int endpoint_port(const struct endpoint *endpoint)
{
    return ntohs(endpoint->any.sa_family == AF_INET ? endpoint->v4.sin_port : endpoint->v6.sin6_port);
}
