#include "common/net/http.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/net/ws.h"
#include "tests/unit/common/net/stub.h"

/* A server of ours answers; both sides share one loop. */
struct desk {
    struct loop *loop;
    struct ws *ws;
    struct http *http;
    int status, answers;
    char body[256], why[256], url[128];
};

static int answer(void *ctx, const struct ws_get *get, struct str *body, const char **type)
{
    const char *path = get->path;
    (void)ctx;
    *type = "text/plain";
    if (!strcmp(path, "/large"))
        for (int i = 0; i < 1000; i++)
            str_adds(body, "0123456789");
    else
        str_addf(body, "you asked for %s", path);
    return strcmp(path, "/gone") ? 200 : 410;
}

static void done(void *ctx, int status, const char *body, size_t length, const char *why)
{
    struct desk *d = ctx;
    d->status = status;
    text_copy(d->body, sizeof d->body, body);
    text_copy(d->why, sizeof d->why, why);
    cr_assert_eq(strlen(body), length);
    if (++d->answers)
        loop_stop(d->loop);
}

static void desk_open(struct desk *d)
{
    struct error err;
    *d = (struct desk){0};
    struct ws_options options = {
        .address = "127.0.0.1", .strangers_max = 8, .watchers_max = 8, .get = answer, .ctx = d};
    cr_assert_eq(loop_open(&d->loop, &err), 0);
    cr_assert_eq(ws_open(&d->ws, d->loop, &options, &err), 0, "%s", err.text);
    cr_assert_eq(http_open(&d->http, d->loop, &err), 0, "%s", err.text);
}

static void ask(struct desk *d, const char *path, rm_time within)
{
    snprintf(d->url, sizeof d->url, "http://127.0.0.1:%d%s", ws_port(d->ws), path);
    struct http_get get = {.url = d->url, .within = within, .body_max = 1000, .done = done, .ctx = d};
    cr_assert_eq(http_get(d->http, &get, NULL), 0);
}

static void desk_close(struct desk *d)
{
    http_free(d->http);
    ws_free(d->ws);
    loop_free(d->loop);
}

Test(http, an_answer_comes_with_its_status)
{
    struct desk d;
    desk_open(&d);
    ask(&d, "/v1/status", 20 * RM_S);
    loop_run(d.loop);
    cr_assert_eq(d.status, 200, "%s", d.why);
    cr_assert_str_eq(d.body, "you asked for /v1/status");
    ask(&d, "/gone", 20 * RM_S);
    loop_run(d.loop);
    cr_assert_eq(d.status, 410);
    desk_close(&d);
}

Test(http, an_answer_over_the_limit_is_an_error)
{
    struct desk d;
    desk_open(&d);
    ask(&d, "/large", 20 * RM_S);
    loop_run(d.loop);
    cr_assert_eq(d.status, 0);
    cr_assert_neq(d.why[0], 0);
    desk_close(&d);
}

Test(http, nobody_there_is_told_in_words)
{
    struct desk d;
    desk_open(&d);
    struct http_get get = {
        .url = "http://127.0.0.1:1/", .within = 20 * RM_S, .body_max = 10, .done = done, .ctx = &d};
    cr_assert_eq(http_get(d.http, &get, NULL), 0);
    loop_run(d.loop);
    cr_assert_eq(d.status, 0);
    cr_assert(strstr(d.why, "connect"), "%s", d.why);
    desk_close(&d);
}

Test(http, this_machine_is_known_by_its_whole_name)
{
    static const char *const own[] = {"127.0.0.1", "127.1.2.3:8080", "127.0.0.1/api",
                                      "localhost", "LocalHost:6443", "localhost/bucket",
                                      "[::1]",     "[::1]:6443",     "[::1]/api"};
    static const char *const other[] = {"localhost.corp",
                                        "localhosts:80",
                                        "127.example",
                                        "127.0.0.1.corp:80",
                                        "127",
                                        "10.96.0.1",
                                        "[::1].example",
                                        "store-localhost",
                                        ""};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        cr_assert(http_is_own_machine(own[i]), "%s", own[i]);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        cr_assert_not(http_is_own_machine(other[i]), "%s", other[i]);
}

Test(http, what_is_under_way_may_be_given_up)
{
    struct desk d;
    desk_open(&d);
    ask(&d, "/a", 20 * RM_S);
    ask(&d, "/b", 20 * RM_S);
    loop_turn(d.loop, true);
    desk_close(&d);
    cr_assert_leq(d.answers, 2);
}

static enum stub_then say_nothing_much(void *ctx, const struct stub_request *request, struct str *out)
{
    (void)ctx, (void)request;
    stub_say(out, 200, "", "yes", 3);
    return STUB_KEEP;
}

/* Our ends of connections to that port. */
static int open_to(int port)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_in peer = {0};
        socklen_t size = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &size) == 0 && peer.sin_family == AF_INET)
            count += ntohs(peer.sin_port) == port;
    }
    return count;
}

static void ask_stub(struct desk *d, const struct stub *stub, bool fresh)
{
    snprintf(d->url, sizeof d->url, "http://127.0.0.1:%d/", stub_port(stub));
    struct http_get get = {
        .url = d->url, .within = 20 * RM_S, .body_max = 10, .fresh = fresh, .done = done, .ctx = d};
    cr_assert_eq(http_get(d->http, &get, NULL), 0);
    loop_run(d->loop);
    cr_assert_eq(d->status, 200, "%s", d->why);
}

/* A checkpoint that is read back asks for each of its pieces so. */
Test(http, a_connection_that_was_made_for_one_request_alone_is_not_kept_behind_it, .timeout = 60)
{
    struct desk d;
    desk_open(&d);
    struct stub *stub = stub_open(say_nothing_much, NULL);
    for (int i = 0; i < 5; i++)
        ask_stub(&d, stub, true);
    cr_expect_eq(stub_connections(stub), 5);
    cr_expect_eq(open_to(stub_port(stub)), 0);
    ask_stub(&d, stub, false);
    cr_expect_eq(open_to(stub_port(stub)), 1, "any other one is");
    desk_close(&d);
    stub_free(stub);
}

/* One after the other, so that there is never more than one request. */
Test(http, of_many_peers_that_are_asked_by_turns_each_is_found_over_its_connection_again, .timeout = 60)
{
    enum { PEERS = 12, TURNS = 3 };
    struct desk d;
    struct stub *peer[PEERS];
    int connections = 0;
    desk_open(&d);
    http_keep_all(d.http);
    for (int i = 0; i < PEERS; i++)
        peer[i] = stub_open(say_nothing_much, NULL);
    for (int i = 0; i < TURNS * PEERS; i++)
        ask_stub(&d, peer[i % PEERS], false);
    for (int i = 0; i < PEERS; i++)
        connections += stub_connections(peer[i]);
    cr_assert_eq(connections, PEERS);
    desk_close(&d);
    for (int i = 0; i < PEERS; i++)
        stub_free(peer[i]);
}

Test(http, who_does_not_ask_for_that_keeps_some_connections_and_not_one_to_each_peer, .timeout = 60)
{
    enum { PEERS = 24 };
    struct desk d;
    struct stub *peer[PEERS];
    int kept = 0;
    desk_open(&d);
    for (int i = 0; i < PEERS; i++)
        ask_stub(&d, peer[i] = stub_open(say_nothing_much, NULL), false);
    for (int i = 0; i < PEERS; i++)
        kept += open_to(stub_port(peer[i]));
    cr_assert_lt(kept, PEERS);
    desk_close(&d);
    for (int i = 0; i < PEERS; i++)
        stub_free(peer[i]);
}
