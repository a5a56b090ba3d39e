/* spot.onDemandFallback: spot machines that go again and again are avoided for a while. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "cast.h"
#include "operator/core/pod.h"

enum { MINUTE = 60 * 1000 };

static struct op_slot *slot(struct cast *c, int index)
{
    return &c->job.status.workers.slot[index];
}

static struct cast *on_spot(const char *changes)
{
    struct cast *c = cast_training(changes);
    for (int i = 0; i < CAST_NODES; i++)
        c->node[i].machine.capacity = PRICE_SPOT;
    return c;
}

static struct pod_view *first(struct cast *c)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        if (slot(c, i)->state == OP_SLOT_PRESENT)
            return cast_worker(c, i);
    cr_assert_fail("nobody is there");
    return NULL;
}

static void evicted(struct pod_view *pod)
{
    text_copy(pod->disruption, sizeof pod->disruption, "EvictionByEvictionAPI");
}

/* `times` workers are evicted, one after the other, each some time after the one before. */
static void goes(struct cast *c, int times, int64_t apart_ms)
{
    for (int i = 0; i < times; i++) {
        evicted(first(c));
        cast_settle(c);
        for (int k = 0; k < RM_WORKERS_MAX; k++)
            if (slot(c, k)->state == OP_SLOT_WANTED)
                cast_pod(c, OP_WORKER, k, slot(c, k)->attempt);
        cast_settle(c);
        c->now_ms += apart_ms;
    }
}

static bool fell_back(const struct cast *c)
{
    return c->job.status.spot.fell_ms > 0;
}

/* The body of the worker's pod that the next plan makes. */
static struct str made(struct cast *c)
{
    struct str text = str_init(OP_POD_TEXT_MAX);
    struct op_plan *plan = cast_plan(c);
    for (int i = 0; i < plan->actions_count; i++)
        if (plan->action[i].kind == OP_CREATE && plan->action[i].resource == OP_PODS)
            str_adds(&text, str_text(&plan->action[i].body));
    plan_free(plan);
    return text;
}

#define SPOT "{\"spot\":{\"prefer\":true}}"

Test(operator_fallback, after_five_within_half_an_hour_new_workers_rather_go_to_other_machines)
{
    struct cast *c = on_spot(SPOT);
    goes(c, 4, MINUTE);
    cr_assert_not(fell_back(c));
    evicted(first(c));
    cr_assert(cast_says(c,
                        "warn FellBack  5 workers were interrupted on spot machines within 30 min: new ones "
                        "rather go to machines on demand, until there was no such end for 60 min"));
    cast_settle(c);
    cr_assert(fell_back(c));
    struct str body = made(c);
    cr_assert(strstr(str_text(&body), "\"ringmaster.dev/capacity\":\"fallback\""), "%s", str_text(&body));
    cr_assert(strstr(str_text(&body), "\"weight\":50,\"preference\":{\"matchExpressions\":[{\"key\":"
                                      "\"eks.amazonaws.com/capacityType\",\"operator\":\"NotIn\""),
              "also to those that say nothing of it: %s", str_text(&body));
    cr_assert(strstr(str_text(&body), "\"key\":\"cloud.google.com/gke-spot\",\"operator\":\"Equal\""),
              "where there is no other one is better than none: %s", str_text(&body));
    str_clear(&body);
    cast_free(c);
}

Test(operator_fallback, what_is_spread_over_more_time_is_what_spot_machines_do)
{
    struct cast *c = on_spot(SPOT);
    goes(c, 12, 8 * MINUTE);
    cr_assert_not(fell_back(c));
    cast_free(c);
}

/* At 0, 28, 29, 31, 32 and 33 minutes: of the last five none is older than half an hour. */
Test(operator_fallback, the_window_goes_along_with_each_end)
{
    static const int apart[] = {28, 1, 2, 1, 1};
    struct cast *c = on_spot(SPOT);
    for (int i = 0; i < 5; i++) {
        goes(c, 1, (int64_t)apart[i] * MINUTE);
        cr_assert_not(fell_back(c), "%d", i);
    }
    evicted(first(c));
    cr_assert(cast_says(c, "warn FellBack  5 workers were interrupted on spot machines within 30 min"));
    cast_free(c);
}

Test(operator_fallback, an_end_counts_until_it_is_as_old_as_the_window_is_long)
{
    for (int over = 0; over < 2; over++) {
        struct cast *c = on_spot(SPOT);
        goes(c, 1, 29 * MINUTE + 59 * 1000 + (over ? 1000 : 0));
        goes(c, 4, 0);
        cr_assert_eq(fell_back(c), !over);
        cr_assert_eq(c->job.status.spot.interruptions, over ? 4 : 5);
        cast_free(c);
    }
}

Test(operator_fallback, the_moments_stand_in_the_status_for_another_operator)
{
    struct cast *c = on_spot(SPOT);
    goes(c, 3, MINUTE);
    cr_assert_eq(c->job.status.spot.ends_count, 3);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(c->job.status.spot.end[i].at_ms, CAST_NOW + i * MINUTE);
        cr_assert_eq(c->job.status.spot.end[i].count, 1);
    }
    cr_assert_eq(c->job.status.spot.window_ms, CAST_NOW);
    c->memo = (struct op_memo){.dry_generation = c->job.generation};
    goes(c, 2, 0);
    cr_assert(fell_back(c));
    cast_free(c);
}

/* More than there is room for. */
Test(operator_fallback, of_many_ends_those_that_lie_together_are_counted_together)
{
    struct cast *c = on_spot("{\"spot\":{\"prefer\":true,\"onDemandFallback\":{\"afterInterruptions\":40}}}");
    goes(c, 39, MINUTE / 2);
    cr_assert_not(fell_back(c));
    cr_assert_leq(c->job.status.spot.ends_count, OP_SPOT_ENDS_MAX);
    cr_assert_eq(c->job.status.spot.interruptions, 39);
    goes(c, 1, 0);
    cr_assert(fell_back(c));
    cast_free(c);
    c = on_spot("{\"spot\":{\"prefer\":true,\"onDemandFallback\":{\"afterInterruptions\":40}}}");
    goes(c, 58, MINUTE);
    cr_assert_not(fell_back(c), "30 of them at most are within half an hour");
    cast_free(c);
}

/* Of a status of before it is known how many there were, and when the first and the last of them. */
Test(operator_fallback, what_was_counted_before_the_moments_were_noted_counts_as_it_did)
{
    for (int over = 0; over < 2; over++) {
        struct cast *c = on_spot(SPOT);
        c->job.status.spot.interruptions = 4;
        c->job.status.spot.window_ms = CAST_NOW - (over ? 31 : 20) * MINUTE;
        c->job.status.spot.last_ms = CAST_NOW - MINUTE;
        goes(c, 1, 0);
        cr_assert_eq(fell_back(c), !over);
        cr_assert_eq(c->job.status.spot.interruptions, over ? 2 : 5);
        cast_free(c);
    }
}

Test(operator_fallback, ends_on_other_machines_say_nothing_of_spot)
{
    struct cast *c = on_spot(SPOT);
    for (int i = 0; i < CAST_NODES; i++)
        c->node[i].machine.capacity = PRICE_ON_DEMAND;
    goes(c, 8, MINUTE);
    cr_assert_not(fell_back(c));
    cr_assert_eq(c->job.status.spot.last_ms, 0);
    cast_free(c);
}

Test(operator_fallback, who_does_not_prefer_spot_or_says_never_stays_as_it_is)
{
    static const char *const jobs[] = {
        "{}", "{\"spot\":{\"prefer\":true,\"onDemandFallback\":{\"afterInterruptions\":0}}}"};
    for (int i = 0; i < 2; i++) {
        struct cast *c = on_spot(jobs[i]);
        goes(c, 8, MINUTE);
        cr_assert_not(fell_back(c), "%s", jobs[i]);
        cast_free(c);
    }
}

Test(operator_fallback, its_numbers_are_the_jobs)
{
    struct cast *c = on_spot("{\"spot\":{\"prefer\":true,\"onDemandFallback\":{\"afterInterruptions\":2,"
                             "\"within\":\"5m\",\"until\":\"10m\"}}}");
    goes(c, 1, 6 * MINUTE);
    goes(c, 1, MINUTE);
    cr_assert_not(fell_back(c));
    goes(c, 1, MINUTE);
    cr_assert(fell_back(c), "two within five minutes");
    c->now_ms += 8 * MINUTE;
    cast_settle(c);
    cr_assert(fell_back(c));
    c->now_ms += MINUTE;
    cast_settle(c);
    cr_assert_not(fell_back(c));
    cast_free(c);
}

/* One worker on a machine on demand, node-7, for which the job fell back; it has gone back to spot since. */
static struct cast *went_back(void)
{
    struct cast *c = on_spot(SPOT);
    c->node[7].machine.capacity = PRICE_ON_DEMAND;
    cast_worker(c, 2)->fallback = true;
    text_copy(cast_worker(c, 2)->node, OP_NODE_MAX, "node-7");
    c->job.status.spot.last_ms = c->job.status.spot.fell_ms = CAST_NOW - 59 * MINUTE;
    cast_settle(c);
    cr_assert_eq(c->job.status.workers.surge, 0, "while it lasts nobody is moved");
    c->now_ms += MINUTE;
    cr_assert(cast_says(c, "event BackOnSpot"));
    cast_settle(c);
    return c;
}

Test(operator_fallback, when_spot_machines_stay_who_is_elsewhere_for_them_is_replaced_and_then_leaves)
{
    struct cast *c = went_back();
    cr_assert_eq(slot(c, 3)->state, OP_SLOT_WANTED);
    struct str body = made(c);
    cr_assert(strstr(str_text(&body), "\"values\":[\"node-7\"]"), "%s", str_text(&body));
    cr_assert_not(strstr(str_text(&body), "ringmaster.dev/capacity"), "%s", str_text(&body));
    str_clear(&body);
    cast_pod(c, OP_WORKER, 3, 1);
    c->coordinator.worker[3] = (struct op_present){.worker = 3, .attempt = 1, .in_ring = true};
    c->coordinator.workers_count = c->coordinator.ring_size = 4;
    cr_assert(cast_says(c,
                        "event Relieved  worker 2 leaves node-7, which is no spot machine; another one has "
                        "taken its place"));
    cast_settle(c);
    cr_assert_eq(slot(c, 2)->state, OP_SLOT_ENDED);
    cr_assert_eq(c->job.status.restarts.preemption, 0);
    cr_assert_eq(c->job.status.workers.left.count, 0, "it was told nothing");
    cast_free(c);
}

Test(operator_fallback, whoever_takes_it_out_of_the_job_ends_it_without_a_word_of_peace)
{
    struct cast *c = on_spot(SPOT);
    c->job.status.spot.last_ms = c->job.status.spot.fell_ms = CAST_NOW - MINUTE;
    c->job.fallback.after = 0;
    struct str text = cast_text(c);
    cr_assert_not(strstr(str_text(&text), "BackOnSpot"), "%s", str_text(&text));
    str_clear(&text);
    cast_settle(c);
    cr_assert_not(fell_back(c));
    cast_free(c);
}

Test(operator_fallback, who_got_a_spot_machine_all_the_same_stays_there)
{
    struct cast *c = on_spot(SPOT);
    cast_worker(c, 2)->fallback = true;
    cast_settle(c);
    cr_assert_eq(c->job.status.workers.surge, 0);
    cast_free(c);
}
