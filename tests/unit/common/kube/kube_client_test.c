#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/common/kube/play.h"

#define SCENES(list) list, (int)(sizeof(list) / sizeof(list)[0])

/* Logs "[outcome reason: message name retry]". */
static void log_answer(void *ctx, const struct kube_answer *answer)
{
    struct play *play = ctx;
    const char *name = js_as_string(js_get(js_get(answer->object, "metadata"), "name"));
    str_addf(&play->log, "[%s %s %s %s %lld]", kube_outcome_name(answer->outcome), answer->reason,
             answer->message, name ? name : "-", (long long)(answer->retry_after / RM_S));
}

static struct kube_call *ask(struct play *play, struct kube_request request)
{
    struct kube_call *call;
    struct error err = {0};
    request.done = log_answer;
    request.ctx = play;
    cr_assert_eq(kube_send(play->kube, &call, &request, &err), 0, "%s", err.text);
    return call;
}

static void check_asked(struct play *play, const char *wanted)
{
    cr_expect_str_eq(str_text(&play->asked), wanted);
}

static const char pod[] = "{\"metadata\":{\"name\":\"p\"}}";

/* What was asked of the stub, which is both the server under that name and the proxy. */
static void check_way(const char *host, const char *unproxied, const char *wanted)
{
    char proxy[64], target[128];
    const struct scene scenes[] = {{.method = "GET", .target = "", .status = 200, .body = pod}};
    struct play play;
    play_open(&play, SCENES(scenes), 0, 0);
    snprintf(play.config.server, sizeof play.config.server, "http://%s:%d", host, stub_port(play.stub));
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", stub_port(play.stub));
    setenv("http_proxy", proxy, 1);
    setenv("no_proxy", unproxied, 1);
    ask(&play, (struct kube_request){.resource = &kube_pods, .namespace = "a", .name = "p"});
    play_until(&play, "[ok   p 0]");
    snprintf(target, sizeof target, wanted, stub_port(play.stub));
    check_asked(&play, target);
    play_close(&play);
}

Test(client, the_environment_says_through_which_proxy_the_api_server_is_reached_and_never_this_machine)
{
    check_way("0.0.0.0", "", "GET http://0.0.0.0:%d/api/v1/namespaces/a/pods/p  \n");
    check_way("0.0.0.0", "10.0.0.0/8,0.0.0.0/16", "GET /api/v1/namespaces/a/pods/p  \n");
    check_way("127.0.0.1", "", "GET /api/v1/namespaces/a/pods/p  \n");
}

Test(client, each_verb_is_the_request_that_the_api_server_knows)
{
    const struct scene scenes[] = {
        {.method = "GET", .target = "", .status = 200, .body = pod},
        {.method = "POST", .target = "", .status = 201, .body = pod},
        {.method = "PATCH", .target = "", .status = 200, .body = pod},
        {.method = "PATCH", .target = "", .status = 200, .body = pod},
        {.method = "PUT", .target = "", .status = 200, .body = pod},
        {.method = "DELETE", .target = "", .status = 200, .body = pod},
    };
    struct play play;
    play_open(&play, SCENES(scenes), 0, 0);
    struct kube_request base = {.resource = &kube_pods, .namespace = "a", .name = "p"}, request = base;
    ask(&play, request);
    play_until(&play, "[ok   p 0]");
    request = (struct kube_request){
        .verb = KUBE_CREATE, .resource = &kube_pods, .namespace = "a", .body = "{\"x\":1}", .dry_run = true};
    ask(&play, request);
    play_until(&play, "][ok   p 0]");
    request = base;
    request.verb = KUBE_APPLY;
    request.body = "{\"x\":2}";
    ask(&play, request);
    play_until(&play, "][ok   p 0][ok   p 0]");
    request.verb = KUBE_MERGE;
    ask(&play, request);
    play_until(&play, "][ok   p 0][ok   p 0][ok   p 0]");
    request.verb = KUBE_UPDATE;
    request.subresource = "status";
    ask(&play, request);
    play_until(&play, "][ok   p 0][ok   p 0][ok   p 0][ok   p 0]");
    request = base;
    request.verb = KUBE_DELETE;
    request.uid = "u-1";
    request.grace_s = 7;
    ask(&play, request);
    play_until(&play, "][ok   p 0][ok   p 0][ok   p 0][ok   p 0][ok   p 0]");
    check_asked(&play,
                "GET /api/v1/namespaces/a/pods/p  \n"
                "POST /api/v1/namespaces/a/pods?fieldManager=us&dryRun=All application/json {\"x\":1}\n"
                "PATCH /api/v1/namespaces/a/pods/p?fieldManager=us&force=true application/apply-patch+yaml "
                "{\"x\":2}\n"
                "PATCH /api/v1/namespaces/a/pods/p?fieldManager=us application/merge-patch+json {\"x\":2}\n"
                "PUT /api/v1/namespaces/a/pods/p/status?fieldManager=us application/json {\"x\":2}\n"
                "DELETE /api/v1/namespaces/a/pods/p application/json {\"apiVersion\":\"v1\",\"kind\":"
                "\"DeleteOptions\",\"propagationPolicy\":\"Background\",\"gracePeriodSeconds\":7,"
                "\"preconditions\":{\"uid\":\"u-1\"}}\n");
    play_close(&play);
}

Test(client, a_create_that_came_second_can_read_what_is_there)
{
    const struct scene scenes[] = {
        {.method = "POST", .target = "pods", .status = 409, .body = "{\"reason\":\"AlreadyExists\"}"},
        {.method = "GET", .target = "pods/p", .status = 200, .body = pod},
    };
    struct play play;
    play_open(&play, SCENES(scenes), 0, 0);
    /* The name stands in the request, for the reading; the POST goes to the collection. */
    ask(&play, (struct kube_request){.verb = KUBE_CREATE,
                                     .resource = &kube_pods,
                                     .namespace = "a",
                                     .name = "p",
                                     .body = pod,
                                     .read_existing = true});
    play_until(&play, "[exists   p 0]");
    check_asked(&play, "POST /api/v1/namespaces/a/pods?fieldManager=us application/json "
                       "{\"metadata\":{\"name\":\"p\"}}\nGET /api/v1/namespaces/a/pods/p  \n");
    play_close(&play);
}

Test(client, a_refusal_keeps_the_servers_words_and_its_wish)
{
    const struct scene scenes[] = {
        {.method = "GET",
         .target = "",
         .status = 429,
         .headers = "Retry-After: 3\r\n",
         .body = "{\"reason\":\"TooManyRequests\",\"message\":\"slow down\"}"},
    };
    struct play play;
    play_open(&play, SCENES(scenes), 0, 0);
    ask(&play, (struct kube_request){.resource = &kube_pods, .namespace = "a", .name = "p"});
    play_until(&play, "[busy TooManyRequests slow down - 3]");
    play_close(&play);
}

static void log_outcome(void *ctx, const struct kube_answer *answer)
{
    struct play *play = ctx;
    str_addf(&play->log, "[%s]", kube_outcome_name(answer->outcome));
}

Test(client, silence_a_cut_and_nobody_there_are_unreachable)
{
    const struct scene scenes[] = {
        {.method = "GET", .target = "", .status = 200, .body = "{\"a\":", .cut = "more"},
        {.method = "GET", .target = "", .status = 200, .then = STUB_RESET},
    };
    struct play play;
    play_open(&play, scenes, 1, 0, 0);
    struct kube_request request = {.resource = &kube_pods,
                                   .namespace = "a",
                                   .name = "p",
                                   .within = 300 * RM_MS,
                                   .done = log_outcome,
                                   .ctx = &play};
    kube_send(play.kube, NULL, &request, NULL);
    play_until(&play, "[unreachable]");
    kube_send(play.kube, NULL, &request, NULL); /* the script is over: it hangs */
    play_until(&play, "[unreachable][unreachable]");
    snprintf(play.config.server, sizeof play.config.server, "http://127.0.0.1:1");
    kube_send(play.kube, NULL, &request, NULL);
    play_until(&play, "[unreachable][unreachable][unreachable]");
    play_close(&play);
}

Test(client, a_refusal_that_was_cut_is_one_all_the_same)
{
    const struct scene scenes[] = {
        {.method = "GET", .target = "", .status = 401, .body = "{\"reas", .cut = "more"},
        {.method = "GET", .target = "", .status = 409, .body = "{\"reas", .cut = "what was in the way"},
    };
    struct play play;
    play_open(&play, SCENES(scenes), 0, 0);
    struct kube_request request = {
        .resource = &kube_pods, .namespace = "a", .name = "p", .done = log_outcome, .ctx = &play};
    kube_send(play.kube, NULL, &request, NULL);
    play_until(&play, "[denied]");
    kube_send(play.kube, NULL, &request, NULL);
    play_until(&play, "[denied][unreachable]");
    play_close(&play);
}

Test(client, requests_over_the_limit_wait_and_all_go_out)
{
    struct scene scenes[31];
    struct play play;
    for (int i = 0; i < 31; i++)
        scenes[i] = (struct scene){.method = "GET", .target = "", .status = 200};
    play_open(&play, SCENES(scenes), 200, 5);
    struct kube_request request = {
        .resource = &kube_pods, .namespace = "a", .name = "p", .done = log_outcome, .ctx = &play};
    for (int i = 0; i < 30; i++)
        cr_assert_eq(kube_send(play.kube, NULL, &request, NULL), 0);
    cr_assert_eq(kube_waiting(play.kube), 30);
    for (int turns = 0; kube_waiting(play.kube) > 25; turns++)
        loop_turn(play.loop, true);
    cr_assert_geq(kube_waiting(play.kube), 20, "the burst went out at once, the others wait");
    int waiting = kube_waiting(play.kube);
    request.urgent = true;
    cr_assert_eq(kube_send(play.kube, NULL, &request, NULL), 0);
    cr_assert_eq(kube_waiting(play.kube), waiting, "what is urgent waits for nobody");
    while (play.log.length < 31 * strlen("[ok]"))
        loop_turn(play.loop, true);
    cr_assert_eq(kube_waiting(play.kube), 0);
    play_close(&play);
}

Test(client, no_more_than_a_few_dozen_are_under_way_at_once)
{
    struct scene scenes[100];
    struct play play;
    for (int i = 0; i < 100; i++)
        scenes[i] = (struct scene){.method = "GET", .target = "", .status = 200};
    play_open(&play, SCENES(scenes), 100000, 100000);
    struct kube_request request = {
        .resource = &kube_pods, .namespace = "a", .name = "p", .done = log_outcome, .ctx = &play};
    for (int i = 0; i < 100; i++)
        cr_assert_eq(kube_send(play.kube, NULL, &request, NULL), 0);
    int most = 0;
    while (play.log.length < 100 * strlen("[ok]")) {
        loop_turn(play.loop, true);
        most = kube_in_flight(play.kube) > most ? kube_in_flight(play.kube) : most;
    }
    cr_assert_eq(most, 48);
    play_close(&play);
}

/* Where the late request came among `others` that were asked for behind it; one goes out at a time. */
static int place_of_late(int others)
{
    enum { MOST = 64 };
    struct scene scenes[MOST];
    struct play play;
    int place = 0;
    for (int i = 0; i <= others; i++)
        scenes[i] = (struct scene){.method = "GET", .target = "", .status = 200};
    play_open(&play, scenes, others + 1, 200, 1);
    struct kube_request request = {.resource = &kube_pods, .namespace = "a", .name = "soon"};
    for (int i = 0; i <= others; i++) {
        request.late = i == 0;
        request.name = request.late ? "late" : "soon";
        request.done = log_outcome;
        request.ctx = &play;
        cr_assert_eq(kube_send(play.kube, NULL, &request, NULL), 0);
    }
    while (play.log.length < (size_t)(others + 1) * strlen("[ok]"))
        loop_turn(play.loop, true);
    const char *asked = str_text(&play.asked), *late = strstr(asked, "late");
    cr_assert(late);
    for (const char *at = asked; (at = strstr(at, "soon")) && at < late; at++)
        place++;
    play_close(&play);
    return place;
}

Test(client, a_late_request_lets_the_others_pass_but_not_for_ever)
{
    cr_assert_eq(place_of_late(5), 5);
    cr_assert_eq(place_of_late(40), 32);
}

Test(client, who_is_cancelled_hears_no_more)
{
    const struct scene scenes[] = {{.method = "GET", .target = "second", .status = 200}};
    struct play play;
    play_open(&play, SCENES(scenes), 0, 0);
    struct kube_request request = {.resource = &kube_pods, .namespace = "a", .name = "first"};
    struct kube_call *first = ask(&play, request);
    request.name = "second";
    ask(&play, request);
    request.name = "third";
    struct kube_call *third = ask(&play, request);
    kube_cancel(first);
    kube_cancel(third);
    cr_assert_eq(kube_waiting(play.kube), 1);
    play_until(&play, "[ok   - 0]");
    cr_assert_eq(stub_requests(play.stub), 1);
    play_close(&play);
}

Test(client, a_refused_token_is_read_again_before_the_next_request)
{
    const struct scene scenes[] = {
        {.method = "GET", .target = "", .status = 401, .body = "{\"reason\":\"Unauthorized\"}"},
        {.method = "GET", .target = "", .status = 200},
    };
    char name[] = "/tmp/kube_token_XXXXXX";
    int fd = mkstemp(name);
    struct play play;
    play_open(&play, SCENES(scenes), 0, 0);
    cr_assert_eq(write(fd, "t1\n", 3), 3);
    text_copy(play.config.token_file, sizeof play.config.token_file, name);
    play.config.token_read = loop_now(play.loop);
    struct kube_request request = {.resource = &kube_pods, .namespace = "a", .name = "p"};
    ask(&play, request);
    play_until(&play, "[denied Unauthorized {\"reason\":\"Unauthorized\"} - 0]");
    cr_assert_str_eq(str_text(&play.config.token), "t0");
    ask(&play, request);
    play_until(&play, "[ok   - 0]");
    cr_assert_str_eq(str_text(&play.config.token), "t1");
    close(fd);
    unlink(name);
    play_close(&play);
}
