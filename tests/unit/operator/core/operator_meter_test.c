/* What a job's pods cost: from the node to the end, by share and price, and once, whoever counts. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cast.h"
#include "common/base/prng.h"
#include "operator/core/plan_parts.h"

#define HEAD "provider,region,zone,instance_type,capacity_type,price_per_hour,currency,valid_from\n"

enum { HOUR_MS = 3600 * 1000, MINUTE_MS = 60 * 1000 };

static void set_prices(struct cast *c, const char *text)
{
    struct error err = {0};
    prices_clear(&c->prices);
    cr_assert_eq(prices_parse(&c->prices, text, strlen(text), &err), 0, "%s", err.text);
}

static void make_nodes(struct cast *c)
{
    for (int i = 0; i < CAST_NODES; i++) {
        struct node_view *node = &c->node[i];
        text_copy(node->machine.type, sizeof node->machine.type, i % 2 ? "large" : "small");
        node->machine.capacity = i < 4 ? PRICE_SPOT : PRICE_ON_DEMAND;
        node->allocatable = (struct resources){.count = 1, .of = {{"cpu", 8000}}};
    }
}

/* A job without pods, and machines at 2 (spot) and 6 (on demand) an hour, the large ones at 4 and 10. */
static struct cast *metered(const char *changes)
{
    struct cast *c = cast_open(changes);
    make_nodes(c);
    set_prices(c, HEAD
               ",,,small,spot,2,USD,\n,,,small,on-demand,6,USD,\n,,,large,spot,4,USD,\n,,,large,,10,USD,\n");
    for (int i = 0; i < 4; i++)
        cast_settle(c); /* it is tried, has its key, and its slots */
    return c;
}

/* Half a machine, on that node from now on. */
static struct pod_view *bind(struct cast *c, enum pod_role role, int index, int attempt, int node)
{
    struct pod_view *pod = cast_pod(c, role, index, attempt);
    snprintf(pod->node, sizeof pod->node, "node-%d", node);
    pod->asked = (struct resources){.count = 1, .of = {{"cpu", 4000}}};
    pod->created_ms = pod->bound_ms = c->now_ms;
    return pod;
}

static void end_pod(struct cast *c, struct pod_view *pod)
{
    pod->phase = OP_SUCCEEDED;
    pod->terminated = true;
    pod->ended_ms = pod->finished_ms = c->now_ms;
}

static void take_away(struct cast *c, const struct pod_view *pod)
{
    for (int i = 0; i < c->pods_count; i++)
        if (c->pods[i] == pod)
            c->pods[i] = c->pods[--c->pods_count];
}

static void pass(struct cast *c, int64_t ms)
{
    c->now_ms += ms;
    cast_settle(c);
}

static const struct op_cost *cost_of(const struct cast *c)
{
    return &c->job.status.cost;
}

static void expect_spent(const struct cast *c, int64_t spent, int64_t on_demand)
{
    cr_assert_eq(cost_of(c)->spent.micros, spent, "%lld", (long long)cost_of(c)->spent.micros);
    cr_assert_eq(cost_of(c)->on_demand.micros, on_demand, "%lld", (long long)cost_of(c)->on_demand.micros);
}

Test(operator_meter, a_pod_costs_its_share_of_its_machine_from_its_node_to_its_end)
{
    struct cast *c = metered("{}");
    struct pod_view *spot = bind(c, OP_WORKER, 0, 1, 0), *paid = bind(c, OP_WORKER, 1, 1, 5);
    bind(c, OP_COORDINATOR, -1, 1, 4);
    pass(c, HOUR_MS);
    expect_spent(c, 1000000 + 5000000 + 3000000, 3000000 + 5000000 + 3000000);
    end_pod(c, spot);
    pass(c, HOUR_MS);
    expect_spent(c, 1000000 + 2 * 8000000, 3000000 + 2 * 8000000);
    paid->deletion_ms = c->now_ms; /* it still terminates, and costs what it did */
    pass(c, HOUR_MS / 2);
    expect_spent(c, 1000000 + 2 * 8000000 + 4000000, 3000000 + 2 * 8000000 + 4000000);
    take_away(c, paid);
    take_away(c, spot);
    pass(c, 0);
    pass(c, HOUR_MS);
    expect_spent(c, 1000000 + 2 * 8000000 + 4000000 + 3000000, 3000000 + 2 * 8000000 + 4000000 + 3000000);
    cr_assert_eq(cost_of(c)->meters_count, 1);
    cr_assert_str_eq(cost_of(c)->currency, "USD");
    cast_free(c);
}

/* A kubelet tells of an end some seconds after it, and pods that do are read meanwhile. */
Test(operator_meter, a_pod_costs_nothing_from_its_end_on_though_that_is_told_later)
{
    static const struct {
        int64_t later_ms, charged_s;
        bool another; /* process reads on */
    } cases[] = {
        {3000, 3600, false}, {3000, 3600, true}, {0, 3600, false}, {2 * HOUR_MS, 3 * 3600 - 600, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cast *c = metered("{}");
        struct pod_view *spot = bind(c, OP_WORKER, 0, 1, 0);
        pass(c, HOUR_MS);
        int64_t ended_ms = c->now_ms;
        pass(c, cases[i].later_ms);
        end_pod(c, spot);
        spot->ended_ms = spot->finished_ms = ended_ms;
        if (cases[i].another)
            c->memo = (struct op_memo){.dry_generation = c->job.generation};
        pass(c, 1000);
        take_away(c, spot);
        pass(c, HOUR_MS);
        expect_spent(c, 1000000 * cases[i].charged_s / 3600, 3000000 * cases[i].charged_s / 3600);
        cast_free(c);
    }
}

Test(operator_meter, a_price_that_changes_counts_from_its_second_on)
{
    struct cast *c = metered("{}");
    char text[512];
    /* CAST_NOW is 2026-09-21T14:13:20Z */
    snprintf(text, sizeof text, HEAD ",,,small,spot,2,USD,\n,,,small,spot,8,USD,2026-09-21T14:43:20Z\n");
    set_prices(c, text);
    bind(c, OP_WORKER, 0, 1, 0);
    pass(c, HOUR_MS);
    expect_spent(c, 500000 + 2000000, 500000 + 2000000);
    cast_free(c);
}

Test(operator_meter, the_jobs_own_price_comes_before_the_table)
{
    struct cast *c = metered("{\"spot\":{\"price\":{\"spot\":1.5,\"currency\":\"USD\"}}}");
    bind(c, OP_WORKER, 0, 1, 0);
    bind(c, OP_WORKER, 1, 1, 4);
    pass(c, HOUR_MS);
    expect_spent(c, 750000 + 3000000, 3000000 + 3000000);
    cast_free(c);
}

Test(operator_meter, without_any_price_there_are_hours_of_whole_machines)
{
    struct cast *c = metered("{}");
    prices_clear(&c->prices);
    bind(c, OP_WORKER, 0, 1, 0);
    pass(c, HOUR_MS);
    cr_assert_eq(cost_of(c)->hours.micros, 500000);
    cr_assert_str_eq(cost_of(c)->currency, "");
    char column[OP_REASON_MAX];
    status_cost_column(cost_of(c), column);
    cr_assert_str_eq(column, "0.50 h");
    cr_assert_not(c->job.status.cost_told.unknown, "nobody asked what it costs");
    cast_free(c);
}

/* How many of the plan's events have this reason. */
static int told(struct cast *c, const char *reason)
{
    int count = 0;
    struct op_plan *plan = cast_plan(c);
    for (int i = 0; i < plan->events_count; i++)
        count += strcmp(plan->event[i].reason, reason) == 0;
    plan_free(plan);
    return count;
}

Test(operator_meter, a_machine_without_a_price_is_waited_for_and_then_told_once)
{
    struct cast *c = metered("{}");
    text_copy(c->node[0].machine.type, sizeof c->node[0].machine.type, "odd");
    bind(c, OP_WORKER, 0, 1, 0);
    pass(c, MINUTE_MS / 2);
    cr_assert_eq(told(c, "CostUnknown"), 0, "its labels may come yet");
    c->now_ms += MINUTE_MS;
    cr_assert_eq(told(c, "CostUnknown"), 1);
    pass(c, 0);
    bind(c, OP_WORKER, 1, 1, 0);
    c->now_ms += 2 * MINUTE_MS;
    cr_assert_eq(told(c, "CostUnknown"), 0, "once");
    pass(c, 0);
    cr_assert_eq(cost_of(c)->unpriced.micros, cost_of(c)->hours.micros);
    cast_free(c);
}

Test(operator_meter, labels_that_come_late_lose_no_second)
{
    struct cast *c = metered("{}");
    *c->node[0].machine.type = 0;
    bind(c, OP_WORKER, 0, 1, 0);
    pass(c, MINUTE_MS / 2);
    text_copy(c->node[0].machine.type, sizeof c->node[0].machine.type, "small");
    pass(c, HOUR_MS - MINUTE_MS / 2);
    expect_spent(c, 1000000, 3000000);
    cast_free(c);
}

Test(operator_meter, a_pod_that_requests_nothing_is_its_whole_node_and_that_is_said_once)
{
    struct cast *c = metered("{}");
    bind(c, OP_WORKER, 0, 1, 0)->asked.count = 0;
    bind(c, OP_WORKER, 1, 1, 0)->asked.count = 0;
    c->now_ms += HOUR_MS;
    cr_assert_eq(told(c, "WholeNodeCounted"), 1);
    pass(c, 0);
    expect_spent(c, 4000000, 12000000);
    c->now_ms += HOUR_MS;
    cr_assert_eq(told(c, "WholeNodeCounted"), 0);
    cast_free(c);
}

Test(operator_meter, a_second_currency_is_not_added_to_the_first)
{
    struct cast *c = metered("{}");
    bind(c, OP_WORKER, 0, 1, 0);
    pass(c, HOUR_MS);
    set_prices(c, HEAD ",,,,,2,EUR,\n");
    pass(c, HOUR_MS);
    expect_spent(c, 1000000, 3000000);
    cr_assert_eq(cost_of(c)->unpriced.micros, 500000);
    cr_assert_str_eq(cost_of(c)->currency, "USD");
    cast_free(c);
}

Test(operator_meter, the_jobs_own_currency_is_the_costs_from_the_start)
{
    struct cast *c = metered("{\"spot\":{\"price\":{\"spot\":1.5,\"currency\":\"EUR\"}}}");
    bind(c, OP_COORDINATOR, -1, 1, 4); /* on demand: the table alone has a price of that */
    bind(c, OP_WORKER, 0, 1, 0);
    c->now_ms += HOUR_MS;
    cr_assert(cast_says(c, "CostUnknown  prices.csv is in USD, this job's cost is in EUR: "));
    cast_settle(c);
    expect_spent(c, 750000, 750000);
    cr_assert_str_eq(cost_of(c)->currency, "EUR");
    cr_assert_eq(cost_of(c)->unpriced.micros, 500000);
    cast_free(c);
}

Test(operator_meter, that_the_tables_currency_became_another_one_is_said_once_whatever_was_said_before)
{
    struct cast *c = metered("{}");
    text_copy(c->node[2].machine.type, sizeof c->node[2].machine.type, "odd");
    bind(c, OP_WORKER, 0, 1, 0);
    bind(c, OP_WORKER, 1, 1, 2);
    c->now_ms += HOUR_MS;
    cr_assert(cast_says(c, "CostUnknown  no price for odd, spot (pod "));
    cast_settle(c);
    set_prices(c, HEAD ",,,,,2,EUR,\n");
    c->now_ms += HOUR_MS;
    cr_assert_eq(told(c, "CostUnknown"), 1);
    cr_assert(cast_says(c, "CostUnknown  prices.csv is in EUR, this job's cost is in USD: "));
    cast_settle(c);
    c->now_ms += HOUR_MS;
    cr_assert_eq(told(c, "CostUnknown"), 0, "once");
    cast_settle(c);
    cr_assert(c->job.status.cost_told.currency);
    cast_free(c);
}

Test(operator_meter, pods_beyond_its_room_are_not_counted_until_others_are_gone_and_that_is_said_once)
{
    struct cast *c = metered("{\"suspend\":true}");
    struct pod_view *first = bind(c, OP_WORKER, 0, 1000, 4);
    for (int i = 1; i < OP_METERS_MAX; i++) /* ended, and not collected yet */
        end_pod(c, bind(c, OP_WORKER, 0, 1000 + i, 4));
    pass(c, 0);
    cr_assert_eq(told(c, "CostUnknown"), 0);
    bind(c, OP_WORKER, 1, 2000, 5);
    c->now_ms += HOUR_MS;
    cr_assert(cast_says(c, "CostUnknown  the cost of 160 pods at a time is counted: pod "));
    cast_settle(c);
    expect_spent(c, 3000000, 3000000);
    struct pod_view *further = bind(c, OP_WORKER, 2, 2000, 5);
    cr_assert_eq(told(c, "CostUnknown"), 0, "once");
    take_away(c, further);
    end_pod(c, first);
    pass(c, 0);
    take_away(c, first);
    pass(c, HOUR_MS);
    cr_assert_eq(cost_of(c)->meters_count, OP_METERS_MAX, "its room is taken by another one");
    expect_spent(c, 3000000 + 2 * 5000000, 3000000 + 2 * 5000000);
    cast_free(c);
}

Test(operator_meter, a_node_that_is_gone_costs_nothing_until_it_is_back)
{
    struct cast *c = metered("{}");
    struct pod_view *pod = bind(c, OP_WORKER, 0, 1, 0);
    char name[OP_NODE_MAX];
    pass(c, HOUR_MS);
    text_copy(name, sizeof name, c->node[0].name);
    *c->node[0].name = 0;
    pass(c, HOUR_MS); /* it went at the end of this hour, as the process saw */
    pass(c, HOUR_MS);
    text_copy(c->node[0].name, sizeof c->node[0].name, name);
    pass(c, 0);
    pass(c, HOUR_MS);
    expect_spent(c, 3000000, 9000000);
    cr_assert_not_null(pod);
    cast_free(c);
}

/* Node 0, with half of it at 1 an hour; its cluster says now that it was not seen for 47 s. */
static struct cast *with_a_machine_that_is_missed(void)
{
    struct cast *c = metered("{}");
    bind(c, OP_WORKER, 0, 1, 0);
    pass(c, HOUR_MS);
    c->node[0].ready = false;
    c->node[0].unseen_ms = c->now_ms - 47000;
    return c;
}

static void expect_what_was_seen(const struct cast *c)
{
    expect_spent(c, 1000000LL * (3600 - 47) / 3600, 3000000LL * (3600 - 47) / 3600);
}

Test(operator_meter, a_machine_that_vanished_costs_nothing_from_when_it_was_last_seen_on)
{
    struct cast *c = with_a_machine_that_is_missed();
    pass(c, 0);
    pass(c, MINUTE_MS);
    expect_what_was_seen(c);
    cr_assert_eq(plan_rate(cost_of(c)), 0);
    *c->node[0].name = 0;
    pass(c, MINUTE_MS);
    pass(c, HOUR_MS);
    take_away(c, c->pods[0]);
    pass(c, HOUR_MS);
    expect_what_was_seen(c);
    cast_free(c);
}

Test(operator_meter, nor_does_it_where_another_process_reads_on)
{
    struct cast *c = with_a_machine_that_is_missed();
    c->memo = (struct op_memo){.dry_generation = c->job.generation};
    pass(c, 0);
    pass(c, MINUTE_MS);
    expect_what_was_seen(c);
    c->memo = (struct op_memo){.dry_generation = c->job.generation};
    take_away(c, c->pods[0]);
    pass(c, MINUTE_MS);
    expect_what_was_seen(c);
    cast_free(c);
}

Test(operator_meter, a_machine_that_is_seen_again_has_cost_all_along)
{
    struct cast *c = with_a_machine_that_is_missed();
    pass(c, 0);
    pass(c, 5 * MINUTE_MS);
    c->node[0].ready = true;
    c->node[0].unseen_ms = 0;
    pass(c, 55 * MINUTE_MS);
    expect_spent(c, 2000000, 6000000);
    cast_free(c);
}

Test(operator_meter, one_that_is_looked_for_in_vain_for_long_has_too)
{
    struct cast *c = with_a_machine_that_is_missed();
    pass(c, 0);
    pass(c, HOUR_MS);
    expect_spent(c, 2000000, 6000000);
    cast_free(c);
}

Test(operator_meter, after_a_clock_that_was_a_day_ahead_a_new_pod_costs_what_it_ran)
{
    struct cast *c = metered("{}");
    struct pod_view *first = bind(c, OP_WORKER, 0, 1, 0);
    c->now_ms += 24 * HOUR_MS; /* as that leader took it to be */
    cast_settle(c);
    expect_spent(c, 24 * 1000000, 24 * 3000000);
    c->now_ms -= 24 * HOUR_MS;
    end_pod(c, first);
    c->memo = (struct op_memo){.dry_generation = c->job.generation};
    bind(c, OP_WORKER, 1, 1, 5);
    pass(c, HOUR_MS);
    expect_spent(c, 24 * 1000000 + 5000000, 24 * 3000000 + 5000000);
    pass(c, 24 * HOUR_MS); /* an hour beyond the moment up to which all is accounted for */
    expect_spent(c, 24 * 1000000 + 2 * 5000000, 24 * 3000000 + 2 * 5000000);
    cast_free(c);
}

Test(operator_meter, where_no_node_may_be_seen_any_more_the_last_known_price_stays)
{
    struct cast *c = metered("{}");
    bind(c, OP_WORKER, 0, 1, 0);
    pass(c, HOUR_MS);
    c->nodes_known = false;
    pass(c, HOUR_MS);
    expect_spent(c, 2000000, 6000000);
    cast_free(c);
}

Test(operator_meter, where_no_node_may_be_seen_the_jobs_price_on_spot_counts_if_there_is_no_other)
{
    struct cast *c = metered("{\"spot\":{\"price\":{\"spot\":1.5,\"currency\":\"USD\"}}}");
    c->nodes_known = false;
    bind(c, OP_WORKER, 0, 1, 0);
    pass(c, HOUR_MS);
    expect_spent(c, 1500000, 1500000);
    cast_free(c);
}

Test(operator_meter, time_alone_is_written_once_a_minute)
{
    struct cast *c = metered("{}");
    bind(c, OP_COORDINATOR, -1, 7, 0);
    for (int i = 0; i < 4; i++)
        pass(c, 0);
    int64_t stored = cost_of(c)->accounted_ms;
    c->now_ms += MINUTE_MS / 6;
    struct op_plan *plan = cast_plan(c);
    cr_assert_geq(plan->cost.accounted_ms, stored + MINUTE_MS / 6, "it is counted");
    cr_assert_leq(plan->wake_ms, stored + MINUTE_MS);
    plan_free(plan);
    pass(c, 0);
    int64_t before = cost_of(c)->accounted_ms;
    pass(c, MINUTE_MS);
    cr_assert_geq(cost_of(c)->accounted_ms, before + MINUTE_MS);
    cast_free(c);
}

/* --- whoever counts, and however often they change --- */

enum { SLOTS = 6, TURN_MS = 10000, TURNS = 5 * HOUR_MS / TURN_MS, SEEDS = 3 };

struct history {
    struct cast *c;
    struct op_memo other; /* of the operator that does not lead */
    struct pod_view *pod[SLOTS];
    int attempt[SLOTS], over_for[SLOTS], down;
    uint64_t random;
    double spent, on_demand; /* by hand */
};

static bool chance(struct history *h, int of_1000)
{
    return (int)prng_below(&h->random, 1000) < of_1000;
}

/* Second by second, with the prices of metered(). */
static void count_by_hand(struct history *h)
{
    static const double price[2][2] = {{2, 6}, {4, 10}}; /* small, large; spot, on demand */
    for (int i = 0; i < SLOTS; i++) {
        if (!h->pod[i] || pod_is_spent(h->pod[i]))
            continue;
        int node = h->pod[i]->node[5] - '0';
        h->spent += price[node % 2][node >= 4] / 2 * TURN_MS / HOUR_MS;
        h->on_demand += price[node % 2][1] / 2 * TURN_MS / HOUR_MS;
    }
}

static void change_a_pod(struct history *h, int i)
{
    struct cast *c = h->c;
    if (!h->pod[i] && chance(h, 60)) {
        if (c->pods_count == CAST_PODS)
            return;
        h->pod[i] = bind(c, OP_WORKER, i, ++h->attempt[i] + 1000, (int)prng_below(&h->random, CAST_NODES));
    } else if (h->pod[i] && pod_is_spent(h->pod[i]) && chance(h, 100)) {
        take_away(c, h->pod[i]);
        h->pod[i] = NULL;
    } else if (h->pod[i] && !pod_is_spent(h->pod[i]) && chance(h, 3)) {
        end_pod(c, h->pod[i]);
    } else if (h->pod[i] && chance(h, 1)) { /* by force: no word of its end */
        take_away(c, h->pod[i]);
        h->pod[i] = NULL;
    }
}

static void plan_once(struct history *h)
{
    if (chance(h, 5)) { /* it dies; the next one is there a while later, and knows nothing */
        h->c->memo = (struct op_memo){.dry_generation = 1};
        h->down = (int)prng_below(&h->random, 6);
        return;
    }
    if (chance(h, 10)) { /* the lease goes over to the other one, with what it remembers */
        struct op_memo own = h->c->memo;
        h->c->memo = h->other;
        h->other = own;
    }
    if (chance(h, 400)) { /* the status' turn has not come */
        struct op_plan *plan = cast_plan(h->c);
        op_memo_metered(&h->c->memo, &h->c->job, plan);
        plan_free(plan);
    } else {
        cast_settle(h->c);
    }
}

/* The pods of a cast are never given back, so lists are made anew from those in use. */
static void compact(struct history *h)
{
    struct pod_view kept[SLOTS];
    int count = 0;
    for (int i = 0; i < SLOTS; i++)
        if (h->pod[i])
            kept[count++] = *h->pod[i];
    count = 0;
    h->c->pods_count = 0;
    for (int i = 0; i < SLOTS; i++)
        if (h->pod[i]) {
            h->c->pod[count] = kept[count];
            h->pod[i] = &h->c->pod[count];
            h->c->pods[h->c->pods_count++] = &h->c->pod[count++];
        }
}

static void play(uint64_t seed)
{
    struct history h = {.c = metered("{\"suspend\":true}"), .random = seed};
    for (int turn = 0; turn < TURNS; turn++) {
        count_by_hand(&h);
        h.c->now_ms += TURN_MS;
        for (int i = 0; i < SLOTS; i++) {
            change_a_pod(&h, i);
            compact(&h);
        }
        if (h.down > 0)
            h.down--;
        else
            plan_once(&h);
    }
    cast_settle(h.c);
    double spent = (double)h.c->memo.cost.spent.micros / 1e6,
           full = (double)h.c->memo.cost.on_demand.micros / 1e6;
    cr_assert_gt(h.spent, 20);
    cr_assert_float_eq(spent, h.spent, h.spent / 100, "seed %llu: %f, by hand %f", (unsigned long long)seed,
                       spent, h.spent);
    cr_assert_float_eq(full, h.on_demand, h.on_demand / 100, "seed %llu: %f, by hand %f",
                       (unsigned long long)seed, full, h.on_demand);
    cast_free(h.c);
}

Test(operator_meter, operators_that_die_and_take_turns_come_to_the_sum_by_hand, .timeout = 120)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        play(seed);
}
