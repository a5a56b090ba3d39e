#include "common/kube/lease.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/clock.h"
#include "tests/unit/common/net/stub.h"

static const rm_time every = 200 * RM_MS; /* 5 of it are more than a busy machine takes to get to a thread */

/* An API server with one lease in it. */
struct court {
    struct stub *stub;
    pthread_mutex_t lock;
    bool there, broken;
    char holder[64], label[64];
    int version, seconds, transitions, writes, conflicts;
};

static void say_lease(struct court *court, int status, struct str *out)
{
    char body[512];
    int n = snprintf(
        body, sizeof body,
        "{\"metadata\":{\"name\":\"l\",\"resourceVersion\":\"%d\"},\"spec\":{\"holderIdentity\":\"%s\","
        "\"leaseDurationSeconds\":%d,\"leaseTransitions\":%d}}",
        court->version, court->holder, court->seconds, court->transitions);
    stub_say(out, status, "", body, (size_t)n);
}

static void take(struct court *court, const struct stub_request *request, struct str *out)
{
    struct js *lease = js_parse(request->body, request->body_length, "lease", NULL);
    const struct js *spec = js_get(lease, "spec");
    const struct js *metadata = js_get(lease, "metadata");
    const char *version = js_as_string(js_get(metadata, "resourceVersion"));
    const char *label = js_as_string(js_get(js_get(metadata, "labels"), "example.invalid/of"));
    int64_t seconds = 0, transitions = 0;
    bool creates = !strcmp(request->method, "POST");
    if (creates ? court->there : !version || strtol(version, NULL, 10) != court->version) {
        court->conflicts++;
        stub_say(out, 409, "", "{\"reason\":\"Conflict\"}", 21);
    } else {
        text_copy(court->holder, sizeof court->holder, js_as_string(js_get(spec, "holderIdentity")));
        text_copy(court->label, sizeof court->label, label ? label : "");
        js_as_int(js_get(spec, "leaseDurationSeconds"), &seconds);
        js_as_int(js_get(spec, "leaseTransitions"), &transitions);
        court->seconds = (int)seconds;
        court->transitions = (int)transitions;
        court->there = true;
        court->version++;
        court->writes++;
        say_lease(court, creates ? 201 : 200, out);
    }
    js_free(lease);
}

static enum stub_then answer(void *ctx, const struct stub_request *request, struct str *out)
{
    struct court *court = ctx;
    pthread_mutex_lock(&court->lock);
    bool reads = !strcmp(request->method, "GET");
    if (court->broken)
        stub_say(out, 500, "", "{}", 2);
    else if (!reads)
        take(court, request, out);
    else if (court->there)
        say_lease(court, 200, out);
    else
        stub_say(out, 404, "", "{\"reason\":\"NotFound\"}", 21);
    pthread_mutex_unlock(&court->lock);
    return STUB_KEEP;
}

/* Somebody else writes the lease: a version of its own. */
static void write_as(struct court *court, const char *holder, int seconds)
{
    pthread_mutex_lock(&court->lock);
    text_copy(court->holder, sizeof court->holder, holder);
    court->there = true;
    court->seconds = seconds;
    court->version++;
    pthread_mutex_unlock(&court->lock);
}

static void set_broken(struct court *court)
{
    pthread_mutex_lock(&court->lock);
    court->broken = true;
    pthread_mutex_unlock(&court->lock);
}

struct candidate {
    struct loop *loop;
    struct kube *kube;
    struct kube_config config;
    struct lease *lease;
    int gained, lost, released, troubles;
};

static void changed(void *ctx, bool leading, const char *why)
{
    struct candidate *c = ctx;
    cr_assert(*why);
    cr_assert_eq(lease_leading(c->lease), leading);
    *(leading ? &c->gained : &c->lost) += 1;
}

static void trouble(void *ctx, const struct kube_answer *why)
{
    (void)why;
    ((struct candidate *)ctx)->troubles++;
}

static void released(void *ctx)
{
    ((struct candidate *)ctx)->released++;
}

static void join(struct candidate *c, struct court *court, struct loop *loop, const char *identity)
{
    struct error err = {0};
    *c = (struct candidate){.loop = loop};
    c->config.ca = c->config.cert = c->config.key = c->config.token = str_init(100);
    snprintf(c->config.server, sizeof c->config.server, "http://127.0.0.1:%d", stub_port(court->stub));
    struct kube_options options = {.config = &c->config, .manager = "us"};
    cr_assert_eq(kube_open(&c->kube, loop, &options, &err), 0, "%s", err.text);
    struct lease_options wanted = {.kube = c->kube,
                                   .namespace = "n",
                                   .name = "l",
                                   .identity = identity,
                                   .label = "example.invalid/of",
                                   .value = identity,
                                   .every = every,
                                   .changed = changed,
                                   .trouble = trouble,
                                   .ctx = c};
    cr_assert_eq(lease_open(&c->lease, loop, &wanted, &err), 0, "%s", err.text);
}

static void go(struct candidate *c)
{
    lease_free(c->lease);
    kube_free(c->kube);
}

static struct court court;
static struct loop *loop;

static void setup(void)
{
    court = (struct court){.stub = stub_open(answer, &court)};
    pthread_mutex_init(&court.lock, NULL);
    cr_assert_eq(loop_open(&loop, NULL), 0);
}

static void teardown(void)
{
    loop_free(loop);
    stub_free(court.stub);
}

TestSuite(lease, .init = setup, .fini = teardown, .timeout = 60);

static void until(const int *count, int wanted)
{
    while (*count < wanted)
        loop_turn(loop, true);
}

/* So many of the court's writes: renewals. */
static void until_written(int wanted)
{
    for (int writes = 0; writes < wanted;) {
        loop_turn(loop, true);
        pthread_mutex_lock(&court.lock);
        writes = court.writes;
        pthread_mutex_unlock(&court.lock);
    }
}

Test(lease, the_first_makes_it_renews_it_and_gives_it_back)
{
    struct candidate a;
    join(&a, &court, loop, "a");
    until(&a.gained, 1);
    cr_assert_str_eq(court.holder, "a");
    until_written(4);
    cr_assert(lease_leading(a.lease));
    cr_assert_eq(a.gained + a.lost, 1);
    lease_release(a.lease, released);
    cr_assert_not(lease_leading(a.lease));
    until(&a.released, 1);
    cr_assert_str_eq(court.holder, "");
    go(&a);
}

Test(lease, its_label_is_there_while_it_is_held_and_when_it_was_given_back)
{
    struct candidate a;
    write_as(&court, "", 1); /* of an older version, which gave it none */
    join(&a, &court, loop, "a");
    until(&a.gained, 1);
    cr_assert_str_eq(court.label, "a");
    until_written(3);
    cr_assert_str_eq(court.label, "a");
    lease_release(a.lease, released);
    until(&a.released, 1);
    cr_assert_str_eq(court.holder, "");
    cr_assert_str_eq(court.label, "a");
    go(&a);
}

Test(lease, it_is_given_back_although_a_renewal_came_through_whose_answer_nobody_waited_for)
{
    struct candidate a;
    join(&a, &court, loop, "a");
    until(&a.gained, 1);
    write_as(&court, "a", 1);
    lease_release(a.lease, released);
    until(&a.released, 1);
    cr_assert_str_eq(court.holder, "");
    cr_assert_eq(court.conflicts, 1);
    go(&a);
}

Test(lease, one_that_another_has_by_now_is_left_to_him_who_has_it)
{
    struct candidate a;
    join(&a, &court, loop, "a");
    until(&a.gained, 1);
    write_as(&court, "b", 1);
    lease_release(a.lease, released);
    until(&a.released, 1);
    cr_assert_str_eq(court.holder, "b");
    go(&a);
}

Test(lease, the_second_waits_and_takes_over_what_is_given_back)
{
    struct candidate a, b;
    join(&a, &court, loop, "a");
    until(&a.gained, 1);
    join(&b, &court, loop, "b");
    until_written(15); /* longer than a promise of 2 s: b has looked many times */
    cr_assert_eq(b.gained, 0);
    cr_assert_str_eq(lease_holder(b.lease), "a");
    lease_release(a.lease, released);
    until(&b.gained, 1);
    cr_assert_str_eq(court.holder, "b");
    cr_assert_eq(court.transitions, 2);
    go(&a);
    go(&b);
}

Test(lease, one_that_does_not_change_for_as_long_as_it_promises_is_taken_over)
{
    struct candidate b;
    write_as(&court, "dead", 1);
    rm_time begun = clock_now();
    join(&b, &court, loop, "b");
    until(&b.gained, 1);
    cr_assert_geq(clock_now() - begun, RM_S, "not before");
    go(&b);
}

Test(lease, a_holder_that_can_not_renew_stops_by_itself)
{
    struct candidate a;
    join(&a, &court, loop, "a");
    until(&a.gained, 1);
    set_broken(&court);
    until(&a.lost, 1);
    cr_assert_geq(a.troubles, 1);
    cr_assert_not(lease_leading(a.lease));
    go(&a);
}

Test(lease, a_holder_that_finds_another_in_its_place_stops_and_overwrites_nothing)
{
    struct candidate a;
    join(&a, &court, loop, "a");
    until(&a.gained, 1);
    write_as(&court, "thief", 100);
    until(&a.lost, 1);
    cr_assert_str_eq(court.holder, "thief");
    go(&a);
}

Test(lease, a_holder_that_stood_still_does_not_think_that_it_leads)
{
    struct candidate a;
    join(&a, &court, loop, "a");
    until(&a.gained, 1);
    for (rm_time begun = clock_now(); clock_now() - begun < 6 * every;)
        ; /* as a process that was stopped: its loop doesn't turn */
    cr_assert_not(lease_leading(a.lease), "asked before any timer could tell");
    until(&a.lost, 1);
    go(&a);
}
