/* The goodput of a whole job: over all its coordinators, and the time without one. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "cast.h"

enum { SECOND_MS = 1000 };

/* The coordinator of that term says where its time went. */
static void answer(struct cast *c, int term, int64_t productive, int64_t recovery, int64_t waiting)
{
    c->coordinator.term = term;
    c->coordinator.progress.step += 10;
    c->coordinator.goodput = (struct op_goodput){
        .known = true,
        .ratio = "0.5",
        .seconds = {
            [GOODPUT_PRODUCTIVE] = productive, [GOODPUT_RECOVERY] = recovery, [GOODPUT_WAITING] = waiting}};
    c->answered_ms = c->now_ms;
    c->coordinator_answers = true;
    cast_settle(c);
}

static void pass(struct cast *c, int64_t seconds)
{
    c->now_ms += seconds * SECOND_MS;
}

/* All classes together, which is the time since the start. */
static void expect(const struct cast *c, int64_t productive, int64_t recovery, int64_t waiting,
                   const char *ratio)
{
    const int64_t *seconds = c->job.status.goodput.seconds;
    cr_assert_eq(seconds[GOODPUT_PRODUCTIVE], productive, "%lld", (long long)seconds[GOODPUT_PRODUCTIVE]);
    cr_assert_eq(seconds[GOODPUT_RECOVERY], recovery, "%lld", (long long)seconds[GOODPUT_RECOVERY]);
    cr_assert_eq(seconds[GOODPUT_WAITING], waiting, "%lld", (long long)seconds[GOODPUT_WAITING]);
    cr_assert_eq(productive + recovery + waiting, (c->answered_ms - c->job.status.start_ms) / SECOND_MS);
    cr_assert_str_eq(c->job.status.goodput.ratio, ratio);
}

static void replace_coordinator(struct cast *c, int term)
{
    c->coordinator_answers = false;
    c->job.status.ring.coordinator = (struct op_slot){.state = OP_SLOT_PRESENT, .attempt = term};
    cast_pod(c, OP_COORDINATOR, -1, term);
    cast_settle(c);
}

Test(operator_goodput, a_new_coordinator_goes_on_where_the_one_before_it_ended)
{
    struct cast *c = cast_training("{}");
    pass(c, 40); /* pods were pending, and no coordinator knows of that */
    pass(c, 60);
    answer(c, 1, 50, 5, 5);
    expect(c, 50, 5, 45, "0.500");
    pass(c, 100);
    answer(c, 1, 140, 10, 10);
    expect(c, 140, 10, 50, "0.700");
    replace_coordinator(c, 2);
    pass(c, 30); /* nobody is there */
    pass(c, 20);
    answer(c, 2, 10, 5, 5);
    expect(c, 150, 15, 85, "0.600");
    pass(c, 50);
    answer(c, 2, 60, 5, 5);
    expect(c, 200, 15, 85, "0.667");
    cast_free(c);
}

Test(operator_goodput, the_time_of_a_pause_is_waiting)
{
    struct cast *c = cast_training("{}");
    pass(c, 100);
    answer(c, 1, 90, 0, 10);
    replace_coordinator(c, 2);
    pass(c, 900);
    answer(c, 2, 0, 0, 1);
    expect(c, 90, 0, 910, "0.090");
    cast_free(c);
}

Test(operator_goodput, a_status_of_before_there_was_a_term_is_of_the_coordinator_that_runs)
{
    struct cast *c = cast_training("{}");
    pass(c, 100);
    c->job.status.goodput = (struct op_goodput){.known = true, .seconds = {[GOODPUT_PRODUCTIVE] = 70}};
    answer(c, 1, 80, 0, 20);
    expect(c, 80, 0, 20, "0.800");
    cast_free(c);
}
