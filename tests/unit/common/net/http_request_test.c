#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/net/http.h"
#include "tests/unit/common/net/stub.h"

struct desk {
    struct loop *loop;
    struct http *http;
    struct stub *stub;
    char url[128], seen[64], etag[64], why[256], heard_head[4096];
    struct str heard, body;
    enum http_outcome outcome;
    int status, under_way, decline_after;
};

static void header_came(void *ctx, int status, const char *name, const char *value)
{
    struct desk *d = ctx;
    (void)status;
    if (!strcasecmp(name, "ETag"))
        text_copy(d->etag, sizeof d->etag, value);
}

static int body_came(void *ctx, int status, const void *bytes, size_t count)
{
    struct desk *d = ctx;
    cr_assert_geq(status, 200);
    str_add(&d->body, bytes, count);
    return d->decline_after && d->body.length >= (size_t)d->decline_after ? -1 : 0;
}

static void done(void *ctx, const struct http_answer *answer)
{
    struct desk *d = ctx;
    d->outcome = answer->outcome;
    d->status = answer->status;
    text_copy(d->why, sizeof d->why, answer->why);
    d->under_way--;
}

/* Tells what was heard in the body of the answer. */
static enum stub_then echo(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    text_copy(d->seen, sizeof d->seen, request->method);
    text_copy(d->heard_head, sizeof d->heard_head, request->head);
    stub_say(answer, 200, "ETag:  \"abc\" \r\n", request->body, request->body_length);
    return STUB_KEEP;
}

static void desk_open(struct desk *d, stub_reply reply)
{
    *d = (struct desk){.body = str_init(64 << 20)};
    cr_assert_eq(loop_open(&d->loop, NULL), 0);
    cr_assert_eq(http_open(&d->http, d->loop, NULL), 0);
    d->stub = stub_open(reply, d);
    snprintf(d->url, sizeof d->url, "http://127.0.0.1:%d/a%%20b/..?x=1", stub_port(d->stub));
}

static void desk_close(struct desk *d)
{
    http_free(d->http);
    loop_free(d->loop);
    stub_free(d->stub);
    str_clear(&d->body);
}

static struct http_request request_of(struct desk *d, const char *method)
{
    return (struct http_request){.method = method,
                                 .url = d->url,
                                 .header_came = header_came,
                                 .body_came = body_came,
                                 .done = done,
                                 .ctx = d};
}

static void go(struct desk *d, const struct http_request *request)
{
    str_reset(&d->body);
    d->under_way++;
    cr_assert_eq(http_start(d->http, NULL, request, NULL), 0);
    while (d->under_way)
        loop_turn(d->loop, true);
}

Test(http_request, a_body_goes_out_from_several_runs_of_memory)
{
    struct desk d;
    desk_open(&d, echo);
    enum { LARGE = 3 << 20 };
    char *large = malloc(LARGE);
    for (int i = 0; i < LARGE; i++)
        large[i] = (char)(i * 31 >> 3);
    struct http_run run[] = {{"head", 4}, {NULL, 0}, {large, LARGE}, {"tail", 4}};
    struct http_request put = request_of(&d, "PUT");
    put.body = run;
    put.runs = 4;
    go(&d, &put);
    cr_assert_eq(d.outcome, HTTP_ANSWERED, "%s", d.why);
    cr_assert_str_eq(d.seen, "PUT");
    cr_assert_str_eq(d.etag, "\"abc\"");
    cr_assert_eq(d.body.length, (size_t)LARGE + 8);
    cr_assert(!memcmp(d.body.data, "head", 4) && !memcmp(d.body.data + 4, large, LARGE) &&
              !memcmp(d.body.data + 4 + LARGE, "tail", 4));
    free(large);
    desk_close(&d);
}

Test(http_request, what_is_sent_is_what_was_asked_for_and_no_more)
{
    struct desk d;
    desk_open(&d, echo);
    const char *header[] = {"x-one: 1", "x-empty:"};
    static const char *const methods[] = {"GET", "POST", "PUT", "DELETE"};
    for (int i = 0; i < 4; i++) {
        struct http_request request = request_of(&d, methods[i]);
        request.header = header;
        request.headers = 2;
        go(&d, &request);
        cr_assert_eq(d.status, 200, "%s", d.why);
        cr_assert_str_eq(d.seen, methods[i]);
        cr_assert(strstr(d.heard_head, "/a%20b/..?x=1 HTTP/1.1\r\n"), "%s", d.heard_head);
        cr_assert(strstr(d.heard_head, "x-one: 1\r\n") && strstr(d.heard_head, "x-empty:\r\n"), "%s",
                  d.heard_head);
        cr_assert(!strstr(d.heard_head, "Expect") && !strstr(d.heard_head, "Content-Type"));
        cr_assert_eq(!strstr(d.heard_head, "Content-Length: 0"), i == 0 || i == 3);
    }
    cr_assert_eq(stub_connections(d.stub), 1);
    desk_close(&d);
}

static enum stub_then head_only(void *ctx, const struct stub_request *request, struct str *answer)
{
    (void)ctx;
    cr_assert_str_eq(request->method, "HEAD");
    str_adds(answer, "HTTP/1.1 200 OK\r\nContent-Length: 123456\r\nETag: \"h\"\r\n\r\n");
    return STUB_KEEP;
}

Test(http_request, a_head_has_no_body_whatever_length_it_tells)
{
    struct desk d;
    desk_open(&d, head_only);
    struct http_request head = request_of(&d, "HEAD");
    go(&d, &head);
    go(&d, &head);
    cr_assert_eq(d.outcome, HTTP_ANSWERED, "%s", d.why);
    cr_assert_eq(d.body.length, 0);
    cr_assert_str_eq(d.etag, "\"h\"");
    desk_close(&d);
}

static enum stub_then cut(void *ctx, const struct stub_request *request, struct str *answer)
{
    (void)ctx, (void)request;
    str_adds(answer, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
    return STUB_CLOSE;
}

Test(http_request, a_body_cut_short_is_broken_and_what_came_was_told)
{
    struct desk d;
    desk_open(&d, cut);
    struct http_request get = request_of(&d, "GET");
    go(&d, &get);
    cr_assert_eq(d.outcome, HTTP_BROKEN);
    cr_assert_neq(d.why[0], 0);
    cr_assert_str_eq(str_text(&d.body), "only this");
    desk_close(&d);
}

static enum stub_then reset(void *ctx, const struct stub_request *request, struct str *answer)
{
    (void)ctx, (void)request, (void)answer;
    return STUB_RESET;
}

static enum stub_then silence(void *ctx, const struct stub_request *request, struct str *answer)
{
    (void)ctx, (void)request;
    str_adds(answer, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nthen nothing");
    return STUB_HANG;
}

Test(http_request, a_reset_is_broken)
{
    struct desk d;
    desk_open(&d, reset);
    struct http_request get = request_of(&d, "GET");
    go(&d, &get);
    cr_assert_eq(d.outcome, HTTP_BROKEN);
    desk_close(&d);
}

Test(http_request, silence_ends_a_request_by_either_limit)
{
    struct desk d;
    desk_open(&d, silence);
    struct http_request get = request_of(&d, "GET");
    get.silent_within = RM_S;
    go(&d, &get);
    cr_assert_eq(d.outcome, HTTP_SILENT, "%s", d.why);
    get.silent_within = 0;
    get.within = 100 * RM_MS;
    go(&d, &get);
    cr_assert_eq(d.outcome, HTTP_SILENT, "%s", d.why);
    desk_close(&d);
}

Test(http_request, who_hears_the_body_may_decline_the_rest)
{
    struct desk d;
    desk_open(&d, echo);
    struct http_run run = {"0123456789", 10};
    struct http_request post = request_of(&d, "POST");
    post.body = &run;
    post.runs = 1;
    d.decline_after = 5;
    go(&d, &post);
    cr_assert_eq(d.outcome, HTTP_DECLINED);
    cr_assert_eq(d.status, 200);
    desk_close(&d);
}

static enum stub_then elsewhere(void *ctx, const struct stub_request *request, struct str *answer)
{
    (void)ctx, (void)request;
    stub_say(answer, 301, "Location: http://127.0.0.1:1/\r\n", "gone", 4);
    return STUB_KEEP;
}

Test(http_request, a_redirect_is_an_answer_like_others)
{
    struct desk d;
    desk_open(&d, elsewhere);
    struct http_request get = request_of(&d, "GET");
    go(&d, &get);
    cr_assert_eq(d.outcome, HTTP_ANSWERED);
    cr_assert_eq(d.status, 301);
    desk_close(&d);
}

Test(http_request, what_is_cancelled_never_comes_to_an_end)
{
    struct desk d;
    desk_open(&d, silence);
    struct http_request get = request_of(&d, "GET");
    struct http_call *call;
    cr_assert_eq(http_start(d.http, &call, &get, NULL), 0);
    while (!d.body.length)
        loop_turn(d.loop, true);
    http_cancel(call);
    d.under_way = 1;
    loop_turn(d.loop, false);
    cr_assert_eq(d.under_way, 1);
    desk_close(&d);
}

Test(http_request, a_server_without_a_trusted_certificate_is_not_asked)
{
    struct desk d;
    desk_open(&d, echo);
    snprintf(d.url, sizeof d.url, "https://127.0.0.1:%d/", stub_port(d.stub));
    struct http_request get = request_of(&d, "GET");
    get.ca_file = "/nonexistent/ca.pem";
    go(&d, &get);
    cr_assert_eq(d.outcome, HTTP_UNTRUSTED, "%s", d.why);
    cr_assert_eq(stub_requests(d.stub), 0);
    desk_close(&d);
}
