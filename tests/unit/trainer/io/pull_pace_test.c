/* How fast those who listen get the state of one who trains. */
#include "trainer/io/pull_pace.h"

#include <criterion/criterion.h>

enum { BLOCK_US = 1000, STEP_MS = 200 };

struct ring {
    struct pull_pace pace;
    rm_time now;
    int64_t step;
    rm_time given; /* time in which blocks were */
};

static void arrange(struct ring *r)
{
    *r = (struct ring){.now = RM_S};
    pull_pace_begin(&r->pace);
    pull_pace_stands(&r->pace, 0, r->now);
    pull_pace_moves(&r->pace);
}

/* A step that takes so long alone, and for each second of given blocks `costs` percent of a second more. */
static void make_step(struct ring *r, rm_time alone, bool listened, rm_time block, int costs)
{
    rm_time worked = 0;
    uint64_t turn;
    while (worked < alone) {
        rm_time wait = listened ? pull_pace_take(&r->pace, r->now, &turn) : alone - worked;
        rm_time goes_on = wait < alone - worked ? wait : alone - worked;
        r->now += goes_on;
        worked += goes_on;
        if (wait || worked >= alone)
            continue;
        r->now += block;
        r->given += block;
        worked += block - block * costs / 100;
        pull_pace_gave(&r->pace, turn, r->now - block, r->now);
    }
    pull_pace_stands(&r->pace, ++r->step, r->now);
    pull_pace_moves(&r->pace);
}

static void make_steps(struct ring *r, int n, rm_time alone, bool listened, rm_time block, int costs)
{
    for (int i = 0; i < n; i++)
        make_step(r, alone, listened, block, costs);
}

struct row {
    const char *what;
    rm_time step, block;
    int costs;       /* percent of the time that a block takes by which a step is longer */
    int least, most; /* percent of the time in which blocks are given, once it has found that */
    int longer;      /* percent that steps are longer at most */
};

static const struct row rows[] = {
    {"blocks cost nothing", STEP_MS *RM_MS, BLOCK_US *RM_US, 0, 95, 100, 0},
    {"blocks cost all of their time", STEP_MS *RM_MS, BLOCK_US *RM_US, 100, 4, 10, 11},
    {"half of it", STEP_MS *RM_MS, BLOCK_US *RM_US, 50, 4, 20, 11},
    {"a tenth of it", STEP_MS *RM_MS, BLOCK_US *RM_US, 10, 30, 100, 11},
    {"steps as short as a block", 2 * RM_MS, 1500 * RM_US, 100, 3, 10, 11},
    {"steps of a minute", 60 * RM_S, 20 * RM_MS, 100, 4, 10, 11},
};

Test(pull_pace, the_ring_keeps_nine_tenths_of_its_speed_whatever_blocks_cost_it)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        struct ring r;
        arrange(&r);
        make_steps(&r, 20, row->step, false, row->block, row->costs);
        make_steps(&r, 100, row->step, true, row->block, row->costs);
        rm_time since = r.now;
        r.given = 0;
        make_steps(&r, 200, row->step, true, row->block, row->costs);
        double took = (double)(r.now - since), given = 100 * (double)r.given / took;
        double longer = 100 * (took / (200.0 * (double)row->step) - 1);
        cr_assert(given >= row->least && given <= row->most, "%s: blocks are given in %.1f %% of the time",
                  row->what, given);
        cr_assert(longer <= row->longer, "%s: steps are %.1f %% longer", row->what, longer);
    }
}

Test(pull_pace, from_the_first_block_on)
{
    struct ring r;
    arrange(&r);
    make_steps(&r, 20, STEP_MS * RM_MS, false, 0, 0);
    rm_time since = r.now;
    make_steps(&r, 4, STEP_MS * RM_MS, true, BLOCK_US * RM_US, 100);
    cr_assert_leq(r.now - since, 4 * STEP_MS * RM_MS * 110 / 100);
    cr_assert_gt(r.given, 0);
}

Test(pull_pace, where_nobody_knows_how_long_steps_take_alone_the_least_is_given)
{
    struct ring r;
    arrange(&r);
    make_steps(&r, 100, STEP_MS * RM_MS, true, BLOCK_US * RM_US, 0);
    cr_assert_eq(r.pace.percent, PULL_LEAST);
    cr_assert_geq(r.given, 3 * STEP_MS * RM_MS);
}

Test(pull_pace, another_ring_begins_with_the_least_and_its_own_steps)
{
    struct ring r;
    arrange(&r);
    make_steps(&r, 20, STEP_MS * RM_MS, false, 0, 0);
    make_steps(&r, 100, STEP_MS * RM_MS, true, BLOCK_US * RM_US, 0);
    cr_assert_eq(r.pace.percent, PULL_MOST);
    pull_pace_begin(&r.pace);
    cr_assert_eq(r.pace.percent, PULL_LEAST);
    pull_pace_stands(&r.pace, r.step, r.now); /* the state of the ring before */
    cr_assert_eq(r.pace.alone.count, 0);
    make_step(&r, STEP_MS * RM_MS, false, 0, 0);
    cr_assert_eq(r.pace.alone.count, 0, "when that step began nobody knows");
    make_step(&r, STEP_MS * RM_MS, false, 0, 0);
    cr_assert_eq(r.pace.alone.count, 1);
}

Test(pull_pace, a_state_that_is_no_step_further_says_nothing_of_steps)
{
    struct ring r;
    arrange(&r);
    make_steps(&r, 3, STEP_MS * RM_MS, false, 0, 0);
    int known = r.pace.alone.count;
    pull_pace_stands(&r.pace, r.step, r.now + RM_S);
    pull_pace_stands(&r.pace, r.step + 7, r.now + RM_S);
    cr_assert_eq(r.pace.alone.count, known);
}

Test(pull_pace, where_no_step_is_made_nobody_waits)
{
    struct ring r;
    uint64_t turn;
    arrange(&r);
    cr_assert_eq(pull_pace_take(&r.pace, r.now, &turn), 0);
    pull_pace_gave(&r.pace, turn, r.now, r.now + 100 * RM_MS);
    r.now += 100 * RM_MS;
    cr_assert_gt(pull_pace_take(&r.pace, r.now, &turn), 0);
    pull_pace_stands(&r.pace, 1, r.now);
    cr_assert_gt(pull_pace_take(&r.pace, r.now + 1, &turn), 0, "the next step may begin at once");
    for (int i = 0; i < 3; i++) {
        r.now += PULL_STILL;
        cr_assert_eq(pull_pace_take(&r.pace, r.now, &turn), 0);
        pull_pace_gave(&r.pace, turn, r.now, r.now + RM_MS);
    }
    pull_pace_moves(&r.pace);
    cr_assert_gt(pull_pace_take(&r.pace, r.now, &turn), 0);
}

Test(pull_pace, one_is_given_a_block_at_a_time_and_one_who_takes_none_keeps_nobody_waiting)
{
    struct ring r;
    uint64_t slow, other;
    arrange(&r);
    cr_assert_eq(pull_pace_take(&r.pace, r.now, &slow), 0);
    cr_assert_eq(pull_pace_take(&r.pace, r.now + RM_MS, &other), PULL_TURN_MOST - RM_MS);
    cr_assert_eq(pull_pace_take(&r.pace, r.now + PULL_TURN_MOST, &other), 0);
    pull_pace_gave(&r.pace, slow, r.now, r.now + 30 * RM_S);
    cr_assert(r.pace.taken, "the other one has it");
    cr_assert_leq(r.pace.rests_until, r.now + 30 * RM_S + PULL_REST_MOST);
    pull_pace_gave(&r.pace, other, r.now + PULL_TURN_MOST, r.now + PULL_TURN_MOST + RM_MS);
    cr_assert_not(r.pace.taken);
}
