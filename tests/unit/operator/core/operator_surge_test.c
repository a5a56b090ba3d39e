/* Machines that may go: first the replacement, then the leave. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/wire/json.h"
#include "operator/core/pod.h"
#include "surge_cast.h"

/* Three train; worker 2, on a machine that may go now, has a replacement on its way. */
static struct cast *with_one_more(const char *changes)
{
    struct cast *c = cast_training(changes);
    cordon(c, 2);
    cast_settle(c);
    cr_assert_eq(slot(c, 3)->state, OP_SLOT_WANTED, "one more is wanted");
    return c;
}

/* As if the API server had never had it. */
static void vanishes(struct cast *c, const struct pod_view *pod)
{
    for (int i = 0; i < c->pods_count; i++)
        if (c->pods[i] == pod)
            c->pods[i] = c->pods[--c->pods_count];
}

static bool body_says(struct cast *c, const char *wanted)
{
    struct str text = str_init(1 << 20);
    struct op_plan *plan = cast_plan(c);
    plan_print(plan, true, &text);
    bool there = strstr(str_text(&text), wanted) != NULL;
    plan_free(plan);
    str_clear(&text);
    return there;
}

static bool told_relieved(struct cast *c)
{
    bool told = false;
    struct op_plan *plan = cast_plan(c);
    for (int i = 0; i < plan->events_count; i++)
        told = told || !strcmp(plan->event[i].reason, "Relieved");
    plan_free(plan);
    return told;
}

Test(operator_surge, of_a_machine_that_may_go_nobody_leaves_before_another_one_is_in_the_ring)
{
    struct cast *c = with_one_more("{}");
    cr_assert_eq(c->job.status.workers.surge, 1, "the status says why there are more than the target");
    cr_assert(cast_says(c, "worker 3 is wanted"));
    all_stay(c);
    cast_pod(c, OP_WORKER, 3, 1)->phase = OP_PENDING;
    all_stay(c);
    cast_worker(c, 3)->phase = OP_RUNNING;
    arrives(c, 3, false);
    all_stay(c);
    c->coordinator.worker[3].in_ring = true;
    c->coordinator.ring_size++;
    cr_assert(cast_says(c, "event Relieved  worker 2 leaves node-2, which is cordoned; another one has taken "
                           "its place"));
    cast_settle(c);
    cr_assert_eq(slot(c, 2)->state, OP_SLOT_ENDED);
    cr_assert(cast_says(c, "delete pods tiny-w2-"));
    cr_assert_eq(c->job.status.workers.current, 3);
    cr_assert_eq(c->job.status.workers.surge, 0);
    cr_assert_eq(c->job.status.restarts.preemption, 0, "nobody was interrupted");
    cast_free(c);
}

/* As a signal is lost that comes before a container's first process has asked for it. */
Test(operator_surge, of_whose_pod_is_deleted_its_coordinator_is_told)
{
    struct cast *c = cast_training("{}");
    struct op_plan *plan = cast_plan(c);
    cr_assert_str_eq(plan->relief, "", "there is nothing to say");
    plan_free(plan);
    cast_worker(c, 1)->deletion_ms = CAST_NOW + 30000;
    plan = cast_plan(c);
    cr_assert_str_eq(plan->relief, "relieve=&deleted=1.1&stay=3");
    plan_free(plan);
    cast_free(c);
}

Test(operator_surge, what_its_coordinator_was_told_counts_like_a_word_of_the_node)
{
    struct cast *c = cast_training("{}");
    c->coordinator.worker[1].may_go = true;
    cast_settle(c);
    cr_assert_eq(slot(c, 3)->state, OP_SLOT_WANTED);
    cr_assert(body_says(c, "\"nodeSelectorTerms\":[{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":"
                           "\"NotIn\",\"values\":[\"node-1\"]}]}]"),
              "no taint keeps the replacement from that machine");
    comes(c, 3, true);
    cr_assert(cast_says(c, "event Relieved  worker 1 leaves node-1, which may go, as it was told; another "));
    cast_free(c);
}

Test(operator_surge, a_word_of_its_node_is_told_once_and_so_is_its_end)
{
    static const char may[] = "worker 2: its machine may go: node-2 has the taint karpenter.sh/disrupted";
    static const char gone[] = "worker 2: its machine node-2 does not go: nobody says so any more";
    struct cast *c = cast_training("{}");
    text_copy(c->node[2].may_leave, sizeof c->node[2].may_leave, "has the taint karpenter.sh/disrupted");
    cr_assert_eq(told_so(c, "NoticeReceived", may), 1);
    cast_settle(c);
    cr_assert_eq(told_so(c, "NoticeReceived", may), 0);
    c->memo = (struct op_memo){.dry_generation = c->job.generation}; /* another process of the operator's */
    cr_assert_eq(told_so(c, "NoticeReceived", may), 0);
    *c->node[2].may_leave = 0;
    cr_assert_eq(told_so(c, "NoticeWithdrawn", gone), 1);
    cast_settle(c);
    cr_assert_eq(told_so(c, "NoticeWithdrawn", gone), 0);
    cordon(c, 2);
    cr_assert_eq(told_so(c, "NoticeReceived", "worker 2: its machine may go: node-2 is cordoned"), 1);
    cast_free(c);
}

Test(operator_surge, of_a_pod_that_karpenter_does_not_drain_it_is_said_and_the_next_one_avoids_that_machine)
{
    struct cast *c = cast_training("{}");
    cast_worker(c, 2)->undrained = true;
    text_copy(c->node[2].may_leave, sizeof c->node[2].may_leave, "has the taint karpenter.sh/disrupted");
    cr_assert(cast_says(c, "event NoticeReceived  worker 2: its machine may go: node-2 has the taint "
                           "karpenter.sh/disrupted; its pod tolerates it, so Karpenter won't drain it"));
    all_stay(c);
    text_copy(c->node[2].leave, sizeof c->node[2].leave, "is being deleted");
    cast_settle(c);
    cr_assert_eq(slot(c, 2)->state, OP_SLOT_ENDED);
    cr_assert_eq(c->job.status.workers.unfit.nodes.count, 1);
    cr_assert_str_eq(c->job.status.workers.unfit.nodes.name[0], "node-2");
    cast_free(c);
    c = cast_training("{}");
    text_copy(c->node[2].leave, sizeof c->node[2].leave, "is being deleted");
    cast_settle(c);
    cr_assert_eq(c->job.status.workers.unfit.nodes.count, 0, "the taint keeps others from it");
    cast_free(c);
}

Test(operator_surge, what_its_metadata_says_too_is_told_by_its_coordinator_alone)
{
    struct cast *c = cast_training("{}");
    c->coordinator.worker[2].may_go = true;
    cordon(c, 2);
    cast_settle(c);
    cr_assert_not(slot(c, 2)->told_ms);
    c->coordinator.worker[2].may_go = false;
    cast_settle(c);
    cr_assert(slot(c, 2)->told_ms, "the Node still says so");
    text_copy(c->node[2].leave, sizeof c->node[2].leave, "is being deleted");
    *c->node[2].may_leave = 0;
    cr_assert_not(cast_says(c, "NoticeWithdrawn"), "it goes");
    cast_free(c);
}

/* Whoever lies in its name can't have each one leave that comes there. */
Test(operator_surge, by_its_machines_own_word_nobody_is_relieved_who_has_not_had_it_for_a_minute)
{
    static const int64_t had_ms = 20 * 1000, minute_ms = 60 * 1000;
    for (int by_node = 0; by_node < 2; by_node++) {
        struct cast *c = cast_training("{}");
        cast_worker(c, 1)->bound_ms = c->now_ms - had_ms;
        c->coordinator.worker[1].may_go = true;
        cast_settle(c);
        comes(c, 3, true);
        if (by_node)
            cordon(c, 1);
        cr_assert_eq(told_relieved(c), by_node, "what its Node says is no word of a stranger's");
        if (!by_node) {
            struct op_plan *plan = cast_plan(c);
            cr_assert_leq(plan->wake_ms, c->now_ms + minute_ms - had_ms);
            plan_free(plan);
            c->now_ms += minute_ms - had_ms;
            cr_assert(told_relieved(c));
        }
        cast_free(c);
    }
}

/* Three train, of at least three. */
Test(operator_surge, by_a_taint_alone_nobody_leaves_at_once_where_fewer_than_min_would_be_left)
{
    static const int64_t lead_ms = 120 * 1000;
    struct cast *c = cast_training("{\"workers\":{\"min\":3}}");
    taint(c, 2, lead_ms);
    cr_assert(cast_says(c, "event NoticeReceived  worker 2: its machine will go: node-2 has the taint "
                           "aws-node-termination-handler/spot-itn"));
    cast_settle(c);
    cr_assert_eq(slot(c, 2)->state, OP_SLOT_PRESENT, "%s", c->job.status.message);
    cr_assert_eq(slot(c, 3)->state, OP_SLOT_WANTED, "another one is made at once, whatever surge says");
    cr_assert(body_says(c, "\"values\":[\"node-2\"]"), "elsewhere");
    struct op_plan *plan = cast_plan(c);
    cr_assert_leq(plan->wake_ms, c->now_ms + lead_ms / 2, "it wakes by itself");
    plan_free(plan);
    comes(c, 3, true);
    cast_settle(c);
    cr_assert_eq(slot(c, 2)->state, OP_SLOT_ENDED, "its place is taken");
    cr_assert_eq(slot(c, 3)->state, OP_SLOT_PRESENT);
    cast_free(c);
}

Test(operator_surge,
     nor_is_it_kept_for_longer_than_half_of_what_the_taint_promises_or_once_its_node_is_deleted)
{
    static const int64_t lead_ms = 120 * 1000;
    for (int deleted = 0; deleted < 2; deleted++) {
        struct cast *c = cast_training("{\"workers\":{\"min\":3}}");
        taint(c, 2, lead_ms);
        cast_settle(c);
        all_stay(c);
        if (deleted) {
            text_copy(c->node[2].leave, sizeof c->node[2].leave, "is being deleted");
            c->node[2].lead_ms = 0;
        } else
            c->now_ms += lead_ms / 2;
        cast_settle(c);
        cr_assert_eq(slot(c, 2)->state, OP_SLOT_ENDED, "%d", deleted);
        cast_free(c);
    }
}

static bool tells_will(struct cast *c)
{
    return told_so(c, "NoticeReceived",
                   "worker 2: its machine will go: node-2 has the taint "
                   "aws-node-termination-handler/spot-itn") == 1;
}

/* All three are needed, and the machine of worker 2 is cordoned or has a taint, or both. */
static struct cast *all_needed(bool cordoned, int64_t lead_ms)
{
    struct cast *c = cast_training("{\"workers\":{\"min\":3}}");
    if (cordoned)
        cordon(c, 2);
    if (lead_ms)
        taint(c, 2, lead_ms);
    cast_settle(c);
    return c;
}

Test(operator_surge, a_word_that_becomes_surer_is_told_anew_and_its_time_counts_from_then_on)
{
    struct cast *c = all_needed(true, 0);
    later(c, 3600 * second_ms);
    cast_settle(c);
    taint(c, 2, 120 * second_ms);
    cr_assert(tells_will(c));
    cast_settle(c);
    cr_assert_not(tells_will(c), "once");
    later(c, 59 * second_ms);
    all_stay(c);
    later(c, second_ms);
    cast_settle(c);
    cr_assert_eq(slot(c, 2)->state, OP_SLOT_ENDED);
    cast_free(c);
}

/* Its metadata told a rebalance, say. */
Test(operator_surge, no_milder_word_of_its_metadata_hides_that_its_node_says_it_will_go)
{
    struct cast *c = cast_training("{\"workers\":{\"min\":3}}");
    c->coordinator.worker[2].may_go = true;
    cast_settle(c);
    taint(c, 2, 120 * second_ms);
    cr_assert(tells_will(c));
    cast_settle(c);
    cr_assert_not(tells_will(c), "once");
    later(c, 60 * second_ms);
    cast_settle(c);
    cr_assert_eq(slot(c, 2)->state, OP_SLOT_ENDED, "half of its time is over");
    cast_free(c);
}

Test(operator_surge, of_two_taints_that_come_one_after_the_other_the_nearer_end_counts)
{
    for (int close = 0; close < 2; close++) { /* the second one's end is the nearer one, or the first one's */
        struct cast *c = all_needed(false, 1200 * second_ms);
        later(c, close ? 590 * second_ms : 300 * second_ms);
        taint(c, 2, close ? 1100 * second_ms : 120 * second_ms);
        cr_assert_eq(tells_will(c), !close, "what ends no sooner is no news");
        cast_settle(c);
        all_stay(c);
        later(c, 60 * second_ms);
        cast_settle(c);
        cr_assert_eq(slot(c, 2)->state, OP_SLOT_ENDED, "%d", close);
        cast_free(c);
    }
}

Test(operator_surge, a_nearer_taint_that_is_taken_back_leaves_the_other_with_its_own_end)
{
    struct cast *c = all_needed(false, 600 * second_ms);
    later(c, 10 * second_ms);
    taint(c, 2, 120 * second_ms);
    cast_settle(c);
    later(c, 20 * second_ms);
    taint(c, 2, 600 * second_ms);
    cr_assert(tells_will(c), "its time is another one");
    cast_settle(c);
    cr_assert_not(tells_will(c), "once");
    later(c, 269 * second_ms);
    all_stay(c);
    later(c, second_ms);
    cast_settle(c);
    cr_assert_eq(slot(c, 2)->state, OP_SLOT_ENDED);
    cast_free(c);
}

Test(operator_surge, a_will_that_is_taken_back_leaves_the_may_beside_it_and_comes_again_with_a_new_time)
{
    static const char milder[] = "worker 2: its machine node-2 will not go for sure any more: it is cordoned";
    struct cast *c = all_needed(true, 120 * second_ms);
    later(c, 30 * second_ms);
    *c->node[2].leave = 0;
    c->node[2].lead_ms = 0;
    cr_assert_eq(told_so(c, "NoticeWithdrawn", milder), 1);
    cast_settle(c);
    cr_assert_eq(told_so(c, "NoticeWithdrawn", milder), 0, "once");
    later(c, 600 * second_ms);
    all_stay(c);
    taint(c, 2, 120 * second_ms);
    cr_assert(tells_will(c));
    all_stay(c);
    later(c, 60 * second_ms);
    cast_settle(c);
    cr_assert_eq(slot(c, 2)->state, OP_SLOT_ENDED);
    cast_free(c);
}

Test(operator_surge, a_taint_that_is_taken_back_is_no_end_of_what_its_metadata_says)
{
    struct cast *c = cast_training("{\"workers\":{\"min\":3}}");
    taint(c, 2, 120 * second_ms);
    cast_settle(c);
    c->coordinator.worker[2].will_go = true;
    *c->node[2].leave = 0;
    c->node[2].lead_ms = 0;
    struct op_plan *plan = cast_plan(c);
    for (int i = 0; i < plan->events_count; i++)
        cr_assert_str_neq(plan->event[i].reason, "NoticeWithdrawn", "%s", plan->event[i].note);
    plan_free(plan);
    cast_settle(c);
    cr_assert_not(slot(c, 2)->told_ms);
    cast_free(c);
}

Test(operator_surge,
     for_a_machine_that_will_go_another_one_is_made_at_once_and_its_coordinator_says_when_it_leaves)
{
    static const char *const jobs[] = {"{}", "{\"scheduling\":{\"surge\":0}}"};
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        struct cast *c = cast_training(jobs[i]);
        will_go(c, 1);
        cast_settle(c);
        cr_assert_eq(slot(c, 3)->state, OP_SLOT_WANTED);
        cr_assert(body_says(c, "\"values\":[\"node-1\"]"), "it is put elsewhere");
        comes(c, 3, true);
        cr_assert_not(cast_says(c, "event Relieved"));
        all_stay(c);
        c->coordinator.worker[1].in_ring = false;
        all_stay(c);
        cast_worker(c, 1)->phase = OP_SUCCEEDED;
        cast_settle(c);
        cr_assert_eq(slot(c, 1)->state, OP_SLOT_ENDED);
        cr_assert_eq(c->job.status.workers.surge, 0);
        cr_assert_neq(slot(c, 4)->state, OP_SLOT_WANTED);
        cast_free(c);
    }
}

Test(operator_surge, where_all_machines_will_go_as_many_are_made)
{
    struct cast *c = cast_training("{}");
    for (int w = 0; w < 3; w++)
        will_go(c, w);
    cast_settle(c);
    cr_assert_eq(c->job.status.workers.surge, 3);
    for (int w = 3; w < 6; w++)
        cr_assert_eq(slot(c, w)->state, OP_SLOT_WANTED);
    all_stay(c);
    cast_free(c);
}

/* The taint says that it will go, and not when: the worker knows. */
Test(operator_surge, a_taint_ends_nobody_who_knows_its_moment_while_the_coordinator_is_heard)
{
    struct cast *c = cast_training("{}");
    will_go(c, 2);
    text_copy(c->node[2].leave, sizeof c->node[2].leave,
              "has the taint aws-node-termination-handler/spot-itn");
    cast_settle(c);
    all_stay(c);
    c->silence = (struct op_silence){.since_ms = CAST_NOW - 40000, .last_ms = CAST_NOW};
    cast_settle(c);
    cr_assert_eq(slot(c, 2)->state, OP_SLOT_ENDED);
    cast_free(c);
}

/* Else two such machines would pass one worker to and fro: the next replacement would be put on the one that
 * the first has left, and be told the same there. */
Test(operator_surge, a_machine_that_was_left_for_its_own_word_gets_no_replacement)
{
    struct cast *c = cast_training("{}");
    c->coordinator.worker[1].may_go = c->coordinator.worker[2].may_go = true;
    cast_settle(c);
    comes(c, 3, true);
    cast_settle(c);
    cr_assert_eq(slot(c, 2)->state, OP_SLOT_ENDED);
    cr_assert_eq(slot(c, 4)->state, OP_SLOT_WANTED);
    vanishes(c, cast_worker(c, 2));
    cr_assert(body_says(c, "\"values\":[\"node-1\"]},{\"key\":\"metadata.name\",\"operator\":\"NotIn\","
                           "\"values\":[\"node-2\"]}]}]"));
    text_copy(c->node[2].name, sizeof c->node[2].name, "another");
    cr_assert_not(body_says(c, "node-2"), "that one is gone");
    cast_free(c);
}

Test(operator_surge, a_coordinator_that_gives_no_answer_is_not_believed_for_ever)
{
    struct cast *c = with_one_more("{}");
    comes(c, 3, true);
    c->silence = (struct op_silence){.since_ms = CAST_NOW - 40000, .last_ms = CAST_NOW};
    all_stay(c);
    c->silence = (struct op_silence){0};
    cast_settle(c);
    cr_assert_eq(slot(c, 2)->state, OP_SLOT_ENDED);
    cast_free(c);
}

Test(operator_surge, where_the_word_is_withdrawn_who_came_last_goes)
{
    struct cast *c = with_one_more("{}");
    cast_pod(c, OP_WORKER, 3, 1);
    *cast_worker(c, 3)->node = 0;
    cast_settle(c);
    *c->node[2].may_leave = 0;
    cast_settle(c);
    cr_assert_eq(slot(c, 3)->state, OP_SLOT_ENDED);
    cr_assert_eq(c->job.status.workers.current, 3);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(slot(c, i)->state, OP_SLOT_PRESENT, "worker %d stays", i);
    cast_free(c);
}

/* Worker 2's machine may go, worker 1's will. Of those made for them worker 4 was there first, and worker 1
 * has left for it, as its coordinator has not told yet. Now worker 2's machine does not go after all. */
Test(operator_surge, who_has_just_taken_a_place_does_not_go_for_a_word_that_is_withdrawn)
{
    struct cast *c = with_one_more("{}");
    will_go(c, 1);
    cast_settle(c);
    cr_assert_eq(slot(c, 4)->state, OP_SLOT_WANTED);
    cast_pod(c, OP_WORKER, 3, 1);
    comes(c, 4, false);
    cast_settle(c);
    leaves(c, 1);
    *c->node[2].may_leave = 0;
    cast_settle(c);
    cast_settle(c);
    cr_assert_eq(slot(c, 4)->state, OP_SLOT_PRESENT, "it trains");
    cr_assert_eq(slot(c, 3)->state, OP_SLOT_ENDED, "it has not even said hello");
    cr_assert_eq(c->job.status.workers.current, 3);
    cast_free(c);
}

/* Else nobody beside the ring is worth more than who trains. */
Test(operator_surge, nor_does_who_trains_go_for_one_that_waits)
{
    struct cast *c = with_one_more("{}");
    comes(c, 3, false);
    cast_settle(c);
    *c->node[2].may_leave = 0;
    cast_settle(c);
    cr_assert_eq(slot(c, 3)->state, OP_SLOT_ENDED);
    all_stay(c);
    cast_free(c);
}

Test(operator_surge, with_none_more_allowed_a_warning_moves_nobody)
{
    struct cast *c = cast_training("{\"scheduling\":{\"surge\":0}}");
    cordon(c, 2);
    all_stay(c);
    cr_assert_eq(c->job.status.workers.current, 3);
    cast_free(c);
}

Test(operator_surge, several_are_replaced_as_many_at_a_time_as_the_job_says)
{
    static const char *const jobs[] = {"{}", "{\"scheduling\":{\"surge\":2}}"};
    for (int more = 1; more <= 2; more++) {
        struct cast *c = cast_training(jobs[more - 1]);
        for (int i = 0; i < 3; i++)
            cordon(c, i);
        cast_settle(c);
        cr_assert_eq(c->job.status.workers.surge, more);
        for (int i = 3; i < 3 + more; i++)
            comes(c, i, true);
        cast_settle(c);
        int left = 0;
        for (int i = 0; i < 3; i++)
            left += slot(c, i)->state == OP_SLOT_ENDED;
        cr_assert_eq(left, more, "%d leave for %d who came", left, more);
        cr_assert_eq(c->job.status.workers.current, 4, "and the next one comes at once");
        cast_free(c);
    }
}

Test(operator_surge, who_comes_for_a_lost_one_relieves_nobody)
{
    struct cast *c = with_one_more("{}");
    comes(c, 3, true);
    c->coordinator.worker[0].in_ring = false;
    c->coordinator.ring_size = 3;
    all_stay(c);
    cast_free(c);
}

Test(operator_surge, while_the_ring_stands_still_nobody_leaves)
{
    struct cast *c = with_one_more("{}");
    comes(c, 3, true);
    c->coordinator.state = STATUS_RECOVERING;
    all_stay(c);
    cast_free(c);
}

/* Who comes waits beside the ring, and may take another one's place in the moment in which we would send
 * somebody away for it. */
Test(operator_surge, who_waits_beside_a_ring_is_counted_by_its_coordinator_alone)
{
    static const char *const jobs[] = {
        "{\"workers\":{\"target\":3,\"max\":3}}",
        "{\"trainer\":null,\"launch\":{\"command\":[\"sh\",\"-c\",\"train\"],\"mode\":\"Restart\"}}",
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        struct cast *c = with_one_more(jobs[i]);
        cr_assert(cast_says(c, "poll 10.244.0.1 term 1 relieve=2.1&stay=3"),
                  "it is asked before who comes does");
        comes(c, 3, false);
        all_stay(c);
        c->coordinator.worker[2] = c->coordinator.worker[3];
        c->coordinator.worker[2].in_ring = true;
        c->coordinator.workers_count = 3;
        leaves(c, 2);
        cr_assert(
            cast_says(c, "event Relieved  worker 2 leaves node-2, which is cordoned; another one has taken "
                         "its place"));
        cast_settle(c);
        cr_assert_eq(slot(c, 2)->state, OP_SLOT_ENDED);
        cr_assert_eq(c->job.status.restarts.preemption, 0, "nobody was interrupted");
        cr_assert_eq(c->job.status.workers.surge, 0);
        cr_assert_neq(slot(c, 4)->state, OP_SLOT_WANTED);
        cast_free(c);
    }
}

/* Its coordinator knows no more of it than that it has left. */
Test(operator_surge, of_who_left_for_its_machines_own_word_that_is_known_when_nobody_says_so_any_more)
{
    struct cast *c = cast_training("{}");
    c->coordinator.worker[1].may_go = true;
    cast_settle(c);
    comes(c, 3, true);
    cr_assert(slot(c, 1)->asked);
    c->coordinator.worker[1] = c->coordinator.worker[3];
    c->coordinator.workers_count = 3;
    leaves(c, 1);
    cr_assert(cast_says(c, "event Relieved  worker 1 leaves node-1, which may go, as it was told; another "));
    cast_settle(c);
    cr_assert_str_eq(c->job.status.workers.left.name[0], "node-1");
    cast_free(c);
}

Test(operator_surge, a_coordinator_is_asked_for_as_many_as_may_be_replaced_at_a_time_and_for_none_that_stays)
{
    static const struct {
        const char *job;
        int cordoned;
        const char *says;
    } cases[] = {
        {"{}", 0, "poll 10.244.0.1 term 1\n"},
        {"{}", 1, "poll 10.244.0.1 term 1 relieve=0.1&stay=3\n"},
        {"{}", 3, "poll 10.244.0.1 term 1 relieve=0.1&stay=3\n"},
        {"{\"scheduling\":{\"surge\":2}}", 3, "poll 10.244.0.1 term 1 relieve=0.1,1.1&stay=3\n"},
        {"{\"scheduling\":{\"surge\":0}}", 3, "poll 10.244.0.1 term 1\n"},
        {"{\"suspend\":true}", 3, "poll 10.244.0.1 term 1\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cast *c = cast_training(cases[i].job);
        for (int n = 0; n < cases[i].cordoned; n++)
            cordon(c, n);
        cast_settle(c);
        cr_assert(cast_says(c, cases[i].says), "case %zu", i);
        for (int n = 0; n < 3; n++)
            *c->node[n].may_leave = 0;
        cast_settle(c);
        cr_assert(cast_says(c, "poll 10.244.0.1 term 1\n"), "case %zu: it is withdrawn", i);
        cast_free(c);
    }
}

/* Who waits for a place may itself be on such a machine. */
Test(operator_surge, who_waits_on_another_machine_that_may_go_takes_nobodys_place)
{
    struct cast *c = with_one_more("{\"workers\":{\"target\":3,\"max\":3}}");
    comes(c, 3, false);
    cordon(c, 3);
    cast_settle(c);
    cr_assert_eq(slot(c, 3)->state, OP_SLOT_ENDED, "it was of no use");
    cr_assert_eq(slot(c, 4)->state, OP_SLOT_WANTED, "the next one is put elsewhere");
    all_stay(c);
    cast_free(c);
}

/* Where there is no other machine a lost worker is better off on one that may go than nowhere. */
Test(operator_surge, the_one_more_is_barred_from_that_machine_and_who_follows_a_lost_one_is_not)
{
    struct cast *c = with_one_more("{}");
    int barred = 0, free = 0;
    vanishes(c, cast_worker(c, 0));
    *slot(c, 0) = (struct op_slot){.state = OP_SLOT_WANTED, .attempt = 2};
    struct op_plan *plan = cast_plan(c);
    for (int i = 0; i < plan->actions_count; i++) {
        const struct op_action *a = &plan->action[i];
        if (a->kind != OP_CREATE || a->resource != OP_PODS)
            continue;
        bool bars = strstr(str_text(&a->body), "\"values\":[\"node-2\"]") != NULL;
        barred += bars;
        free += !bars;
    }
    plan_free(plan);
    cr_assert_eq(barred, 1);
    cr_assert_eq(free, 1);
    cast_free(c);
}

Test(operator_surge, each_of_a_templates_own_terms_is_barred_from_it)
{
    static const struct op_settings settings = {.worker_image = "w", .operator_namespace = ""};
    static const char terms[] =
        "{\"workers\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\",\"image\":\"i\"}],"
        "\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"
        "\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"}]},"
        "{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"n\"]}]}]}}}}}}}";
    struct op_elsewhere elsewhere = {.barred_count = 2, .barred = {"node-1", "node-2"}};
    struct cast *c = cast_open(terms);
    struct str text = str_init(OP_POD_TEXT_MAX);
    struct error err = {0};
    cr_assert_eq(pod_worker(&c->job, &settings, &elsewhere, 0, 1, &text, &err), 0, "%s", err.text);
#define BARRED                                                                                               \
    "{\"key\":\"metadata.name\",\"operator\":\"NotIn\",\"values\":[\"node-1\"]},"                            \
    "{\"key\":\"metadata.name\",\"operator\":\"NotIn\",\"values\":[\"node-2\"]}]}"
    cr_assert(strstr(str_text(&text), "\"operator\":\"Exists\"}],\"matchFields\":[" BARRED), "%s",
              str_text(&text));
    cr_assert(strstr(str_text(&text), "\"values\":[\"n\"]}," BARRED), "%s", str_text(&text));
    str_clear(&text);
    cast_free(c);
}

/* Both are more than the target, and one of the two has to go anyway. */
Test(operator_surge, who_is_on_such_a_machine_goes_first_when_there_are_fewer_places)
{
    struct cast *c = with_one_more("{}");
    comes(c, 3, true);
    c->job.workers_target = 2;
    cast_settle(c);
    cr_assert_eq(slot(c, 2)->state, OP_SLOT_ENDED);
    cast_settle(c);
    cr_assert_eq(c->job.status.workers.current, 2);
    cast_free(c);
}
