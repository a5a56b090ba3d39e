/* How an answer to a plain GET leaves: its head and its body are two parts, and neither waits for the other.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net/ws.h"
#include "common/os/clock.h"

enum { DESCRIPTORS = 256 };

struct office {
    struct loop *loop;
    struct ws *ws;
    bool asked, at_once; /* the caller's connection has TCP_NODELAY */
};

/* This side's end of the connection that was made to the server's port; -1: there is none. */
static int accepted_at(int port)
{
    for (int fd = 3; fd < DESCRIPTORS; fd++) {
        struct sockaddr_in own, peer;
        socklen_t size = sizeof own, peer_size = sizeof peer;
        bool there = getsockname(fd, (struct sockaddr *)&own, &size) == 0 && own.sin_family == AF_INET &&
                     getpeername(fd, (struct sockaddr *)&peer, &peer_size) == 0;
        if (there && ntohs(own.sin_port) == port)
            return fd;
    }
    return -1;
}

static int look_and_answer(void *ctx, const struct ws_get *get, struct str *body, const char **type)
{
    struct office *o = ctx;
    (void)get;
    int on = 0;
    socklen_t size = sizeof on;
    o->asked = true;
    o->at_once = getsockopt(accepted_at(ws_port(o->ws)), IPPROTO_TCP, TCP_NODELAY, &on, &size) == 0 && on;
    str_adds(body, "news");
    *type = "text/plain";
    return 200;
}

static void nothing_opened(void *ctx, struct ws_conn *conn)
{
    (void)ctx, (void)conn;
}

static void nothing_heard(void *ctx, struct ws_conn *conn, const char *text, size_t length)
{
    (void)ctx, (void)conn, (void)text, (void)length;
}

static void nothing_closed(void *ctx, struct ws_conn *conn, const char *why)
{
    (void)ctx, (void)conn, (void)why;
}

static int ask_at(int port)
{
    static const char request[] = "GET /news HTTP/1.1\r\nHost: x\r\n\r\n";
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    cr_assert_eq(send(fd, request, sizeof request - 1, 0), (ssize_t)sizeof request - 1);
    return fd;
}

Test(ws_answer, its_body_does_not_wait_for_the_acknowledgement_of_its_head)
{
    struct office o = {0};
    struct error err;
    struct ws_options options = {.address = "127.0.0.1",
                                 .strangers_max = 4,
                                 .watchers_max = 4,
                                 .queue_max = 1 << 16,
                                 .opened = nothing_opened,
                                 .message = nothing_heard,
                                 .closed = nothing_closed,
                                 .get = look_and_answer,
                                 .ctx = &o};
    cr_assert_eq(loop_open(&o.loop, &err), 0);
    cr_assert_eq(ws_open(&o.ws, o.loop, &options, &err), 0, "%s", err.text);
    int fd = ask_at(ws_port(o.ws));
    for (rm_time end = clock_now() + 20 * RM_S; !o.asked && clock_now() < end;)
        loop_turn(o.loop, false);
    cr_assert(o.asked);
    cr_assert(o.at_once, "a second part waits until the first one is acknowledged");
    close(fd);
    ws_free(o.ws);
    loop_free(o.loop);
}
