#include "common/net/resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "common/base/limits.h"
#include "common/base/str.h"

enum { HOST_MAX = 256 };

struct resolve {
    char host[HOST_MAX];
    char address[RM_ADDRESS_MAX]; /* "": none was found */
    char why[RM_WHY_MAX];
    bool answered, forgotten;
    void (*done)(void *ctx, const char *address, const char *why);
    void *ctx;
};

bool resolve_is_address(const char *host)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* On another thread. */
static void look_up(void *ctx)
{
    struct resolve *r = ctx;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int code = getaddrinfo(r->host, NULL, &hints, &found);
    if (code == 0)
        code = getnameinfo(found->ai_addr, found->ai_addrlen, r->address, sizeof r->address, NULL, 0,
                           NI_NUMERICHOST);
    if (code != 0) {
        r->address[0] = 0;
        snprintf(r->why, sizeof r->why, "the name %.100s can't be resolved: %s", r->host, gai_strerror(code));
    }
    if (found)
        freeaddrinfo(found);
}

static void looked_up(void *ctx)
{
    struct resolve *r = ctx;
    r->answered = true;
    if (r->forgotten) {
        free(r);
        return;
    }
    r->done(r->ctx, r->address[0] ? r->address : NULL, r->why);
}

int resolve_start(struct resolve **ret, struct loop *loop, const char *host,
                  void (*done)(void *ctx, const char *address, const char *why), void *ctx, struct error *err)
{
    struct resolve *r = calloc(1, sizeof *r);
    if (!r)
        return err_set(err, ERR_MACHINE, "no memory to resolve a name");
    r->done = done;
    r->ctx = ctx;
    bool fits = text_copy(r->host, sizeof r->host, host);
    int result = fits ? loop_work(loop, look_up, looked_up, r, err)
                      : err_set(err, ERR_USAGE, "the name %.40s... is too long", host);
    if (result < 0) {
        free(r);
        return -1;
    }
    *ret = r;
    return 0;
}

void resolve_free(struct resolve *r)
{
    if (!r)
        return;
    if (r->answered)
        free(r);
    else
        r->forgotten = true;
}
