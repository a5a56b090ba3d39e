/* spec.cost.idleAfter: who has had too few nodes for so long saves, ends, and waits with one Pending pod. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cast.h"

#define IDLE  "{\"cost\":{\"idleAfter\":\"3m\"}}"
#define HEAD  "provider,region,zone,instance_type,capacity_type,price_per_hour,currency,valid_from\n"
#define FULL  "0/5 nodes are available: 5 Insufficient nvidia.com/gpu"
#define BEGUN "2026-09-21T14:13:20Z" /* CAST_NOW */

enum { SECOND_MS = 1000, MINUTE_MS = 60 * SECOND_MS };

static struct op_slot *slot(struct cast *c, int index)
{
    return &c->job.status.workers.slot[index];
}

static int live(const struct cast *c)
{
    int count = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        count += slot_is_live(&c->job.status.workers.slot[i]);
    return count;
}

static const struct op_condition *condition(const struct cast *c, enum op_condition_type type)
{
    return &c->job.status.condition[type];
}

static void starve(struct pod_view *pod)
{
    *pod->node = 0;
    pod->phase = OP_PENDING;
    pod->ready = false;
    text_copy(pod->unschedulable, RM_WHY_MAX, FULL);
}

/* Worker 0 has a node, the other two are without: min is 2. */
static struct cast *below_min(const char *changes)
{
    struct cast *c = cast_training(changes);
    starve(cast_worker(c, 1));
    starve(cast_worker(c, 2));
    c->coordinator.state = STATUS_GATHERING;
    c->coordinator.ring_size = 0;
    cast_settle(c);
    cr_assert_eq(live(c), 3);
    return c;
}

static void pass(struct cast *c, int64_t ms)
{
    c->now_ms += ms;
    cast_settle(c);
    cast_settle(c);
}

static int told(struct cast *c)
{
    struct op_plan *plan = cast_plan(c);
    int count = plan->events_count;
    plan_free(plan);
    return count;
}

static void all_end(struct cast *c)
{
    c->pods_count = 0;
    c->coordinator_answers = false;
    for (int i = 0; i < 4; i++)
        cast_settle(c);
}

/* Its pod, which no node takes. */
static struct pod_view *make_probe(struct cast *c)
{
    struct pod_view *pod = cast_pod(c, OP_WORKER, 0, slot(c, 0)->attempt);
    pod->created_ms = c->now_ms;
    starve(pod);
    cast_settle(c);
    return pod;
}

static struct cast *idle(const char *changes)
{
    struct cast *c = below_min(changes);
    pass(c, 3 * MINUTE_MS);
    all_end(c);
    make_probe(c);
    cr_assert_str_eq(c->job.status.state, "Idle");
    return c;
}

static void comes_back(struct cast *c)
{
    for (int i = 0; i < 3; i++)
        cast_settle(c);
    cr_assert_eq(live(c), 3, "%s", c->job.status.message);
    cr_assert_eq(c->job.status.ring.coordinator.state, OP_SLOT_WANTED);
    cr_assert_eq(c->job.status.ring.coordinator.attempt, 2, "a term of its own: the first one's is over");
    cr_assert_eq(c->job.status.idle.since_ms, 0);
    cr_assert_eq(condition(c, OP_IDLE)->status, OP_FALSE);
}

/* The body of the one pod that is made now. */
static struct str made(struct cast *c)
{
    struct str body = str_init(1 << 20);
    struct op_plan *plan = cast_plan(c);
    for (int i = 0; i < plan->actions_count; i++) {
        const struct op_action *a = &plan->action[i];
        if (a->kind != OP_CREATE || a->resource != OP_PODS)
            continue;
        cr_assert_eq(body.length, 0, "two pods are made");
        str_adds(&body, str_text(&a->body));
    }
    plan_free(plan);
    cr_assert_gt(body.length, 0, "no pod is made");
    return body;
}

static bool makes(struct cast *c, const char *wanted)
{
    struct str body = made(c);
    bool there = strstr(str_text(&body), wanted) != NULL;
    str_clear(&body);
    return there;
}

Test(operator_idle, they_save_and_end_then_their_coordinator_does_and_one_pod_waits)
{
    struct cast *c = below_min(IDLE);
    pass(c, 3 * MINUTE_MS - SECOND_MS);
    cr_assert_eq(live(c), 3);
    c->now_ms += SECOND_MS;
    cr_assert(cast_says(c, "warn Idle  fewer than min 2 workers have had a node since " BEGUN
                           ": a checkpoint is saved and all pods end, but for one worker's, which waits for "
                           "a node"));
    cast_settle(c);
    cr_assert_eq(live(c), 0);
    cr_assert_str_eq(c->job.status.state, "Idling");
    cr_assert_str_eq(c->job.status.message, "the workers save a checkpoint and end; one then waits for a "
                                            "node, as fewer than min 2 have had one");
    cr_assert(cast_says(c, "delete pods tiny-w0-"));
    cast_worker(c, 0)->deletion_ms = c->now_ms + 120 * SECOND_MS;
    pass(c, 100 * SECOND_MS);
    cr_assert(slot_is_live(&c->job.status.ring.coordinator), "it serves them until they have ended");
    c->pods_count = 1;
    c->coordinator.workers_count = 0;
    cast_settle(c);
    cast_settle(c);
    cr_assert_not(slot_is_live(&c->job.status.ring.coordinator));
    cr_assert_eq(live(c), 0, "its pod is still there");
    c->pods_count = 0;
    c->coordinator_answers = false;
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(told(c), 0, "all of it was told");
        cast_settle(c);
    }
    cr_assert_eq(live(c), 1);
    cr_assert_eq(slot(c, 0)->attempt, 2);
    cr_assert(makes(c, "\"ringmaster.dev/worker\":\"0\""));
    cr_assert_eq(c->job.status.restarts.preemption + c->job.status.restarts.failure, 0);
    cast_free(c);
}

Test(operator_idle, it_says_since_when_and_what_it_waits_for)
{
    struct cast *c = idle(IDLE);
    static const char since[] = "idle since 2026-09-21T14:16:20Z, as fewer than min 2 workers had had a node "
                                "since " BEGUN "; worker 0 waits for one (until 2026-09-21T14:19:20Z on none "
                                "of those that were too few), and the others follow it";
    cr_assert_eq(strncmp(c->job.status.message, since, sizeof since - 1), 0, "%s", c->job.status.message);
    cr_assert_str_eq(c->job.status.message + sizeof since - 1, ": " FULL);
    cr_assert_eq(condition(c, OP_IDLE)->status, OP_TRUE);
    cr_assert_str_eq(condition(c, OP_IDLE)->message, since);
    cr_assert_str_eq(condition(c, OP_PODS_READY)->reason, "Idle");
    cr_assert_eq(condition(c, OP_SUSPENDED)->status, OP_FALSE);
    cr_assert_eq(condition(c, OP_RING_FORMED)->status, OP_FALSE);
    cr_assert_neq(condition(c, OP_REACHABLE)->status, OP_FALSE, "nobody is to be reached");
    cast_free(c);
}

Test(operator_idle, it_stays_so_however_long_it_takes_and_start_timeout_does_not_run)
{
    struct cast *c = idle(IDLE);
    c->job.status.idle.left.count = 0;
    for (int i = 0; i < 100; i++)
        pass(c, 10 * MINUTE_MS);
    cr_assert_eq(slot(c, 0)->attempt, 2, "the same pod");
    cr_assert_eq(live(c), 1);
    cr_assert_eq(c->job.status.workers.short_ms, 0);
    cr_assert_not(slot_is_live(&c->job.status.ring.coordinator));
    cr_assert_eq(told(c), 0);
    struct op_plan *plan = cast_plan(c);
    cr_assert_eq(plan->actions_count, 0, "and nothing is written");
    cr_assert_eq(plan->wake_ms, 0);
    plan_free(plan);
    cast_free(c);
}

Test(operator_idle, when_it_has_a_node_it_is_a_worker_like_any_other_and_the_others_follow)
{
    struct cast *c = idle(IDLE);
    struct pod_view *probe = cast_worker(c, 0);
    text_copy(probe->node, sizeof probe->node, "node-5");
    *probe->unschedulable = 0;
    cr_assert(cast_says(c, "event Idle  it is over: worker 0 has a node, and the others follow it"));
    comes_back(c);
    cr_assert_eq(slot(c, 0)->attempt, 2, "the pod that waited");
    cr_assert_not(cast_says(c, "delete pods"));
    cr_assert(cast_says(c, "term 2 is wanted"));
    int64_t begun = c->now_ms;
    starve(cast_pod(c, OP_WORKER, 1, slot(c, 1)->attempt));
    cast_settle(c);
    cr_assert_eq(c->job.status.workers.short_ms, begun, "startTimeout begins anew");
    pass(c, 2 * MINUTE_MS);
    cr_assert_eq(live(c), 3, "and so does idleAfter");
    cast_free(c);
}

Test(operator_idle, a_job_without_it_never_is)
{
    struct cast *c = below_min("{\"elasticity\":{\"startTimeout\":\"24h\"}}");
    for (int i = 0; i < 100; i++)
        pass(c, 10 * MINUTE_MS);
    cr_assert_eq(live(c), 3);
    cr_assert_eq(c->job.status.idle.short_ms, 0);
    cr_assert_eq(condition(c, OP_IDLE)->status, OP_UNSET);
    cast_free(c);
}

Test(operator_idle, attempts_to_start_in_between_do_not_begin_the_time_anew)
{
    struct cast *c = below_min("{\"cost\":{\"idleAfter\":\"7m\"}}");
    pass(c, 5 * MINUTE_MS);
    cr_assert_eq(live(c), 0, "startTimeout");
    cr_assert_neq(c->job.status.workers.retry_ms, 0);
    cr_assert_eq(c->job.status.idle.left.count, 1, "worker 0 had a node then");
    c->pods_count = 1;
    pass(c, MINUTE_MS);
    cr_assert_eq(live(c), 3);
    for (int i = 0; i < 3; i++)
        starve(cast_pod(c, OP_WORKER, i, 2));
    pass(c, MINUTE_MS);
    cr_assert_eq(live(c), 3, "a scheduler needs a moment");
    pass(c, 10 * SECOND_MS);
    cr_assert_eq(live(c), 0);
    cr_assert_eq(c->job.status.idle.since_ms, c->now_ms);
    cast_free(c);
}

Test(operator_idle, it_may_begin_between_two_attempts_to_start)
{
    struct cast *c = below_min("{\"cost\":{\"idleAfter\":\"301s\"}}");
    pass(c, 5 * MINUTE_MS);
    c->pods_count = 1;
    pass(c, SECOND_MS);
    cr_assert_eq(c->job.status.idle.since_ms, c->now_ms);
    cr_assert_eq(c->job.status.workers.retry_ms, 0);
    all_end(c);
    cr_assert(makes(c, "node-0"), "the machine that worker 0 had is not that of the probe");
    cast_free(c);
}

Test(operator_idle, min_workers_with_a_node_begin_the_time_anew)
{
    struct cast *c = below_min(IDLE);
    pass(c, 2 * MINUTE_MS);
    text_copy(cast_worker(c, 1)->node, OP_NODE_MAX, "node-1");
    cast_settle(c);
    cr_assert_eq(c->job.status.idle.short_ms, 0);
    *cast_worker(c, 1)->node = 0;
    pass(c, 2 * MINUTE_MS);
    cr_assert_eq(live(c), 3);
    cr_assert_eq(c->job.status.idle.short_ms, c->now_ms);
    cast_free(c);
}

Test(operator_idle, a_job_that_never_found_a_node_is_idle_with_nothing_to_save)
{
    struct cast *c = cast_open(IDLE);
    for (int i = 0; i < 4; i++)
        cast_settle(c);
    cast_pod(c, OP_COORDINATOR, -1, 1);
    for (int i = 0; i < 3; i++)
        starve(cast_pod(c, OP_WORKER, i, 1));
    cast_settle(c);
    pass(c, 3 * MINUTE_MS);
    all_end(c);
    cr_assert_eq(live(c), 1);
    cr_assert_str_eq(c->job.status.state, "Idle");
    cast_free(c);
}

Test(operator_idle, what_a_survivor_holds_is_not_given_up_while_nobody_could_save_it)
{
    struct cast *c = below_min(IDLE);
    text_copy(c->coordinator.outage, sizeof c->coordinator.outage, "http://store: no answer");
    pass(c, 4 * MINUTE_MS);
    cr_assert_eq(live(c), 3, "the store is away");
    *c->coordinator.outage = 0;
    c->coordinator.state = STATUS_SAVING;
    pass(c, 10 * SECOND_MS);
    cr_assert_eq(live(c), 3, "it is being saved");
    c->coordinator.state = STATUS_GATHERING;
    c->coordinator_answers = false;
    pass(c, 10 * SECOND_MS);
    cr_assert_eq(live(c), 3, "nobody would save it");
    c->coordinator_answers = true;
    pass(c, 10 * SECOND_MS);
    cr_assert_eq(live(c), 0);
    cast_free(c);
}

Test(operator_idle, a_program_that_keeps_no_checkpoints_here_is_not_asked_for_one)
{
    struct cast *c = cast_training(
        "{\"trainer\":null,\"checkpoint\":null,\"launch\":{\"mode\":\"Restart\",\"command\":[\"train\"]},"
        "\"cost\":{\"idleAfter\":\"3m\"}}");
    starve(cast_worker(c, 1));
    starve(cast_worker(c, 2));
    c->coordinator.progress.known = true; /* it reports some */
    c->coordinator.state = STATUS_GATHERING;
    c->coordinator.ring_size = 0;
    cast_settle(c);
    c->coordinator_answers = false;
    c->now_ms += 3 * MINUTE_MS;
    cr_assert(cast_says(c, "warn Idle  fewer than min 2 workers have had a node since " BEGUN
                           ": all pods end, but for one worker's, which waits for a node"));
    cast_free(c);
}

Test(operator_idle, pods_that_a_queue_holds_back_are_waited_for)
{
    struct cast *c = below_min(IDLE);
    text_copy(cast_worker(c, 1)->gates, sizeof cast_worker(c, 1)->gates, "kueue.x-k8s.io/admission");
    cast_settle(c);
    cr_assert_eq(c->job.status.idle.short_ms, 0, "what was waited before does not count");
    for (int i = 0; i < 5; i++)
        pass(c, 10 * MINUTE_MS);
    cr_assert_eq(live(c), 3);
    cast_free(c);
}

Test(operator_idle, the_probe_goes_to_no_machine_that_they_had_and_after_as_long_again_to_any)
{
    struct cast *c = below_min(IDLE);
    pass(c, 3 * MINUTE_MS);
    all_end(c);
    cr_assert_eq(c->job.status.idle.left.count, 1);
    cr_assert(makes(c, "{\"key\":\"metadata.name\",\"operator\":\"NotIn\",\"values\":[\"node-0\"]}"));
    make_probe(c);
    pass(c, 3 * MINUTE_MS - SECOND_MS);
    cr_assert_eq(slot(c, 0)->attempt, 2);
    c->now_ms += SECOND_MS;
    cast_settle(c);
    cr_assert_eq(live(c), 0);
    cr_assert(cast_says(c, "delete pods tiny-w0-"));
    c->pods_count = 0;
    cast_settle(c);
    cr_assert_eq(slot(c, 0)->attempt, 3);
    cr_assert_not(makes(c, "NotIn"));
    make_probe(c);
    pass(c, 100 * MINUTE_MS);
    cr_assert_eq(slot(c, 0)->attempt, 3, "once");
    cast_free(c);
}

Test(operator_idle, a_probe_that_somebody_deletes_is_made_anew_and_no_more_than_that)
{
    struct cast *c = idle(IDLE);
    c->pods_count = 0;
    pass(c, MINUTE_MS);
    pass(c, SECOND_MS);
    cr_assert_eq(slot(c, 0)->attempt, 3);
    cr_assert_eq(live(c), 1);
    cr_assert(makes(c, "\"ringmaster.dev/worker\":\"0\""));
    cr_assert_not(slot_is_live(&c->job.status.ring.coordinator));
    cast_free(c);
}

Test(operator_idle, a_probe_whose_node_refuses_it_at_once_is_none_that_has_one)
{
    struct cast *c = idle(IDLE);
    struct pod_view *probe = cast_worker(c, 0);
    text_copy(probe->node, sizeof probe->node, "node-5");
    probe->phase = OP_POD_FAILED;
    text_copy(probe->reason, sizeof probe->reason, "OutOfcpu");
    cast_settle(c);
    cr_assert_eq(live(c), 0, "the next one rests");
    pass(c, SECOND_MS);
    cr_assert_eq(slot(c, 0)->attempt, 3);
    cr_assert_eq(live(c), 1);
    cr_assert_neq(c->job.status.idle.since_ms, 0);
    probe = make_probe(c);
    text_copy(probe->node, sizeof probe->node, "node-5");
    probe->phase = OP_RUNNING;
    probe->terminated = true;
    probe->exit_code = 1;
    probe->ended_ms = c->now_ms;
    cast_settle(c);
    cr_assert_neq(c->job.status.idle.since_ms, 0, "one that has ended has none any more");
    cast_free(c);
}

Test(operator_idle, a_status_that_somebody_wrote_in_leaves_one_pod_as_well)
{
    struct cast *c = idle(IDLE);
    *slot(c, 1) = *slot(c, 2) = (struct op_slot){.state = OP_SLOT_WANTED, .attempt = 7};
    cast_settle(c);
    cr_assert_eq(live(c), 1);
    cast_free(c);
}

Test(operator_idle, suspended_it_is_no_more_and_resumed_it_begins_with_all)
{
    struct cast *c = idle(IDLE);
    c->job.suspend = true;
    cast_settle(c);
    all_end(c);
    cr_assert_eq(condition(c, OP_SUSPENDED)->status, OP_TRUE);
    cr_assert_eq(condition(c, OP_IDLE)->status, OP_FALSE);
    c->job.suspend = false;
    for (int i = 0; i < 3; i++) /* a new key, and its slots */
        cast_settle(c);
    comes_back(c);
    cast_free(c);
}

Test(operator_idle, without_the_field_all_come_back)
{
    struct cast *c = idle(IDLE);
    c->job.idle_after_ms = 0;
    cr_assert(cast_says(c, "event Idle  it is over, as spec.cost.idleAfter is gone"));
    comes_back(c);
    cast_free(c);
}

Test(operator_idle, a_spec_that_is_asked_about_changes_nothing_until_it_is_taken)
{
    struct cast *c = idle(IDLE);
    c->job.generation++;
    c->job.workers_target = 4;
    cast_settle(c);
    cr_assert_eq(c->memo.dry_generation, c->job.generation);
    cast_settle(c);
    cr_assert_eq(live(c), 1);
    cr_assert_eq(c->job.status.workers.target, 4);
    cr_assert_str_eq(c->job.status.state, "Idle");
    cast_free(c);
}

Test(operator_idle, a_spec_that_is_refused_is_told_and_it_stays_idle)
{
    struct cast *c = idle(IDLE);
    c->job.generation++;
    c->memo.refusal.at_ms = c->now_ms;
    c->memo.refusal.generation = c->job.generation;
    c->memo.refusal.code = 403;
    text_copy(c->memo.refusal.what, sizeof c->memo.refusal.what, "try pods");
    text_copy(c->memo.refusal.message, sizeof c->memo.refusal.message, "violates PodSecurity");
    cast_settle(c);
    cr_assert_str_eq(c->job.status.message, "the API server refused to try pods: violates PodSecurity");
    cr_assert_neq(c->job.status.idle.since_ms, 0);
    cr_assert_eq(c->job.status.workers.short_ms, 0);
    cr_assert_eq(live(c), 1);
    cast_free(c);
}

Test(operator_idle, a_budget_that_is_spent_shows_its_own_reason)
{
    struct error err = {0};
    static const char prices[] = HEAD ",,,,,2,USD,\n";
    struct cast *c = idle(IDLE);
    cr_assert_eq(prices_parse(&c->prices, prices, sizeof prices - 1, &err), 0, "%s", err.text);
    text_copy(c->job.status.cost.currency, sizeof c->job.status.cost.currency, "USD");
    c->job.status.cost.accounted_ms = c->now_ms;
    c->job.status.cost.spent.micros = 10 * PRICE_UNIT;
    c->job.budget_micros = c->job.warn_micros = PRICE_UNIT;
    cast_settle(c);
    all_end(c);
    cr_assert_str_eq(condition(c, OP_SUSPENDED)->reason, "BudgetSpent");
    cr_assert_eq(condition(c, OP_IDLE)->status, OP_FALSE);
    cr_assert_eq(live(c), 0);
    cast_free(c);
}

Test(operator_idle, the_deadline_passes_all_the_same)
{
    struct cast *c = idle("{\"cost\":{\"idleAfter\":\"3m\"},\"activeDeadlineSeconds\":3600}");
    pass(c, 60 * MINUTE_MS);
    cr_assert_eq(live(c), 0);
    all_end(c);
    cr_assert(condition_is(&c->job.status, OP_FAILED));
    cr_assert_eq(condition(c, OP_IDLE)->status, OP_FALSE);
    cast_free(c);
}

Test(operator_idle, another_operator_goes_on_with_it_at_every_moment)
{
    struct cast *c = below_min(IDLE);
    pass(c, 2 * MINUTE_MS);
    c->memo = (struct op_memo){.dry_generation = c->job.generation};
    pass(c, MINUTE_MS);
    cr_assert_eq(c->job.status.idle.since_ms, c->now_ms, "the time goes on");
    c->memo = (struct op_memo){0};
    all_end(c);
    c->memo = (struct op_memo){0};
    make_probe(c);
    c->memo = (struct op_memo){0};
    pass(c, MINUTE_MS);
    cr_assert_eq(live(c), 1);
    cr_assert_str_eq(c->job.status.state, "Idle");
    cr_assert_eq(told(c), 0, "nothing is told twice");
    cast_free(c);
}

/* The first place of a base is taken, or is what is missing. */
static struct cast *with_base(const char *changes, bool found)
{
    struct cast *c = below_min(changes);
    cast_worker(c, found ? 0 : 1)->base = true;
    if (!found)
        text_copy(cast_worker(c, 2)->node, OP_NODE_MAX, "node-2");
    return c;
}

Test(operator_idle, the_probe_is_of_the_kind_that_was_missing)
{
    static const char label[] = "\"ringmaster.dev/capacity\":\"on-demand\"";
    struct cast *c = with_base("{\"cost\":{\"idleAfter\":\"3m\"},\"spot\":{\"onDemandBase\":1}}", true);
    pass(c, 3 * MINUTE_MS);
    all_end(c);
    cr_assert_not(makes(c, label), "the machine on demand was there");
    cast_free(c);
    c = with_base("{\"cost\":{\"idleAfter\":\"3m\"},\"spot\":{\"onDemandBase\":1},"
                  "\"workers\":{\"min\":3}}",
                  false);
    pass(c, 3 * MINUTE_MS);
    all_end(c);
    cr_assert(makes(c, label), "nothing but that was missing");
    struct pod_view *probe = make_probe(c);
    probe->base = true;
    cast_settle(c);
    cr_assert_eq(live(c), 1);
    c->job.on_demand_base = 0;
    cast_settle(c);
    cr_assert(cast_says(c, "delete pods tiny-w0-"));
    c->pods_count = 0;
    cast_settle(c);
    cr_assert_not(makes(c, label), "the job wants none any more");
    cast_free(c);
}

Test(operator_idle, it_costs_nothing_and_counts_as_waiting)
{
    struct error err = {0};
    static const char prices[] = HEAD ",,,,,2,USD,\n";
    struct cast *c = cast_open(IDLE);
    cr_assert_eq(prices_parse(&c->prices, prices, sizeof prices - 1, &err), 0, "%s", err.text);
    c->coordinator.goodput = (struct op_goodput){.known = true, .seconds = {[GOODPUT_PRODUCTIVE] = 60}};
    cast_train(c);
    for (int i = 0; i < c->pods_count; i++) {
        c->pod[i].bound_ms = i < 2 ? c->now_ms : 0;
        c->pod[i].asked = (struct resources){.count = 1, .of = {{"cpu", 1000}}};
    }
    starve(cast_worker(c, 1));
    starve(cast_worker(c, 2));
    c->coordinator.state = STATUS_GATHERING;
    c->coordinator.ring_size = 0;
    cast_settle(c);
    pass(c, 3 * MINUTE_MS);
    all_end(c);
    int64_t spent = c->job.status.cost.spent.micros, hours = c->job.status.cost.hours.micros;
    cr_assert_gt(spent, 0);
    make_probe(c);
    c->job.status.idle.left.count = 0;
    pass(c, 600 * MINUTE_MS);
    cr_assert_eq(c->job.status.cost.spent.micros, spent);
    cr_assert_eq(c->job.status.cost.hours.micros, hours);
    text_copy(cast_worker(c, 0)->node, OP_NODE_MAX, "node-5");
    comes_back(c);
    cast_pod(c, OP_COORDINATOR, -1, 2);
    c->coordinator.term = 2;
    c->coordinator.state = STATUS_TRAINING;
    c->coordinator.ring_size = 2;
    c->coordinator_answers = true;
    c->coordinator.goodput.seconds[GOODPUT_PRODUCTIVE] = 30;
    cast_settle(c);
    const struct op_goodput *g = &c->job.status.goodput;
    cr_assert_eq(g->seconds[GOODPUT_PRODUCTIVE], 90);
    cr_assert_eq(g->seconds[GOODPUT_WAITING], 603 * 60 - 90, "%lld", (long long)g->seconds[GOODPUT_WAITING]);
    cast_free(c);
}
