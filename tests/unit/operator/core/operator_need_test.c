/* How many workers a job needs to be done in time. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "cast.h"
#include "common/base/prng.h"
#include "operator/core/need.h"

enum { DEADLINE_S = 10000, IN_TIME_S = 9000 };

/* A job of so many lanes that began CAST_NOW and has that deadline. */
static struct cast *arrange(int lanes)
{
    char changes[128];
    snprintf(changes, sizeof changes, "{\"activeDeadlineSeconds\":%d,\"trainer\":{\"batch\":{\"lanes\":%d}}}",
             DEADLINE_S, lanes);
    struct cast *c = cast_training(changes);
    c->answered_ms = c->now_ms;
    cr_assert_eq(c->job.status.active_ms, CAST_NOW);
    return c;
}

static int needed(const struct cast *c)
{
    return need_workers(&c->job, &c->coordinator, c->answered_ms, c->now_ms);
}

static int needed_by(struct cast *c, int workers, int64_t takes_s)
{
    c->coordinator.ring_size = workers;
    c->coordinator.progress.eta_seconds = takes_s;
    return needed(c);
}

static int most_lanes(int lanes, int workers)
{
    return (lanes + workers - 1) / workers;
}

Test(operator_need, as_few_as_are_in_time_for_nine_tenths_of_the_deadline)
{
    static const struct {
        int workers;
        int64_t takes_s;
        int needed;
    } cases[] = {
        {2, IN_TIME_S, 2},
        {2, IN_TIME_S + 1, 3},
        {2, 2 * IN_TIME_S, 6},
        {2, 5 * IN_TIME_S, 12},
        {2, 50 * IN_TIME_S, 12}, /* all that can be done, and it won't be enough */
        {4, IN_TIME_S, 4},
        {4, 6075, 3}, /* three fourths, with a tenth to spare */
        {4, 6076, 4},
        {6, 100, 1},
        {5, IN_TIME_S, 4}, /* the fifth of them brings nothing */
        {5, IN_TIME_S + 1, 6},
        {12, IN_TIME_S, 12},
    };
    struct cast *c = arrange(12);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_eq(needed_by(c, cases[i].workers, cases[i].takes_s), cases[i].needed,
                     "%d workers, %lld s: %d", cases[i].workers, (long long)cases[i].takes_s, needed(c));
    cast_free(c);
}

Test(operator_need, time_that_passes_or_was_spent_before_a_pause_is_less_time)
{
    struct cast *c = arrange(12);
    cr_assert_eq(needed_by(c, 2, 4000), 1);
    c->now_ms += 5000 * 1000;
    c->answered_ms = c->now_ms;
    cr_assert_eq(needed_by(c, 2, 4000), 2);
    c->job.status.active_seconds = 1000;
    cr_assert_eq(needed_by(c, 2, 4000), 3);
    c->job.status.active_seconds = 4000;
    cr_assert_eq(needed_by(c, 2, 4000), 12, "it is late already");
    cr_assert_eq(needed_by(c, 2, 60), 2, "and done before another one could come");
    cast_free(c);
}

Test(operator_need, whatever_is_asked_for_brings_something_and_is_asked_for_still_when_it_is_there)
{
    uint64_t seed = 16;
    for (int round = 0; round < 300; round++) {
        int lanes = 1 + (int)(splitmix64(&seed) % 128);
        struct cast *c = arrange(lanes);
        for (int workers = 1; workers <= RM_WORKERS_MAX; workers++) {
            int64_t takes_s = (int64_t)(splitmix64(&seed) % (40 * IN_TIME_S));
            int more = needed_by(c, workers, takes_s);
            cr_assert(more == 1 || most_lanes(lanes, more - 1) > most_lanes(lanes, more),
                      "%d of %d lanes are no faster than one less", more, lanes);
            int64_t then_s = takes_s * most_lanes(lanes, more) / most_lanes(lanes, workers);
            cr_assert_eq(needed_by(c, more, then_s), more, "%d lanes, %d workers, %lld s: first %d", lanes,
                         workers, (long long)takes_s, more);
        }
        cast_free(c);
    }
}

Test(operator_need, a_job_of_whom_nobody_knows_it_needs_no_number)
{
    struct cast *c = arrange(12);
    cr_assert_eq(needed_by(c, 2, IN_TIME_S), 2);
    cr_expect_eq(need_workers(&c->job, NULL, 0, c->now_ms), 0, "no coordinator");
    cr_expect_eq(need_workers(&c->job, &c->coordinator, c->now_ms - 60001, c->now_ms), 0, "an old answer");
    cr_expect_eq(needed_by(c, 0, IN_TIME_S), 0, "no ring");
    cr_expect_eq(needed_by(c, 2, -1), 0, "no step yet");
    cr_expect_eq(needed_by(c, 2, INT64_MAX), 12, "a word that nobody else could give");
    c->coordinator.progress.eta_seconds = IN_TIME_S;
    c->job.status.active_ms = 0;
    cr_expect_eq(needed(c), 0, "suspended");
    c->job.status.active_ms = CAST_NOW;
    c->job.suspend = true;
    cr_expect_eq(needed(c), 0, "to be suspended");
    c->job.suspend = false;
    condition_set(&c->job.status, OP_FINISHED, true, "Trained", "", 1, c->now_ms);
    cr_expect_eq(needed(c), 0, "at its end");
    cast_free(c);
}

Test(operator_need, without_a_deadline_or_lanes_there_is_none)
{
    struct cast *c = arrange(12);
    c->job.lanes = 0;
    cr_expect_eq(needed_by(c, 2, IN_TIME_S), 0);
    c->job.lanes = 12;
    c->job.active_deadline_s = 0;
    cr_expect_eq(needed(c), 0);
    cast_free(c);
    c = cast_open(
        "{\"trainer\":null,\"launch\":{\"command\":[\"a\"],\"mode\":\"Elastic\",\"batch\":{\"lanes\":6}}}");
    cr_expect_eq(c->job.lanes, 6);
    cast_free(c);
    c = cast_open("{\"trainer\":null,\"launch\":{\"command\":[\"a\"],\"mode\":\"Restart\"}}");
    cr_expect_eq(c->job.lanes, 0);
    cast_free(c);
    c = cast_open("{\"trainer\":{\"batch\":null}}");
    cr_expect_eq(c->job.lanes, 64);
    cast_free(c);
}
