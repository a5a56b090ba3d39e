#include "common/net/ws.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/limits.h"
#include "common/os/clock.h"
#include "common/os/descriptors.h"

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
    if (!strcmp(get->path, "/query")) {
        str_addf(body, "query(%s)", get->query);
        return 200;
    }
    if (strcmp(get->path, "/v1/status"))
        return 404;
    *type = "application/json";
    str_adds(body, "{\"state\":\"TRAINING\"}");
    return 200;
}

/* So many strangers and watchers, and two who are proven; a stranger has `within` (0: the usual time); `each`
 * may wait of one address (0: all). */
static void desk_open_for(struct desk *d, int most, rm_time within, int each)
{
    struct error err;
    *d = (struct desk){.echo = true};
    cr_assert_eq(loop_open(&d->loop, &err), 0);
    struct ws_options options = {.address = "127.0.0.1",
                                 .strangers_max = most,
                                 .watchers_max = most,
                                 .proven_max = 2,
                                 .waiting_each = each,
                                 .stranger_within = within,
                                 .queue_max = 2 * RM_FRAME_MAX,
                                 .opened = opened,
                                 .message = message,
                                 .closed = closed,
                                 .get = get,
                                 .ctx = d};
    cr_assert_eq(ws_open(&d->ws, d->loop, &options, &err), 0, "%s", err.text);
}

static void desk_open(struct desk *d, int most)
{
    desk_open_for(d, most, 0, 0);
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

static int dial_raw_from(const struct desk *d, const char *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)ws_port(d->ws))};
    struct sockaddr_in from = {.sin_family = AF_INET};
    inet_pton(AF_INET, address, &from.sin_addr);
    inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
    cr_assert_eq(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    cr_assert_eq(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static int dial_raw(const struct desk *d)
{
    return dial_raw_from(d, "127.0.0.1");
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

static int ask_raw_from(struct desk *d, const char *address, const char *path)
{
    char request[200];
    int fd = dial_raw_from(d, address);
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    cr_assert_gt(send(fd, request, strlen(request), 0), 0);
    return fd;
}

static int ask_raw(struct desk *d, const char *path)
{
    return ask_raw_from(d, "127.0.0.1", path);
}

static void rang(void *ctx)
{
    *(bool *)ctx = true;
}

/* libwebsockets 4.3 (Debian 13) would load its plugin from there; 4.1 (Debian 12) looks at no such place. */
Test(ws, nothing_is_looked_for_in_the_working_directory)
{
    char folder[] = "/tmp/ws-XXXXXX", after[64], events[4096];
    struct desk d;
    cr_assert(mkdtemp(folder) && chdir(folder) == 0);
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    cr_assert(watch >= 0 && inotify_add_watch(watch, folder, IN_OPEN) >= 0);
    desk_open(&d, 2);
    cr_assert_eq(read(watch, events, sizeof events), -1, "somebody has opened the folder");
    cr_assert(getcwd(after, sizeof after));
    cr_assert_str_eq(after, folder);
    close(watch);
    desk_close(&d);
    rmdir(folder);
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
    struct ws_options options = {.address = "127.0.0.1", .port = ws_port(d.ws), .strangers_max = 4};
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

/* As many silent connections as asked for, one after the other; -1 stands where one could not be had. */
static void crowd(struct desk *d, int *fds, int count)
{
    for (int i = 0; i < count; i++) {
        fds[i] = dial_raw(d);
        loop_turn(d->loop, false);
    }
}

static void crowd_goes(const int *fds, int count)
{
    for (int i = 0; i < count; i++)
        close(fds[i]);
}

/* Turns the loop until the other side has closed fd. */
static void until_closed(struct desk *d, int fd)
{
    struct str out = str_init(1 << 16);
    raw_read(d, fd, &out, "nothing that anybody says");
    str_clear(&out);
}

Test(ws, any_number_of_silent_connections_leaves_the_door_open)
{
    enum { MANY = 300 };
    struct desk d;
    int silent[MANY];
    desk_open(&d, 8);
    crowd(&d, silent, MANY);
    dial(&d);
    until(&d, "client opened");
    ws_send(d.client, "let me in", 9);
    until(&d, "client got let me in");
    until_closed(&d, silent[0]);
    crowd_goes(silent, MANY);
    desk_close(&d);
}

Test(ws, who_is_proven_stays_however_many_come_and_of_the_others_the_oldest_goes)
{
    enum { MANY = 40 };
    struct desk d;
    int silent[MANY];
    desk_open(&d, 8);
    dial(&d);
    until(&d, "server opened");
    until(&d, "client opened");
    struct ws_conn *proven = d.server, *proven_end = d.client;
    cr_assert(ws_prove(proven));
    dial(&d);
    d.log[0] = 0;
    until(&d, "server opened");
    until(&d, "client opened");
    crowd(&d, silent, MANY);
    until(&d, "server closed too many come whom nobody knows");
    cr_assert_neq(d.server, proven);
    ws_send(proven_end, "still here", 10);
    until(&d, "client got still here");
    crowd_goes(silent, MANY);
    desk_close(&d);
}

Test(ws, places_for_proven_ones_are_limited_and_given_again)
{
    struct desk d;
    struct ws_conn *server[3];
    desk_open(&d, 8);
    for (int i = 0; i < 3; i++) {
        d.log[0] = 0;
        dial(&d);
        until(&d, "server opened");
        until(&d, "client opened");
        server[i] = d.server;
        cr_assert_eq(ws_prove(server[i]), i < 2);
    }
    ws_close(server[0], "done");
    until(&d, "server closed done");
    cr_assert(ws_prove(server[2]));
    desk_close(&d);
}

Test(ws, a_strangers_time_counts_from_when_it_was_accepted_and_who_is_proven_has_all_of_it)
{
    struct desk d;
    desk_open_for(&d, 8, 200 * RM_MS, 0);
    int silent = dial_raw(&d);
    dial(&d);
    until(&d, "server opened");
    until(&d, "client opened");
    cr_assert(ws_prove(d.server));
    struct ws_conn *proven_end = d.client;
    dial(&d);
    until_closed(&d, silent);
    until(&d, "server closed it did not say in time who it is");
    ws_send(proven_end, "still here", 10);
    until(&d, "client got still here");
    close(silent);
    desk_close(&d);
}

/* As of a job that is made smaller by 60 workers at once. */
Test(ws, a_long_question_comes_whole)
{
    struct desk d;
    struct str question = str_init(700), wanted = str_init(700), out = str_init(1 << 16);
    desk_open(&d, 4);
    str_adds(&question, "/query?deleted=");
    for (int i = 4; i < 64; i++)
        str_addf(&question, "%s%d.12", i > 4 ? "," : "", i);
    str_addf(&wanted, "query(%s)", strchr(str_text(&question), '?') + 1);
    int asks = ask_raw(&d, str_text(&question));
    raw_read(&d, asks, &out, str_text(&wanted));
    close(asks);
    str_clear(&question);
    str_clear(&wanted);
    str_clear(&out);
    desk_close(&d);
}

Test(ws, watchers_take_no_place_from_others_and_one_that_waits_outstays_those_that_have_their_answer)
{
    enum { MANY = 20 };
    struct desk d;
    int watcher[MANY];
    struct str out = str_init(1 << 16);
    desk_open(&d, 4);
    int waiting = ask_raw(&d, "/wait");
    until(&d, "asked");
    for (int i = 0; i < MANY; i++) {
        watcher[i] = ask_raw(&d, "/v1/status");
        raw_read(&d, watcher[i], &out, "TRAINING");
        str_reset(&out);
    }
    until_closed(&d, watcher[0]);
    dial(&d);
    until(&d, "client opened");
    d.news = true;
    ws_get_again(d.ws);
    raw_read(&d, waiting, &out, "\r\n\r\nnews");
    cr_assert(strstr(str_text(&out), "200 OK"), "%s", str_text(&out));
    str_clear(&out);
    crowd_goes(watcher, MANY);
    close(waiting);
    desk_close(&d);
}

Test(ws, without_descriptors_callers_wait_and_the_loop_rests)
{
    enum { LITTLE = 256 };
    struct desk d;
    struct rlimit limit, little;
    struct loop_timer *timer;
    int taken[LITTLE], count = 0, turns = 0;
    bool over = false;
    desk_open(&d, 8);
    cr_assert_eq(loop_timer_open(&timer, d.loop, rang, &over, NULL), 0);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    little = (struct rlimit){LITTLE, limit.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &little), 0);
    while ((taken[count] = dup(STDIN_FILENO)) >= 0)
        count++;
    close(taken[--count]); /* one for the caller's own end */
    int fd = ask_raw(&d, "/v1/status");
    loop_timer_set(timer, clock_now() + 3 * DESCRIPTORS_PAUSE);
    for (; !over; turns++)
        loop_turn(d.loop, true);
    cr_assert_lt(turns, 100, "the loop turns without rest");
    while (count)
        close(taken[--count]);
    struct str out = str_init(1 << 16);
    raw_read(&d, fd, &out, "TRAINING");
    cr_assert(strstr(str_text(&out), "200 OK"), "%s", str_text(&out));
    str_clear(&out);
    close(fd);
    loop_timer_free(timer);
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

/* 127.0.0.1 is where the address of the third one begins as well. */
Test(ws, of_one_address_no_more_may_wait_than_are_let_and_another_one_has_its_place)
{
    enum { EACH = 2 };
    static const char *const from[] = {"127.0.0.1", "127.0.0.1", "127.0.0.12", "127.0.0.12"};
    struct desk d;
    int fd[4], one, two;
    struct str out = str_init(1 << 16);
    desk_open_for(&d, 8, 0, EACH);
    for (int i = 0; i < 2 * EACH; i++) {
        fd[i] = ask_raw_from(&d, from[i], "/wait");
        turn_until_waiting(&d, i + 1);
    }
    one = ask_raw_from(&d, "127.0.0.1", "/wait");
    raw_read(&d, one, &out, "no room to wait");
    cr_assert_eq(ws_gets_waiting(d.ws), 2 * EACH);
    cr_assert_eq(ws_get_again(d.ws), 2 * EACH, "who waits goes on");
    d.news = true;
    ws_get_again(d.ws);
    turn_until_waiting(&d, 0);
    d.news = false;
    two = ask_raw_from(&d, "127.0.0.1", "/wait");
    turn_until_waiting(&d, 1);
    str_clear(&out);
    for (int i = 0; i < 2 * EACH; i++)
        close(fd[i]);
    close(one);
    close(two);
    desk_close(&d);
}

/* A program that listens on `address`, or NULL where this machine has no such. */
static bool desk_open_at(struct desk *d, const char *address)
{
    struct error err;
    *d = (struct desk){.echo = true};
    cr_assert_eq(loop_open(&d->loop, &err), 0);
    struct ws_options options = {.address = address,
                                 .strangers_max = 4,
                                 .queue_max = 1000,
                                 .opened = opened,
                                 .message = message,
                                 .closed = closed,
                                 .ctx = d};
    if (ws_open(&d->ws, d->loop, &options, &err) == 0)
        return true;
    loop_free(d->loop);
    return false;
}

static void knock(struct desk *d, const char *host)
{
    struct error err;
    struct ws_conn *conn;
    char address[RM_ADDRESS_MAX];
    snprintf(address, sizeof address, "%s:%d", host, ws_port(d->ws));
    d->log[0] = 0;
    cr_assert_eq(ws_connect(&conn, d->ws, address, &err), 0, "%s", err.text);
    until(d, "client opened");
    until(d, "server opened");
    cr_assert(!strncmp(ws_conn_peer(d->server), host, strlen(host)), "%s", ws_conn_peer(d->server));
}

Test(ws, the_other_family_of_addresses_serves_as_well)
{
    struct desk d;
    if (!desk_open_at(&d, "::1"))
        cr_skip("no IPv6 here");
    knock(&d, "[::1]");
    ws_send(d.client, "hello", 5);
    until(&d, "client got hello");
    desk_close(&d);
}

static bool has_ipv6(void)
{
    struct desk d;
    bool has = desk_open_at(&d, "::1");
    if (has)
        desk_close(&d);
    return has;
}

Test(ws, the_address_of_any_serves_both_families_and_names_callers_by_their_own)
{
    struct desk d;
    if (!has_ipv6())
        cr_skip("no IPv6 here");
    cr_assert(desk_open_at(&d, "::"));
    knock(&d, "[::1]");
    knock(&d, "127.0.0.1");
    desk_close(&d);
}

/* From here on this process's kernel knows no IPv6. */
static void without_ipv6(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

Test(ws, where_the_kernel_knows_no_ipv6_the_address_of_any_is_that_of_ipv4)
{
    struct desk d;
    without_ipv6();
    cr_assert_not(has_ipv6());
    cr_assert(desk_open_at(&d, "::"));
    knock(&d, "127.0.0.1");
    desk_close(&d);
}
