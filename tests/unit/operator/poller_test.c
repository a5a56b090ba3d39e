#include "operator/poller.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/net/ws.h"
#include "common/os/clock.h"
#include "tests/unit/common/net/stub.h"

/* A coordinator that says what its test wants. */
struct desk {
    struct loop *loop;
    struct http *http;
    struct stub *stub;
    struct answers *answers;
    struct poller *poller;
    const char *body, *headers;
    int status;
    struct str asked;
    int told, failed, term;
    int silent_at; /* the number of the request that gets no answer; 0: each gets one */
    int64_t revision;
    char why[256];
};

static enum stub_then answer(void *ctx, const struct stub_request *request, struct str *out)
{
    struct desk *d = ctx;
    str_addf(&d->asked, "%s ", request->target);
    if (d->silent_at && --d->silent_at == 0)
        return STUB_HANG;
    stub_say(out, d->status, d->headers, d->body, strlen(d->body));
    return STUB_KEEP;
}

static void told(void *ctx, struct coordinator_view *view)
{
    struct desk *d = ctx;
    d->told++;
    d->revision = view->revision;
    d->term = view->term;
    free(view);
}

static void failed(void *ctx, rm_time asked_at, const char *why)
{
    struct desk *d = ctx;
    cr_assert_gt(asked_at, 0);
    d->failed++;
    text_copy(d->why, sizeof d->why, why);
}

/* Anew, in the line of all. */
static void ask_in_line(struct desk *d, struct bucket *pace)
{
    struct poller_options options = {.http = d->http,
                                     .answers = d->answers,
                                     .pace = pace,
                                     .port = stub_port(d->stub),
                                     .told = told,
                                     .failed = failed,
                                     .ctx = d};
    poller_free(d->poller);
    cr_assert_eq(poller_open(&d->poller, d->loop, &options, NULL), 0);
    poller_ask(d->poller, "u1", "127.0.0.1", 3);
}

static void desk_open(struct desk *d, int status, const char *body)
{
    *d = (struct desk){.status = status, .body = body, .headers = "", .asked = str_init(1 << 16)};
    cr_assert_eq(loop_open(&d->loop, NULL), 0);
    cr_assert_eq(http_open(&d->http, d->loop, NULL), 0);
    cr_assert_eq(answers_open(&d->answers, d->loop, NULL), 0);
    d->stub = stub_open(answer, d);
    ask_in_line(d, NULL);
}

static void desk_close(struct desk *d)
{
    poller_free(d->poller);
    answers_free(d->answers);
    http_free(d->http);
    loop_free(d->loop);
    stub_free(d->stub);
    str_clear(&d->asked);
}

TestSuite(poller, .timeout = 60);

static const char good[] = "{\"revision\":17,\"job\":\"u1\",\"term\":3,\"state\":\"Training\"}";

Test(poller, names_the_revision_that_it_knows)
{
    struct desk d;
    desk_open(&d, 200, good);
    while (d.told < 2)
        loop_turn(d.loop, true);
    cr_assert_str_eq(str_text(&d.asked), "/v1/status /v1/status?after=17 ");
    cr_assert_eq(d.revision, 17);
    cr_assert_eq(d.failed, 0);
    desk_close(&d);
}

/* Each takes its place in the line of all, and one that has none yet is not asked. */
Test(poller, its_questions_stand_in_line_with_those_to_others)
{
    struct desk d;
    desk_open(&d, 200, good);
    struct bucket pace = bucket_init(1e-6, 3, loop_now(d.loop));
    ask_in_line(&d, &pace);
    while (d.told < 3)
        loop_turn(d.loop, true);
    cr_assert_lt(pace.tokens, 0, "three were asked, and the fourth one waits for its turn");
    desk_close(&d);
}

/* Behind ten thousand others it would come too late. */
Test(poller, what_is_new_to_be_said_waits_for_no_place_in_that_line)
{
    struct desk d;
    desk_open(&d, 200, good);
    struct bucket pace = bucket_init(1e-6, 1, loop_now(d.loop));
    ask_in_line(&d, &pace);
    while (d.told < 1)
        loop_turn(d.loop, true);
    poller_say(d.poller, "relieve=2.1");
    while (d.told < 2)
        loop_turn(d.loop, true);
    cr_assert_str_eq(str_text(&d.asked), "/v1/status /v1/status?after=17&relieve=2.1 ");
    desk_close(&d);
}

Test(poller, what_is_new_to_be_said_makes_nobody_asked_whom_nobody_asks)
{
    struct desk d;
    desk_open(&d, 200, good);
    poller_ask(d.poller, "u1", "", 0);
    poller_say(d.poller, "relieve=2.1");
    for (int i = 0; i < 20; i++)
        loop_turn(d.loop, false);
    cr_assert_eq(stub_requests(d.stub), 0);
    cr_assert_eq(d.failed, 0);
    desk_close(&d);
}

Test(poller, asks_in_vain_from_the_first_question_without_an_answer_until_one_is_answered)
{
    struct desk d;
    desk_open(&d, 200, good);
    cr_assert_eq(poller_in_vain_since(NULL), 0);
    cr_assert_eq(poller_in_vain_since(d.poller), 0, "it was not asked yet");
    while (d.told < 1)
        loop_turn(d.loop, true);
    cr_assert_eq(poller_in_vain_since(d.poller), 0, "the next question is not due yet");
    d.silent_at = 1;
    while (stub_requests(d.stub) < 2)
        loop_turn(d.loop, false);
    rm_time since = poller_in_vain_since(d.poller);
    cr_assert_gt(since, 0);
    d.status = 503;
    poller_say(d.poller, "relieve=2.1");
    while (!d.failed)
        loop_turn(d.loop, true);
    cr_assert_eq(poller_in_vain_since(d.poller), since, "neither another word nor a failure is an answer");
    d.status = 200;
    while (d.told < 2)
        loop_turn(d.loop, true);
    cr_assert_eq(poller_in_vain_since(d.poller), 0);
    poller_ask(d.poller, "u1", "127.0.0.1", 4);
    cr_assert_eq(poller_in_vain_since(d.poller), 0);
    desk_close(&d);
}

/* So that what a long job's coordinator remembers comes once, and not with each answer. */
Test(poller, of_events_that_were_handed_on_it_says_so_to_the_coordinator_whose_they_are)
{
    struct desk d;
    desk_open(&d, 200, good);
    poller_told(d.poller, 3, 41);
    while (d.told < 1)
        loop_turn(d.loop, true);
    poller_say(d.poller, "relieve=2.1");
    while (d.told < 2)
        loop_turn(d.loop, true);
    poller_ask(d.poller, "u1", "127.0.0.1", 4);
    while (!d.failed) /* the one that answers is still of term 3 */
        loop_turn(d.loop, true);
    cr_assert_str_eq(str_text(&d.asked),
                     "/v1/status?told=41 /v1/status?after=17&told=41&relieve=2.1 /v1/status?relieve=2.1 ",
                     "another term's events have sequences of their own");
    desk_close(&d);
}

/* Stands before all answers, until the poller's has come behind it. */
struct herald {
    struct desk *desk;
    struct answers_place place;
    void (*does)(struct desk *desk);
    bool done;
};

static void look_behind(void *ctx)
{
    struct herald *h = ctx;
    bool asked = stub_requests(h->desk->stub) > 0;
    if (asked && poller_in_vain_since(h->desk->poller) == 0) {
        h->does(h->desk);
        h->done = true;
    } else {
        answers_add(h->desk->answers, &h->place);
    }
}

/* does: while the answer to the first question waits to be read. */
static void act_before_it_is_read(struct desk *d, void (*does)(struct desk *desk))
{
    struct herald herald = {.desk = d, .does = does};
    herald.place = (struct answers_place){.read = look_behind, .ctx = &herald};
    answers_add(d->answers, &herald.place);
    while (!herald.done)
        loop_turn(d->loop, true);
}

static void say_relief(struct desk *d)
{
    cr_assert_eq(d->told, 0);
    poller_say(d->poller, "relieve=2.1");
}

static void ask_another(struct desk *d)
{
    cr_assert_eq(d->told, 0);
    poller_ask(d->poller, "u1", "", 0);
}

Test(poller, what_is_new_to_be_said_while_an_answer_waits_to_be_read_is_said_behind_it)
{
    struct desk d;
    desk_open(&d, 200, good);
    struct bucket pace = bucket_init(1e-6, 1, loop_now(d.loop));
    ask_in_line(&d, &pace);
    act_before_it_is_read(&d, say_relief);
    while (d.told < 2)
        loop_turn(d.loop, true);
    cr_assert_str_eq(str_text(&d.asked), "/v1/status /v1/status?after=17&relieve=2.1 ");
    cr_assert_eq(d.failed, 0);
    desk_close(&d);
}

Test(poller, an_answer_of_one_who_is_not_asked_any_more_is_not_read)
{
    struct desk d;
    desk_open(&d, 200, good);
    act_before_it_is_read(&d, ask_another);
    for (int i = 0; i < 20; i++)
        loop_turn(d.loop, false);
    cr_assert_eq(d.told, 0);
    cr_assert_eq(stub_requests(d.stub), 1);
    desk_close(&d);
}

static void check_refused(int status, const char *body, const char *headers, const char *why)
{
    struct desk d;
    desk_open(&d, status, body);
    d.headers = headers;
    while (!d.failed && !d.told)
        loop_turn(d.loop, true);
    cr_expect_eq(d.told, 0);
    cr_expect_not_null(strstr(d.why, why), "\"%s\" lacks \"%s\"", d.why, why);
    desk_close(&d);
}

Test(poller, another_jobs_or_terms_word_is_not_taken)
{
    check_refused(200, "{\"revision\":1,\"job\":\"u2\",\"term\":3}", "", "of job u2, term 3");
    check_refused(200, "{\"revision\":1,\"job\":\"u1\",\"term\":2}", "", "of job u1, term 2");
}

Test(poller, follows_nobody_and_reads_no_nonsense)
{
    check_refused(302, "", "Location: http://127.0.0.1:1/\r\n", "status 302");
    check_refused(200, "<html>", "", "not valid JSON");
    check_refused(404, "{}", "", "status 404");
}

Test(poller, stops_reading_at_64_kib)
{
    static char much[OP_ANSWER_MAX + 100];
    memset(much, ' ', sizeof much - 1);
    memcpy(much, good, sizeof good - 1);
    check_refused(200, much, "", "");
}

Test(poller, a_new_term_is_asked_at_its_own_place_and_nobody_means_silence)
{
    struct desk d;
    desk_open(&d, 200, good);
    d.silent_at = 2; /* so that it is known to be under way when the term changes */
    while (stub_requests(d.stub) < 2)
        loop_turn(d.loop, false);
    poller_ask(d.poller, "u1", "127.0.0.1", 4);
    while (!d.failed) /* the one that answers is still of term 3 */
        loop_turn(d.loop, true);
    cr_assert_eq(d.told, 1);
    cr_assert_str_eq(str_text(&d.asked), "/v1/status /v1/status?after=17 /v1/status ",
                     "a new term's revisions are its own");
    poller_ask(d.poller, "u1", "", 0);
    for (int i = 0; i < 20; i++)
        loop_turn(d.loop, false);
    cr_assert_eq(stub_requests(d.stub), 3);
    desk_close(&d);
}

/* A question that waits for news is asked anew, and what was said is taken back. */
Test(poller, says_what_it_is_to_say_until_that_is_something_else)
{
    struct desk d;
    desk_open(&d, 200, good);
    d.silent_at = 2;
    while (stub_requests(d.stub) < 2)
        loop_turn(d.loop, false);
    poller_say(d.poller, "relieve=2.1&stay=3");
    while (d.told < 3)
        loop_turn(d.loop, true);
    poller_say(d.poller, "");
    while (d.told < 5)
        loop_turn(d.loop, true);
    cr_assert_str_eq(str_text(&d.asked),
                     "/v1/status /v1/status?after=17 /v1/status?after=17&relieve=2.1&stay=3 "
                     "/v1/status?after=17&relieve=2.1&stay=3 /v1/status?after=17&relieve= "
                     "/v1/status?after=17 ");
    cr_assert_eq(d.failed, 0);
    desk_close(&d);
}

/* It may have been heard, and is taken back until an answer shows that that was heard, too. */
Test(poller, what_was_said_with_a_question_that_failed_is_taken_back_as_well)
{
    struct desk d;
    desk_open(&d, 200, good);
    while (d.told < 1)
        loop_turn(d.loop, true);
    d.status = 500;
    poller_say(d.poller, "relieve=2.1");
    while (d.failed < 1)
        loop_turn(d.loop, true);
    poller_say(d.poller, "");
    while (d.failed < 2)
        loop_turn(d.loop, true);
    d.status = 200;
    while (d.told < 3)
        loop_turn(d.loop, true);
    cr_assert_str_eq(str_text(&d.asked),
                     "/v1/status /v1/status?after=17&relieve=2.1 /v1/status?after=17&relieve= "
                     "/v1/status?after=17&relieve= /v1/status?after=17 ");
    desk_close(&d);
}

static int page(void *ctx, const struct ws_get *get, struct str *body, const char **type)
{
    struct desk *d = ctx;
    str_addf(&d->asked, "%s ", get->path);
    str_adds(body, d->body);
    *type = "application/json";
    return 200;
}

Test(poller, a_coordinator_whose_address_is_of_ipv6_is_asked_there)
{
    struct desk d = {.body = good, .asked = str_init(1 << 16)};
    struct ws *ws;
    struct ws_options server = {
        .address = "::1", .strangers_max = 4, .watchers_max = 4, .get = page, .ctx = &d};
    cr_assert_eq(loop_open(&d.loop, NULL), 0);
    cr_assert_eq(http_open(&d.http, d.loop, NULL), 0);
    cr_assert_eq(answers_open(&d.answers, d.loop, NULL), 0);
    if (ws_open(&ws, d.loop, &server, NULL) < 0)
        cr_skip("no IPv6 here");
    struct poller_options options = {
        .http = d.http, .answers = d.answers, .port = ws_port(ws), .told = told, .failed = failed, .ctx = &d};
    cr_assert_eq(poller_open(&d.poller, d.loop, &options, NULL), 0);
    poller_ask(d.poller, "u1", "::1", 3);
    while (!d.told && !d.failed)
        loop_turn(d.loop, true);
    cr_assert_eq(d.failed, 0, "%s", d.why);
    cr_assert_str_eq(str_text(&d.asked), "/v1/status ");
    poller_free(d.poller);
    answers_free(d.answers);
    ws_free(ws);
    http_free(d.http);
    loop_free(d.loop);
    str_clear(&d.asked);
}
