/* Machines that will go by their Nodes' taints alone: the replacement, and the leave in time. */
#include "surge_cast.h"

/* Two would be enough. Nobody has its place yet, and its coordinator is to let it go when somebody has. */
Test(operator_taint, by_a_taint_nobody_leaves_before_another_one_has_the_place_though_enough_would_be_left)
{
    struct cast *c = cast_training("{\"scheduling\":{\"surge\":0}}");
    taint(c, 2, 120 * second_ms);
    cast_settle(c);
    cr_assert_eq(slot(c, 3)->state, OP_SLOT_WANTED, "another one is made at once");
    cr_assert(cast_says(c, "poll 10.244.0.1 term 1 relieve=2.1&will=2.1.120&stay=3\n"));
    comes(c, 3, false);
    later(c, 25 * second_ms);
    all_stay(c);
    cr_assert(cast_says(c, "poll 10.244.0.1 term 1 relieve=2.1&will=2.1.90&stay=3\n"),
              "in steps of ten seconds, and never more than there is");
    c->coordinator.worker[2] = c->coordinator.worker[3];
    c->coordinator.worker[2].in_ring = true;
    c->coordinator.workers_count = 3;
    leaves(c, 2);
    cast_settle(c);
    cr_assert_eq(slot(c, 2)->state, OP_SLOT_ENDED);
    cr_assert_eq(slot(c, 3)->state, OP_SLOT_PRESENT);
    cr_assert_eq(c->job.status.restarts.preemption, 1, "it was no wish");
    cr_assert_eq(c->job.status.workers.surge, 0);
    cr_assert_neq(slot(c, 4)->state, OP_SLOT_WANTED);
    cr_assert(cast_says(c, "poll 10.244.0.1 term 1\n"), "there is nothing to say any more");
    cast_free(c);
}

/* Who came was in the ring before that was asked. */
Test(operator_taint, a_taint_ends_who_has_no_place_any_more)
{
    struct cast *c = cast_training("{}");
    taint(c, 2, 120 * second_ms);
    cast_settle(c);
    comes(c, 3, true);
    cast_settle(c);
    cr_assert_eq(slot(c, 2)->state, OP_SLOT_ENDED);
    cast_free(c);
}

Test(operator_taint, a_taint_that_is_taken_back_is_asked_for_no_more_and_the_one_more_goes)
{
    struct cast *c = cast_training("{}");
    taint(c, 2, 120 * second_ms);
    cast_settle(c);
    cast_pod(c, OP_WORKER, 3, 1);
    *cast_worker(c, 3)->node = 0;
    *c->node[2].leave = 0;
    c->node[2].lead_ms = 0;
    cast_settle(c);
    cr_assert(cast_says(c, "poll 10.244.0.1 term 1\n"));
    cr_assert_eq(slot(c, 3)->state, OP_SLOT_ENDED);
    all_stay(c);
    cast_free(c);
}

/* What its coordinator says a leave takes, ten seconds until it is heard, and fifteen in which another
 * operator may have to take over; half where it says nothing. */
Test(operator_taint, nor_is_it_kept_for_longer_than_leaves_its_coordinators_time_for_a_leave)
{
    static const struct {
        const char *job;
        int64_t lead, leave, until;
    } cases[] = {
        {"{}", 120, 0, 60},
        {"{}", 120, 6, 89},
        {"{}", 120, 85, 10},
        {"{}", 120, 300, 0},
        {"{}", 600, 6, 569},
        {"{}", 600, 0, 300},
        {"{}", 30, 6, 9},
        {"{\"workers\":{\"min\":3}}", 120, 0, 60},
        {"{\"workers\":{\"min\":3}}", 120, 6, 89},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cast *c = cast_training(cases[i].job);
        c->coordinator.worker[2].leave_ms = cases[i].leave * second_ms;
        taint(c, 2, cases[i].lead * second_ms);
        cast_settle(c);
        if (cases[i].until) {
            all_stay(c);
            struct op_plan *plan = cast_plan(c);
            cr_assert_leq(plan->wake_ms, c->now_ms + cases[i].until * second_ms, "it wakes by itself");
            plan_free(plan);
            later(c, (cases[i].until - 1) * second_ms);
            all_stay(c);
            later(c, second_ms);
            cast_settle(c);
        }
        cr_assert_eq(slot(c, 2)->state, OP_SLOT_ENDED, "case %zu", i);
        cr_assert_eq(slot(c, 3)->state, OP_SLOT_WANTED, "case %zu", i);
        cast_free(c);
    }
}

Test(operator_taint, where_enough_would_be_left_a_taint_ends_who_can_not_be_let_go_in_order)
{
    for (int silent = 0; silent < 2; silent++) {
        struct cast *c = cast_training("{}");
        taint(c, 2, silent ? 120 * second_ms : 0);
        if (silent)
            c->silence = (struct op_silence){.since_ms = CAST_NOW - 40000, .last_ms = CAST_NOW};
        cast_settle(c);
        cr_assert_eq(slot(c, 2)->state, OP_SLOT_ENDED, "%d", silent);
        cast_free(c);
    }
}

/* Else its coordinator, which is not told of it any more, would let somebody go for it until its pod is
 * deleted. */
Test(operator_taint, who_is_not_in_the_ring_is_sent_away_by_its_coordinator)
{
    for (int there = 0; there < 2; there++) {
        struct cast *c = cast_training("{}");
        taint(c, 1, 120 * second_ms);
        cast_settle(c);
        cast_pod(c, OP_WORKER, 3, 1);
        if (there)
            arrives(c, 3, false);
        taint(c, 3, 120 * second_ms);
        cast_settle(c);
        cr_assert_eq(slot(c, 3)->state, OP_SLOT_PRESENT);
        cr_assert_eq(slot(c, 4)->state, OP_SLOT_WANTED, "another one is made");
        cr_assert(cast_says(c, "relieve=1.1,3.1&will=1.1.120,3.1.120&stay=3\n"));
        cast_free(c);
    }
}

Test(operator_taint, who_knows_of_its_end_by_itself_or_is_deleted_is_told_nothing_by_a_taint)
{
    struct cast *c = cast_training("{}");
    taint(c, 1, 120 * second_ms);
    taint(c, 2, 120 * second_ms);
    will_go(c, 1);
    cast_settle(c);
    cr_assert(cast_says(c, "poll 10.244.0.1 term 1 relieve=2.1&will=2.1.120&stay=3\n"));
    cast_worker(c, 2)->deletion_ms = CAST_NOW + 30000;
    cast_settle(c);
    cr_assert(cast_says(c, "poll 10.244.0.1 term 1 relieve=&deleted=2.1&will=2.1.120&stay=3\n"),
              "its grace may be longer");
    cast_free(c);
}

/* Coordinators read no longer question. Of those who are not named now are named when others have gone. */
Test(operator_taint, of_more_than_there_is_room_for_in_a_question_as_many_are_named)
{
    struct cast *c = cast_training(
        "{\"workers\":{\"target\":64,\"max\":64},\"trainer\":{\"batch\":{\"lanes\":64,\"perLane\":1}}}");
    for (int i = 0; i < 64; i++) {
        struct pod_view *pod = cast_worker(c, i);
        text_copy(pod->node, sizeof pod->node, "node-1");
        slot(c, i)->attempt = pod->attempt = c->coordinator.worker[i].attempt = 123456;
    }
    taint(c, 1, 120 * second_ms);
    cast_settle(c);
    struct op_plan *plan = cast_plan(c);
    size_t length = strlen(plan->relief);
    cr_assert(length > OP_RELIEF_MAX / 2 && length < OP_RELIEF_MAX - 1, "%s", plan->relief);
    cr_assert_eq(strncmp(plan->relief, "relieve=0.123456,1.123456,", 26), 0, "%s", plan->relief);
    cr_assert_str_eq(plan->relief + length - strlen("&stay=64"), "&stay=64");
    plan_free(plan);
    cast_free(c);
}
