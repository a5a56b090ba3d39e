#include "common/net/ws.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/limits.h"
#include "common/os/clock.h"

/* One program with a server and clients on one loop; what happened is written down as text. */
struct desk {
    struct loop *loop;
    struct ws *ws;
    struct ws_conn *server, *client; /* the newest of each */
    char log[4096];
    size_t biggest;
    int messages;
    bool echo, news;
};

static void note_text(struct desk *d, const char *what, const char *text)
{
    size_t used = strlen(d->log);
    snprintf(d->log + used, sizeof d->log - used, "%s %.60s\n", what, text);
}

static void note(struct desk *d, const char *what, const struct ws_conn *conn, const char *text)
{
    size_t used = strlen(d->log);
    snprintf(d->log + used, sizeof d->log - used, "%s %s%s%.60s\n",
             ws_conn_incoming(conn) ? "server" : "client", what, *text ? " " : "", text);
}

static void opened(void *ctx, struct ws_conn *conn)
{
    struct desk *d = ctx;
    *(ws_conn_incoming(conn) ? &d->server : &d->client) = conn;
    note(d, "opened", conn, "");
}

static void message(void *ctx, struct ws_conn *conn, const char *text, size_t length)
{
    struct desk *d = ctx;
    d->messages++;
    d->biggest = length > d->biggest ? length : d->biggest;
    note(d, "got", conn, text);
    if (d->echo && ws_conn_incoming(conn))
        ws_send(conn, text, length);
}

static void closed(void *ctx, struct ws_conn *conn, const char *why)
{
    struct desk *d = ctx;
    note(d, "closed", conn, why);
    if (d->server == conn)
        d->server = NULL;
    if (d->client == conn)
        d->client = NULL;
}

static int get(void *ctx, const struct ws_get *get, struct str *body, const char **type)
{
    struct desk *d = ctx;
    if (!strcmp(get->path, "/wait")) {
        note_text(d, "asked", get->query);
        if (!d->news && get->waited != RM_NEVER)
            return 0;
        str_adds(body, d->news ? "news" : "no room to wait");
        return 200;
    }
    if (!strcmp(get->path, "/accept")) {
        str_addf(body, "accept(%s)", get->accept);
        return 200;
    }
    if (strcmp(get->path, "/v1/status"))
        return 404;
    *type = "application/json";
    str_adds(body, "{\"state\":\"TRAINING\"}");
    return 200;
}

static void desk_open(struct desk *d, int connections_max)
{
    struct error err;
    *d = (struct desk){.echo = true};
    cr_assert_eq(loop_open(&d->loop, &err), 0);
    struct ws_options options = {.address = "127.0.0.1",
                                 .connections_max = connections_max,
                                 .queue_max = 2 * RM_FRAME_MAX,
                                 .opened = opened,
                                 .message = message,
                                 .closed = closed,
                                 .get = get,
                                 .ctx = d};
    cr_assert_eq(ws_open(&d->ws, d->loop, &options, &err), 0, "%s", err.text);
}

static void desk_close(struct desk *d)
{
    ws_free(d->ws);
    loop_free(d->loop);
}

static struct ws_conn *dial(struct desk *d)
{
    struct error err;
    struct ws_conn *conn;
    char address[RM_ADDRESS_MAX];
    snprintf(address, sizeof address, "127.0.0.1:%d", ws_port(d->ws));
    cr_assert_eq(ws_connect(&conn, d->ws, address, &err), 0, "%s", err.text);
    return conn;
}

static bool logged(const struct desk *d, const char *line)
{
    return strstr(d->log, line) != NULL;
}

/* Turns the loop until `line` is in the log; gives up only where the test would hang. */
static void until(struct desk *d, const char *line)
{
    rm_time end = clock_now() + 20 * RM_S;
    while (!logged(d, line)) {
        cr_assert_lt(clock_now(), end, "never came: %s; log:\n%s", line, d->log);
        loop_turn(d->loop, true);
    }
}

static int dial_raw(const struct desk *d)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)ws_port(d->ws))};
    inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
    cr_assert_eq(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static void raw_read(struct desk *d, int fd, struct str *out, const char *until_text)
{
    rm_time end = clock_now() + 20 * RM_S;
    for (;;) {
        char piece[4096];
        ssize_t n = recv(fd, piece, sizeof piece, MSG_DONTWAIT);
        if (n == 0)
            return;
        if (n > 0)
            str_add(out, piece, (size_t)n);
        if (out->length && strstr(out->data, until_text))
            return;
        cr_assert_lt(clock_now(), end, "never came: %s; got %s", until_text, str_text(out));
        loop_turn(d->loop, false);
    }
}

Test(ws, a_message_goes_there_and_back)
{
    struct desk d;
    desk_open(&d, 8);
    dial(&d);
    until(&d, "client opened");
    cr_assert_eq(ws_send(d.client, "hello", 5), 0);
    until(&d, "client got hello");
    desk_close(&d);
}

Test(ws, messages_keep_their_order_and_a_large_one_comes_whole)
{
    struct desk d;
    desk_open(&d, 8);
    dial(&d);
    until(&d, "client opened");
    char *large = malloc(RM_FRAME_MAX);
    memset(large, 'x', RM_FRAME_MAX);
    memcpy(large, "large", 5);
    cr_assert_eq(ws_send(d.client, "first", 5), 0);
    cr_assert_eq(ws_send(d.client, large, RM_FRAME_MAX), 0);
    cr_assert_eq(ws_send(d.client, "last", 4), 0);
    until(&d, "client got last");
    cr_assert_eq(d.biggest, RM_FRAME_MAX);
    cr_assert_eq(d.messages, 6);
    const char *large_at = strstr(d.log, "server got large");
    cr_assert_lt(strstr(d.log, "server got first"), large_at);
    cr_assert_lt(large_at, strstr(d.log, "server got last"));
    free(large);
    desk_close(&d);
}

Test(ws, closing_sends_what_is_queued_and_tells_both_sides_why)
{
    struct desk d;
    desk_open(&d, 8);
    dial(&d);
    until(&d, "client opened");
    until(&d, "server opened");
    ws_send(d.server, "goodbye", 7);
    ws_close(d.server, "it was time");
    until(&d, "server closed it was time");
    until(&d, "client closed");
    cr_assert(logged(&d, "client got goodbye"));
    desk_close(&d);
}

Test(ws, a_queue_over_its_ceiling_ends_the_connection)
{
    struct desk d;
    desk_open(&d, 8);
    dial(&d);
    until(&d, "server opened");
    static char text[RM_FRAME_MAX];
    memset(text, 'y', sizeof text);
    int sent = 0;
    while (ws_send(d.server, text, sizeof text) == 0)
        sent++;
    cr_assert_eq(sent, 2);
    until(&d, "server closed it does not read");
    desk_close(&d);
}

Test(ws, a_killed_peer_is_noticed)
{
    struct desk d;
    desk_open(&d, 8);
    int port = ws_port(d.ws);
    pid_t child = fork();
    if (child == 0) {
        struct desk other;
        desk_open(&other, 8);
        struct ws_conn *conn;
        char address[RM_ADDRESS_MAX];
        snprintf(address, sizeof address, "127.0.0.1:%d", port);
        if (ws_connect(&conn, other.ws, address, NULL) == 0)
            loop_run(other.loop);
        _exit(1);
    }
    until(&d, "server opened");
    kill(child, SIGKILL);
    until(&d, "server closed");
    waitpid(child, NULL, 0);
    desk_close(&d);
}

Test(ws, nobody_listening_is_told_as_closed)
{
    struct desk d, gone;
    desk_open(&gone, 8);
    int port = ws_port(gone.ws);
    desk_close(&gone);
    desk_open(&d, 8);
    struct ws_conn *conn;
    char address[RM_ADDRESS_MAX];
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    struct error err;
    if (ws_connect(&conn, d.ws, address, &err) == 0)
        until(&d, "client closed");
    else
        cr_assert_eq(err.code, ERR_PEER);
    desk_close(&d);
}

Test(ws, a_connection_may_be_closed_before_it_stands)
{
    struct desk d;
    desk_open(&d, 8);
    ws_close(dial(&d), "changed its mind");
    until(&d, "client closed changed its mind");
    desk_close(&d);
}

Test(ws, a_port_in_use_is_named_with_what_to_do)
{
    struct desk d;
    desk_open(&d, 8);
    struct ws *second;
    struct error err;
    struct ws_options options = {.address = "127.0.0.1", .port = ws_port(d.ws), .connections_max = 4};
    cr_assert_eq(ws_open(&second, d.loop, &options, &err), -1);
    char expected[64];
    snprintf(expected, sizeof expected, "port %d on 127.0.0.1 is in use", ws_port(d.ws));
    cr_assert_eq(err.code, ERR_MACHINE);
    cr_assert(strstr(err.text, expected) && strstr(err.text, "--port"), "%s", err.text);
    desk_close(&d);
}

Test(ws, plain_http_is_answered_and_unknown_paths_are_404)
{
    struct desk d;
    desk_open(&d, 8);
    const char *const requests[][3] = {
        {"GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK", "{\"state\":\"TRAINING\"}"},
        {"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", "404", "there is nothing at this path"},
    };
    for (int i = 0; i < 2; i++) {
        int fd = dial_raw(&d);
        struct str out = str_init(1 << 16);
        cr_assert_gt(send(fd, requests[i][0], strlen(requests[i][0]), 0), 0);
        raw_read(&d, fd, &out, requests[i][2]);
        cr_assert(strstr(str_text(&out), requests[i][1]), "%s", str_text(&out));
        str_clear(&out);
        close(fd);
    }
    cr_assert_not(logged(&d, "opened"));
    desk_close(&d);
}

Test(ws, garbage_and_too_many_strangers_hurt_nobody)
{
    struct desk d;
    desk_open(&d, 4);
    dial(&d);
    until(&d, "client opened");
    static const char garbage[] = "\x16\x03\x01 no http at all\r\n\r\n";
    int strangers[8];
    for (int i = 0; i < 8; i++) {
        strangers[i] = dial_raw(&d);
        send(strangers[i], garbage, sizeof garbage - 1, MSG_NOSIGNAL);
        loop_turn(d.loop, false);
    }
    ws_send(d.client, "still here", 10);
    until(&d, "client got still here");
    for (int i = 0; i < 8; i++)
        close(strangers[i]);
    desk_close(&d);
}

Test(ws, a_wrong_address_is_refused_with_a_sentence)
{
    struct desk d;
    desk_open(&d, 4);
    const char *const wrong[] = {
        "", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:0", "127.0.0.1:70000"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct ws_conn *conn;
        struct error err;
        cr_assert_eq(ws_connect(&conn, d.ws, wrong[i], &err), -1, "%s", wrong[i]);
        cr_assert(strstr(err.text, "HOST:PORT"), "%s", err.text);
    }
    desk_close(&d);
}

static int ask_raw(struct desk *d, const char *path)
{
    char request[200];
    int fd = dial_raw(d);
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    cr_assert_gt(send(fd, request, strlen(request), 0), 0);
    return fd;
}

Test(ws, a_get_knows_what_its_sender_accepts)
{
    static const char request[] = "GET /accept HTTP/1.1\r\nHost: x\r\nAccept: text/x;q=0.5, */*\r\n\r\n";
    struct desk d;
    desk_open(&d, 8);
    int fd = dial_raw(&d);
    struct str out = str_init(1 << 16);
    cr_assert_gt(send(fd, request, strlen(request), 0), 0);
    raw_read(&d, fd, &out, "accept(text/x;q=0.5, */*)");
    close(fd);
    str_reset(&out);
    fd = ask_raw(&d, "/accept");
    raw_read(&d, fd, &out, "accept()");
    cr_assert(strstr(str_text(&out), "200 OK"), "%s", str_text(&out));
    str_clear(&out);
    close(fd);
    desk_close(&d);
}

static void turn_until_waiting(struct desk *d, int wanted)
{
    rm_time end = clock_now() + 20 * RM_S;
    while (ws_gets_waiting(d->ws) != wanted) {
        cr_assert_lt(clock_now(), end, "%d wait, not %d; log:\n%s", ws_gets_waiting(d->ws), wanted, d->log);
        loop_turn(d->loop, false);
    }
}

Test(ws, a_get_may_wait_for_its_answer)
{
    struct desk d;
    desk_open(&d, 8);
    int fd = ask_raw(&d, "/wait?after=17&so=on");
    until(&d, "asked after=17&so=on");
    cr_assert_eq(ws_gets_waiting(d.ws), 1);
    cr_assert_eq(ws_get_again(d.ws), 1, "there is no news yet");
    d.news = true;
    cr_assert_eq(ws_get_again(d.ws), 0);
    struct str out = str_init(1 << 16);
    raw_read(&d, fd, &out, "\r\n\r\nnews");
    cr_assert(strstr(str_text(&out), "200 OK"), "%s", str_text(&out));
    str_clear(&out);
    close(fd);
    desk_close(&d);
}

static void rang(void *ctx)
{
    *(bool *)ctx = true;
}

Test(ws, who_goes_away_while_waiting_costs_no_time_and_is_forgotten_when_answered)
{
    struct desk d;
    desk_open(&d, 8);
    struct loop_timer *timer;
    bool over = false;
    int fd = ask_raw(&d, "/wait"), turns = 0;
    turn_until_waiting(&d, 1);
    close(fd);
    cr_assert_eq(loop_timer_open(&timer, d.loop, rang, &over, NULL), 0);
    loop_timer_set(timer, clock_now() + 300 * RM_MS);
    for (; !over; turns++)
        loop_turn(d.loop, true);
    cr_assert_lt(turns, 100, "the loop turns without rest");
    loop_timer_free(timer);
    d.news = true;
    ws_get_again(d.ws);
    turn_until_waiting(&d, 0);
    dial(&d);
    until(&d, "client opened");
    desk_close(&d);
}

Test(ws, not_everybody_may_wait)
{
    enum { MANY = 40 };
    struct desk d;
    int fd[MANY];
    desk_open(&d, MANY);
    for (int i = 0; i < MANY; i++) {
        fd[i] = ask_raw(&d, "/wait");
        loop_turn(d.loop, false);
    }
    struct str out = str_init(1 << 16);
    raw_read(&d, fd[MANY - 1], &out, "no room to wait");
    cr_assert_lt(ws_gets_waiting(d.ws), MANY);
    str_clear(&out);
    for (int i = 0; i < MANY; i++)
        close(fd[i]);
    desk_close(&d);
}

Test(ws, the_other_family_of_addresses_serves_as_well)
{
    struct desk d = {.echo = true};
    struct error err;
    struct ws_conn *conn;
    char address[RM_ADDRESS_MAX];
    cr_assert_eq(loop_open(&d.loop, &err), 0);
    struct ws_options options = {.address = "::1",
                                 .connections_max = 4,
                                 .queue_max = 1000,
                                 .opened = opened,
                                 .message = message,
                                 .closed = closed,
                                 .ctx = &d};
    if (ws_open(&d.ws, d.loop, &options, &err) < 0) {
        loop_free(d.loop);
        cr_skip("no IPv6 here: %s", err.text);
    }
    snprintf(address, sizeof address, "[::1]:%d", ws_port(d.ws));
    cr_assert_eq(ws_connect(&conn, d.ws, address, &err), 0, "%s", err.text);
    until(&d, "client opened");
    cr_assert(!strncmp(ws_conn_peer(d.server), "[::1]:", 6), "%s", ws_conn_peer(d.server));
    ws_send(d.client, "hello", 5);
    until(&d, "client got hello");
    desk_close(&d);
}
