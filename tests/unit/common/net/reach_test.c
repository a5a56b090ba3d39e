/* Addresses at which nobody is, and machines that are gone without a word. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/limits.h"
#include "common/net/ws.h"
#include "common/os/clock.h"

/* A caller, and whom it calls, on one loop. */
struct line_end {
    struct loop *loop;
    struct ws *ws;
    struct ws_conn *caller; /* whose connection stands */
    char why[RM_WHY_MAX];   /* it ended */
};

static void end_opened(void *ctx, struct ws_conn *conn)
{
    struct line_end *e = ctx;
    if (!ws_conn_incoming(conn))
        e->caller = conn;
}

static void end_heard(void *ctx, struct ws_conn *conn, const char *text, size_t length)
{
    (void)ctx, (void)conn, (void)text, (void)length;
}

static void end_closed(void *ctx, struct ws_conn *conn, const char *why)
{
    struct line_end *e = ctx;
    if (!ws_conn_incoming(conn))
        snprintf(e->why, sizeof e->why, "%s", why);
}

static int end_asked(void *ctx, const struct ws_get *get, struct str *body, const char **type)
{
    (void)ctx, (void)get, (void)body, (void)type;
    return 404;
}

static void both_open(struct line_end *e)
{
    struct error err;
    *e = (struct line_end){0};
    cr_assert_eq(loop_open(&e->loop, &err), 0);
    struct ws_options options = {.address = "127.0.0.1",
                                 .strangers_max = 8,
                                 .watchers_max = 8,
                                 .proven_max = 2,
                                 .queue_max = 2 * RM_FRAME_MAX,
                                 .opened = end_opened,
                                 .message = end_heard,
                                 .closed = end_closed,
                                 .get = end_asked,
                                 .ctx = e};
    cr_assert_eq(ws_open(&e->ws, e->loop, &options, &err), 0, "%s", err.text);
}

static void both_close(struct line_end *e)
{
    ws_free(e->ws);
    loop_free(e->loop);
}

static struct ws_conn *call(const struct line_end *e, int port)
{
    struct error err;
    struct ws_conn *conn;
    char address[RM_ADDRESS_MAX];
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    cr_assert_eq(ws_connect(&conn, e->ws, address, &err), 0, "%s", err.text);
    return conn;
}

static void until_the_caller_stands(struct line_end *e)
{
    rm_time end = clock_now() + 20 * RM_S;
    while (!e->caller) {
        cr_assert_lt(clock_now(), end, "it never stood: %s", e->why);
        loop_turn(e->loop, true);
    }
}

static void rang(void *ctx)
{
    *(bool *)ctx = true;
}

/* Whether the caller's connection ended by then. Meanwhile the loop sleeps, as a program's does that has
 * nothing to do. */
static bool ends_within(struct line_end *e, rm_time within)
{
    struct error err;
    struct loop_timer *timer;
    bool late = false;
    cr_assert_eq(loop_timer_open(&timer, e->loop, rang, &late, &err), 0, "%s", err.text);
    loop_timer_set(timer, clock_now() + within);
    while (!late && !e->why[0])
        loop_turn(e->loop, true);
    loop_timer_free(timer);
    return e->why[0];
}

/* A listener whose queue is full: who calls now hears nothing, as at the address of a pod that is gone. */
static void deafen(int fds[2], int *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    for (int i = 0; i < 2; i++)
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(fds[0], (struct sockaddr *)&at, size), 0);
    cr_assert(listen(fds[0], 0) == 0 && getsockname(fds[0], (struct sockaddr *)&at, &size) == 0);
    cr_assert_eq(connect(fds[1], (struct sockaddr *)&at, size), 0);
    *ret_port = ntohs(at.sin_port);
}

Test(reach, who_calls_where_nobody_is_knows_it_and_may_give_up_though_nothing_else_comes)
{
    struct line_end e, lone;
    int fds[2], port;
    both_open(&e);
    both_open(&lone);
    deafen(fds, &port);
    struct ws_conn *in_vain = call(&lone, port), *conn = call(&e, ws_port(e.ws));
    cr_assert_not(ws_conn_reached(conn));
    until_the_caller_stands(&e);
    cr_assert(e.caller == conn && ws_conn_reached(conn));
    cr_assert_not(ends_within(&lone, 500 * RM_MS), "%s", lone.why);
    cr_assert_not(ws_conn_reached(in_vain));
    ws_close(in_vain, "nobody is there");
    cr_assert(ends_within(&lone, 4 * RM_S), "only libwebsockets' own next look ends it");
    cr_assert_str_eq(lone.why, "nobody is there");
    close(fds[0]);
    close(fds[1]);
    both_close(&e);
    both_close(&lone);
}

static void loopback_set(bool up)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = (short)(up ? IFF_UP : 0)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
    close(fd);
}

/* As when a machine is taken away: nobody says so, and nothing that is sent comes through. */
Test(reach, a_machine_that_is_gone_without_a_word_is_noticed_by_what_it_does_not_acknowledge)
{
    struct line_end e;
    if (unshare(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) < 0)
        cr_skip_test("no network of its own to be had here");
    loopback_set(true);
    both_open(&e);
    struct ws_conn *conn = call(&e, ws_port(e.ws));
    until_the_caller_stands(&e);
    ws_conn_patience(conn, 100 * RM_MS);
    loopback_set(false);
    cr_assert_eq(ws_send(conn, "beat", 4), 0);
    cr_assert(ends_within(&e, 15 * RM_S), "it takes the machine for one that is there");
    both_close(&e);
}
