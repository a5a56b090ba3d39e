/* A job stops where its budget is spent, and goes on by itself when it is higher. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cast.h"

#define HEAD  "provider,region,zone,instance_type,capacity_type,price_per_hour,currency,valid_from\n"
#define LIMIT "{\"cost\":{\"budget\":{\"limit\":10,\"warnAt\":0.5}}}"

enum { SECOND_MS = 1000, MINUTE_MS = 60 * SECOND_MS };

/* Three workers and a coordinator that train on machines at 2 an hour: 8 an hour together. */
static struct cast *spending(const char *changes)
{
    static const char prices[] = HEAD ",,,,,2,USD,\n";
    struct error err = {0};
    struct cast *c = cast_open(changes);
    cr_assert_eq(prices_parse(&c->prices, prices, sizeof prices - 1, &err), 0, "%s", err.text);
    cast_train(c);
    for (int i = 0; i < c->pods_count; i++) {
        c->pod[i].bound_ms = c->now_ms;
        c->pod[i].asked = (struct resources){.count = 1, .of = {{"cpu", 1000}}};
    }
    cast_settle(c);
    return c;
}

static void pass(struct cast *c, int minutes)
{
    c->now_ms += (int64_t)minutes * MINUTE_MS;
    cast_settle(c);
    cast_settle(c);
}

static void all_end(struct cast *c)
{
    c->pods_count = 0;
    c->coordinator_answers = false;
    for (int i = 0; i < 4; i++)
        cast_settle(c);
}

static int told(struct cast *c, const char *reason)
{
    int count = 0;
    struct op_plan *plan = cast_plan(c);
    for (int i = 0; i < plan->events_count; i++)
        count += strcmp(plan->event[i].reason, reason) == 0;
    plan_free(plan);
    return count;
}

static void set_limit(struct cast *c, int64_t units)
{
    c->job.budget_micros = units * PRICE_UNIT;
    c->job.warn_micros = c->job.budget_micros / 2;
    c->job.generation++;
}

static const struct op_condition *suspended(const struct cast *c)
{
    return &c->job.status.condition[OP_SUSPENDED];
}

Test(operator_budget, it_is_warned_of_once_and_where_it_is_spent_all_end_and_their_end_is_paid_from_it)
{
    struct cast *c = spending(LIMIT);
    pass(c, 37);
    cr_assert_eq(told(c, "BudgetWarning"), 0);
    c->now_ms += MINUTE_MS;
    cr_assert_eq(told(c, "BudgetWarning"), 1, "5.07 of 10, and 5 were to be told");
    pass(c, 0);
    cr_assert_eq(told(c, "BudgetWarning"), 0, "once");
    pass(c, 35);
    cr_assert(slot_is_live(&c->job.status.workers.slot[0]), "9.73 are spent");
    c->now_ms += MINUTE_MS + 1000;
    cr_assert_eq(told(c, "BudgetSpent"), 1, "9.87 are, and the last minute of all of them costs 0.13");
    cr_assert(cast_says(
        c, "BudgetSpent  9.86 of the budget of 10.00 USD are spent: what is left is kept for a last save"));
    pass(c, 0);
    cr_assert_not(slot_is_live(&c->job.status.workers.slot[0]));
    cr_assert_str_eq(c->job.status.state, "Suspending");
    cr_assert(slot_is_live(&c->job.status.ring.coordinator), "it serves them until they have ended");
    all_end(c);
    cr_assert_eq(suspended(c)->status, OP_TRUE);
    cr_assert_str_eq(suspended(c)->reason, "BudgetSpent");
    cr_assert_str_eq(c->job.status.state, "Suspended");
    cr_assert(strstr(c->job.status.message,
                     "; it goes on with a limit above 10.01 (0.14 are kept for a last save)"),
              "%s", c->job.status.message);
    cr_assert_eq(c->job.status.active_ms, 0, "the deadline's clock stands");
    cr_assert_eq(c->job.status.restarts.preemption + c->job.status.restarts.failure, 0);
    cr_assert_not(condition_is(&c->job.status, OP_FINISHED), "no TTL begins");
    cast_free(c);
}

Test(operator_budget, it_wakes_itself_when_the_money_will_be_gone)
{
    struct cast *c = spending(LIMIT);
    pass(c, 73);
    struct op_plan *plan = cast_plan(c);
    cr_assert_leq(plan->wake_ms, c->now_ms + MINUTE_MS, "in %lld ms", (long long)(plan->wake_ms - c->now_ms));
    plan_free(plan);
    cast_free(c);
}

Test(operator_budget, what_was_kept_for_the_end_is_no_money_to_go_on_with)
{
    struct cast *c = spending(LIMIT);
    pass(c, 75);
    all_end(c);
    pass(c, 60);
    cr_assert_eq(suspended(c)->status, OP_TRUE, "9.87 are less than 10, and it stays");
    set_limit(c, 9);
    pass(c, 0);
    cr_assert_eq(suspended(c)->status, OP_TRUE, "a lower one");
    set_limit(c, 10);
    pass(c, 0);
    cr_assert_eq(suspended(c)->status, OP_TRUE, "the same again");
    set_limit(c, 20);
    for (int i = 0; i < 6; i++) /* on trial, a new key, and its slots */
        cast_settle(c);
    cr_assert_eq(suspended(c)->status, OP_FALSE);
    cr_assert(slot_is_live(&c->job.status.workers.slot[0]), "it goes on by itself");
    cr_assert_gt(c->job.status.active_ms, 0);
    cast_free(c);
}

Test(operator_budget, a_suspension_by_hand_shows_its_own_reason)
{
    struct cast *c = spending(LIMIT);
    pass(c, 75);
    c->job.suspend = true;
    all_end(c);
    cr_assert_str_eq(suspended(c)->reason, "Suspended");
    c->job.suspend = false;
    pass(c, 0);
    cr_assert_str_eq(suspended(c)->reason, "BudgetSpent");
    cast_free(c);
}

Test(operator_budget, a_pod_without_a_price_is_told_once_and_the_others_are_held_to_it)
{
    struct error err = {0};
    static const char prices[] = HEAD ",,,big,,2,USD,\n";
    struct cast *c = spending(LIMIT);
    prices_clear(&c->prices);
    cr_assert_eq(prices_parse(&c->prices, prices, sizeof prices - 1, &err), 0, "%s", err.text);
    for (int i = 0; i < 3; i++)
        text_copy(c->node[i].machine.type, sizeof c->node[i].machine.type, i == 2 ? "odd" : "big");
    cast_worker(c, 2)->bound_ms = c->now_ms - 2 * MINUTE_MS;
    c->job.status.cost = (struct op_cost){0};
    c->memo = (struct op_memo){.dry_generation = c->job.generation};
    cr_assert_eq(told(c, "CostUnknown"), 1);
    pass(c, 90);
    cr_assert_eq(c->job.status.cost.spent.micros, 9 * PRICE_UNIT, "90 minutes of three at 2: %lld",
                 (long long)c->job.status.cost.spent.micros);
    cr_assert_gt(c->job.status.cost.unpriced.micros, PRICE_UNIT, "hours of the fourth");
    cr_assert(slot_is_live(&c->job.status.workers.slot[2]), "with four it were 12 of 10");
    cr_assert_eq(told(c, "CostUnknown"), 0, "once");
    pass(c, 10);
    cr_assert_not(slot_is_live(&c->job.status.workers.slot[2]), "it ends with the others");
    cast_free(c);
}

/* Their saves take five minutes, where one was kept for the end. */
Test(operator_budget, what_an_end_takes_beyond_the_limit_is_told)
{
    struct cast *c = spending(LIMIT);
    pass(c, 75);
    pass(c, 5);
    cr_assert_str_eq(c->job.status.state, "Suspending");
    c->pods_count = 0;
    c->coordinator_answers = false;
    cast_settle(c);
    cr_assert(
        cast_says(c, "BudgetSpent  no pods are left: 10.66 of the budget of 10.00 USD are spent, 0.66 more "
                     "than the limit"));
    all_end(c);
    cr_assert_eq(told(c, "BudgetSpent"), 0, "once");
    cr_assert(
        strstr(c->job.status.message, "10.66 of the budget of 10.00 USD are spent, 0.66 more than the limit"),
        "%s", c->job.status.message);
    cr_assert_eq(c->job.status.cost.spent.micros / 10000, 1066);
    cast_free(c);
}

static int live(const struct cast *c)
{
    int count = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        count += slot_is_live(&c->job.status.workers.slot[i]);
    return count;
}

#define WAITED "{\"cost\":{\"budget\":{\"limit\":10}},\"checkpoint\":{\"endTimeout\":\"5m\"}}"

/* 9.88 of its budget are spent, and its store takes nothing. */
static struct cast *lingering(void)
{
    struct cast *c = spending(WAITED);
    text_copy(c->coordinator.outage, sizeof c->coordinator.outage, "http://store: no answer");
    c->now_ms += 74 * MINUTE_MS + 10 * SECOND_MS;
    cr_assert(cast_says(c,
                        "BudgetSpent  9.88 of the budget of 10.00 USD are spent: what is left is kept for a "
                        "last save, which can't be made now and is waited for"));
    pass(c, 0);
    cr_assert_eq(live(c), 3);
    return c;
}

Test(operator_budget, who_holds_what_cant_be_saved_now_stays_until_it_can_be)
{
    struct cast *c = lingering();
    const char *message = c->job.status.message;
    cr_assert_str_eq(c->job.status.state, "Suspending");
    cr_assert(strstr(message, "; the workers stay until what they hold is saved, until 2026-09-21T"), "%s",
              message);
    cr_assert(strstr(message, "Z at most: the store does not take the newest checkpoint: http://store: no "),
              "%s", message);
    cr_assert_eq(suspended(c)->status, OP_FALSE);
    cr_assert_str_eq(suspended(c)->reason, "Suspending");
    cr_assert_eq(c->job.status.condition[OP_TRAINING].status, OP_TRUE, "they train on meanwhile");
    *c->coordinator.outage = 0;
    pass(c, 0);
    cr_assert_eq(live(c), 0, "they are told to go, and save");
    cr_assert(slot_is_live(&c->job.status.ring.coordinator));
    all_end(c);
    cr_assert_str_eq(suspended(c)->reason, "BudgetSpent");
    cast_free(c);
}

Test(operator_budget, it_is_waited_for_as_long_as_the_job_says_whoever_counts_the_time)
{
    struct cast *c = lingering();
    int64_t spent_ms = c->now_ms;
    c->memo = (struct op_memo){.dry_generation = c->job.generation}; /* another process of the operator's */
    c->now_ms = spent_ms + 5 * MINUTE_MS - SECOND_MS;
    struct op_plan *plan = cast_plan(c);
    cr_assert_eq(plan->wake_ms, spent_ms + 5 * MINUTE_MS, "in %lld ms",
                 (long long)(plan->wake_ms - c->now_ms));
    plan_free(plan);
    pass(c, 0);
    cr_assert_eq(live(c), 3);
    c->memo = (struct op_memo){.dry_generation = c->job.generation};
    c->now_ms += SECOND_MS;
    cr_assert(cast_says(c, "BudgetSpent  10.55 of the budget of 10.00 USD are spent, and "
                           "checkpoint.endTimeout is over: all end without a last save"));
    pass(c, 0);
    cr_assert_eq(live(c), 0);
    cr_assert_eq(told(c, "BudgetSpent"), 0, "once");
    all_end(c);
    cr_assert(strstr(c->job.status.message, "10.55 of the budget of 10.00 USD are spent, 0.55 more than the "
                                            "limit; it goes on with"),
              "%s", c->job.status.message);
    cast_free(c);
}

/* Its operator's clock was an hour ahead, or somebody wrote that by hand. */
Test(operator_budget, a_moment_that_is_yet_to_come_makes_nobody_stay_for_longer)
{
    struct cast *c = lingering();
    int64_t now_ms = c->now_ms;
    c->job.status.cost_told.stopped_ms = now_ms + 60 * MINUTE_MS;
    c->memo = (struct op_memo){.dry_generation = c->job.generation};
    pass(c, 0);
    cr_assert_eq(live(c), 3);
    cr_assert_leq(c->job.status.cost_told.stopped_ms, now_ms);
    c->now_ms = now_ms + 5 * MINUTE_MS + SECOND_MS;
    pass(c, 0);
    cr_assert_eq(live(c), 0);
    cast_free(c);
}

Test(operator_budget, of_whom_nobody_answers_nobody_knows_whether_it_is_saved)
{
    struct cast *c = spending(WAITED);
    c->coordinator_answers = false; /* not yet, to an operator that has just begun */
    pass(c, 75);
    cr_assert_eq(live(c), 3);
    cr_assert(strstr(c->job.status.message, ": the coordinator gives no answer"), "%s",
              c->job.status.message);
    c->coordinator_answers = true;
    pass(c, 0);
    cr_assert_eq(live(c), 0);
    cast_free(c);
}

static void vanishes(struct cast *c, const struct pod_view *pod)
{
    for (int i = 0; i < c->pods_count; i++)
        if (c->pods[i] == pod)
            c->pods[i] = c->pods[--c->pods_count];
}

Test(operator_budget, while_a_save_is_waited_for_nobody_comes_but_a_coordinator)
{
    struct cast *c = lingering();
    struct pod_view *waiting = cast_worker(c, 1);
    vanishes(c, cast_worker(c, 2));
    vanishes(c, &c->pod[0]);
    pass(c, 1);
    pass(c, 1); /* nobody knows when it ended: a pause follows */
    cr_assert_eq(live(c), 2);
    cr_assert_neq(c->job.status.workers.slot[2].state, OP_SLOT_WANTED);
    cr_assert_eq(c->job.status.ring.coordinator.attempt, 2, "without one nothing is ever saved");
    *waiting->node = 0;
    pass(c, 0);
    cr_assert_eq(live(c), 1, "who waits for a node holds nothing");
    cast_free(c);
}

Test(operator_budget, who_waits_for_a_save_goes_on_with_a_higher_limit_and_ends_at_once_by_hand)
{
    struct cast *c = lingering();
    set_limit(c, 20);
    pass(c, 0);
    cr_assert_eq(c->job.status.cost_told.stopped_ms, 0);
    cr_assert_str_eq(c->job.status.state, "Training");
    set_limit(c, 10);
    pass(c, 4);
    cr_assert_eq(live(c), 3, "its time counts from now on");
    c->job.suspend = true;
    pass(c, 0);
    cr_assert_eq(live(c), 0);
    cast_free(c);
}

/* An operator of before had told them to end. */
Test(operator_budget, what_was_stopped_before_the_moment_was_noted_is_not_waited_for)
{
    struct cast *c = lingering();
    c->job.status.cost_told.stopped_ms = 0;
    pass(c, 0);
    cr_assert_eq(live(c), 0);
    cast_free(c);
}

Test(operator_budget, who_has_trained_nothing_holds_nothing)
{
    struct cast *c = spending(WAITED);
    text_copy(c->coordinator.outage, sizeof c->coordinator.outage, "http://store: no answer");
    c->coordinator.progress = (struct op_progress){0};
    c->job.status.progress = (struct op_progress){0};
    pass(c, 75);
    cr_assert_eq(live(c), 0);
    cast_free(c);
}

Test(operator_budget, another_operator_keeps_to_it)
{
    struct cast *c = spending(LIMIT);
    pass(c, 75);
    c->memo = (struct op_memo){.dry_generation = c->job.generation};
    all_end(c);
    c->memo = (struct op_memo){.dry_generation = c->job.generation};
    pass(c, 60);
    cr_assert_str_eq(suspended(c)->reason, "BudgetSpent");
    cast_free(c);
}

Test(operator_budget, without_any_price_it_is_refused_before_the_first_pod)
{
    struct cast *c = cast_open(LIMIT);
    for (int i = 0; i < 4; i++)
        cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.attempt, 0);
    cr_assert(strstr(c->job.status.message, "spec.cost.budget: there is no price to hold it against"), "%s",
              c->job.status.message);
    cr_assert_eq(c->job.status.condition[OP_ADMITTED].status, OP_FALSE);
    struct error err = {0};
    static const char prices[] = HEAD ",,,,,2,USD,\n";
    cr_assert_eq(prices_parse(&c->prices, prices, sizeof prices - 1, &err), 0);
    for (int i = 0; i < 4; i++)
        cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.attempt, 1, "prices came");
    cast_free(c);
}

Test(operator_budget, a_job_with_a_price_of_its_own_needs_no_table)
{
    struct cast *c = cast_open(
        "{\"cost\":{\"budget\":{\"limit\":10}},\"spot\":{\"price\":{\"spot\":1,\"currency\":\"USD\"}}}");
    for (int i = 0; i < 4; i++)
        cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.attempt, 1);
    cr_assert_eq(c->job.warn_micros, 8 * PRICE_UNIT, "four fifths are the default");
    cast_free(c);
}

Test(operator_budget, a_currency_alone_is_no_price)
{
    struct cast *c =
        cast_open("{\"cost\":{\"budget\":{\"limit\":10}},\"spot\":{\"price\":{\"currency\":\"USD\"}}}");
    for (int i = 0; i < 4; i++)
        cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.attempt, 0);
    cr_assert(strstr(c->job.status.message, "there is no price to hold it against"), "%s",
              c->job.status.message);
    cast_free(c);
}

Test(operator_budget, where_no_node_may_be_seen_a_price_of_the_jobs_own_ends_it)
{
    struct cast *c = cast_open("{\"cost\":{\"budget\":{\"limit\":10}},"
                               "\"spot\":{\"price\":{\"spot\":0.5,\"onDemand\":2,\"currency\":\"USD\"}}}");
    c->nodes_known = false;
    cast_train(c);
    for (int i = 0; i < c->pods_count; i++)
        c->pod[i].bound_ms = c->now_ms;
    cast_settle(c);
    pass(c, 60);
    cr_assert_eq(c->job.status.cost.spent.micros, 8 * PRICE_UNIT, "four whole machines on demand: %lld",
                 (long long)c->job.status.cost.spent.micros);
    cr_assert_not(c->job.status.cost_told.unknown);
    pass(c, 15);
    all_end(c);
    cr_assert_str_eq(suspended(c)->reason, "BudgetSpent");
    cast_free(c);
}

Test(operator_budget, where_no_node_may_be_seen_a_table_is_no_price)
{
    struct error err = {0};
    static const char prices[] = HEAD ",,,,,2,USD,\n";
    struct cast *c = cast_open(LIMIT);
    c->nodes_known = false;
    cr_assert_eq(prices_parse(&c->prices, prices, sizeof prices - 1, &err), 0);
    for (int i = 0; i < 4; i++)
        cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.attempt, 0);
    cr_assert(strstr(c->job.status.message, "spec.cost.budget: the operator may not see nodes"), "%s",
              c->job.status.message);
    c->nodes_known = true;
    for (int i = 0; i < 4; i++)
        cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.attempt, 1);
    cast_free(c);
}

/* Each of the four machines costs 1000 an hour: the minute of their end 66.67, and a limit of 1 is spent by
 * their first second. */
Test(operator_budget, it_names_the_limit_that_goes_on_and_one_that_is_less_than_an_end)
{
    struct error err = {0};
    static const char prices[] = HEAD ",,,,,1000,USD,\n";
    struct cast *c = spending("{\"cost\":{\"budget\":{\"limit\":1}}}");
    prices_clear(&c->prices);
    cr_assert_eq(prices_parse(&c->prices, prices, sizeof prices - 1, &err), 0, "%s", err.text);
    c->now_ms += 1000;
    cr_assert(cast_says(c, "1.11 of the budget of 1.00 USD are spent: a last save alone takes 66.67"));
    cast_settle(c);
    all_end(c);
    const char *message = c->job.status.message;
    cr_assert(strstr(message, "it goes on with a limit above 67.78 (66.67 are kept for a last save, which is "
                              "more than the whole limit)"),
              "%s", message);
    set_limit(c, 10);
    pass(c, 0);
    cr_assert_eq(suspended(c)->status, OP_TRUE);
    cr_assert(strstr(message, "of the budget of 10.00 USD are spent; it goes on with a limit above 67.78"),
              "%s", message);
    set_limit(c, 67);
    pass(c, 0);
    cr_assert_eq(suspended(c)->status, OP_TRUE);
    cr_assert(strstr(message, "above 67.78 (66.67 are kept for a last save)"), "%s", message);
    set_limit(c, 68);
    for (int i = 0; i < 6; i++)
        cast_settle(c);
    cr_assert_eq(suspended(c)->status, OP_FALSE, "%s", message);
    cast_free(c);
}

Test(operator_budget, it_may_be_a_billion_and_is_exact_to_a_millionth)
{
    struct cast *c = cast_open("{\"cost\":{\"budget\":{\"limit\":999999999.999999}}}");
    cr_assert_eq(c->job.budget_micros, 999999999999999, "%lld", (long long)c->job.budget_micros);
    cast_free(c);
    c = cast_open("{\"cost\":{\"budget\":{\"limit\":1000000000}}}");
    cr_assert_eq(c->job.budget_micros, BUDGET_MOST);
    cast_free(c);
    c = cast_open("{\"cost\":{\"budget\":{\"limit\":1000000001}}}");
    cr_assert_eq(c->job.budget_micros, 0);
    cast_free(c);
}

Test(operator_budget, one_of_millions_is_warned_of_once_and_stays_spent)
{
    struct error err = {0};
    static const char prices[] = HEAD ",,,,,1000000,USD,\n"; /* 4 million an hour */
    struct cast *c = spending("{\"cost\":{\"budget\":{\"limit\":8000000,\"warnAt\":0.5}}}");
    prices_clear(&c->prices);
    cr_assert_eq(prices_parse(&c->prices, prices, sizeof prices - 1, &err), 0, "%s", err.text);
    c->now_ms += 61 * MINUTE_MS;
    cr_assert_eq(told(c, "BudgetWarning"), 1);
    pass(c, 0);
    cr_assert_eq(told(c, "BudgetWarning"), 0, "once");
    pass(c, 59);
    all_end(c);
    cr_assert_str_eq(suspended(c)->reason, "BudgetSpent");
    cr_assert_eq(c->job.status.cost_told.stopped_micros, 8000000 * (int64_t)PRICE_UNIT);
    cr_assert_eq(told(c, "BudgetSpent"), 0, "once");
    cast_free(c);
}

Test(operator_budget, one_that_lasts_longer_than_any_clock_wakes_nobody)
{
    struct error err = {0};
    static const char prices[] = HEAD ",,,,,0.000001,USD,\n";
    struct cast *c = spending("{\"cost\":{\"budget\":{\"limit\":1000000}}}");
    prices_clear(&c->prices);
    cr_assert_eq(prices_parse(&c->prices, prices, sizeof prices - 1, &err), 0, "%s", err.text);
    set_limit(c, 1000000000);
    pass(c, 1);
    struct op_plan *plan = cast_plan(c);
    cr_assert_gt(plan->wake_ms, c->now_ms, "%lld", (long long)plan->wake_ms);
    plan_free(plan);
    cast_free(c);
}
