#include "agent/launch/port.h"

#include <netinet/in.h>
#include <unistd.h>

#include "common/base/address.h"
#include "common/os/crypto.h"
#include "common/os/endpoint.h"

enum { FIRST = 20000, PAST = 32000, TRIES = 200 };

static int is_free(const char *host, int port)
{
    struct endpoint at;
    if (!endpoint_of(host, port, &at))
        return -1;
    int fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int bound = fd >= 0 && bind(fd, &at.any, at.size) == 0;
    if (fd >= 0)
        close(fd);
    return bound;
}

int port_choose(const char *host, char *ret, size_t size, struct error *err)
{
    for (int i = 0; i < TRIES; i++) {
        unsigned chance;
        crypto_random(&chance, sizeof chance);
        int port = FIRST + (int)(chance % (PAST - FIRST));
        int free = is_free(host, port);
        if (free < 0)
            break;
        if (!free)
            continue;
        address_join(ret, size, host, port);
        return 0;
    }
    return err_set(err, ERR_MACHINE, "no port from %d to %d is free at %.100s for the program's rendezvous",
                   FIRST, PAST - 1, host);
}
