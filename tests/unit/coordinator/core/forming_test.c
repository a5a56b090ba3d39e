/* Rings that take long to form, one story each. formTimeout is 10 s. */
#include "coordinator/core/rdzv_state.h"
#include "tests/unit/coordinator/core/story.h"

static struct rdzv_settings patient(void)
{
    struct rdzv_settings settings = story_settings(1);
    settings.lost_after = 3600 * RM_S;
    return settings;
}

static void beat(struct story *s, int w, int64_t counter, int64_t bytes, int waiting_for)
{
    struct message m;
    message_init(&m, MSG_HEARTBEAT);
    m.heartbeat.counter = counter;
    m.heartbeat.bytes = bytes;
    m.heartbeat.phase = PHASE_FORMING;
    m.heartbeat.waiting_for = waiting_for;
    hear(s, w, &m);
}

Test(forming, nobody_is_late_while_a_state_is_on_its_way_and_the_others_wait_for_it)
{
    struct story s;
    let_one_join(&s, patient(), 3);
    for (int i = 1; i <= 120; i++) {
        beat(&s, 0, i, 0, 2);
        beat(&s, 1, i, 0, 0);
        beat(&s, 2, i, 1000 * i, -1);
        after(&s, RM_S);
        cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "after %d s: %s", i, rdzv_why(s.st));
    }
    for (int w = 0; w < 3; w++)
        ready(&s, w, 3);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    story_end(&s);
}

/* The agent reads a checkpoint: no byte reaches the trainer, but the agent counts on. */
Test(forming, one_whose_counter_grows_is_not_late)
{
    struct story s;
    let_one_join(&s, patient(), 3);
    for (int i = 1; i <= 60; i++) {
        for (int w = 0; w < 3; w++)
            beat(&s, w, i, 0, -1);
        after(&s, RM_S);
        cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "after %d s: %s", i, rdzv_why(s.st));
    }
    story_end(&s);
}

Test(forming, one_that_stands_still_is_late_and_the_others_are_not)
{
    struct story s;
    let_one_join(&s, patient(), 3);
    for (int i = 1; i <= 10; i++) {
        cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "after %d s: %s", i, rdzv_why(s.st));
        beat(&s, 0, i, 0, 2);
        beat(&s, 1, i, 0, 0);
        beat(&s, 2, 1, 1000, -1);
        after(&s, RM_S);
    }
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", rdzv_why(s.st));
    story_end(&s);
}

Test(forming, where_all_wait_for_each_other_it_is_begun_again_and_nobody_is_to_blame)
{
    struct story s;
    let_one_join(&s, patient(), 3);
    for (int round = 0; round < 5; round++) {
        for (int i = 1; i <= 10; i++) {
            cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "after %d s: %s", i, rdzv_why(s.st));
            for (int w = 0; w < 3; w++)
                beat(&s, w, 100 * round + i, 0, (w + 2) % 3);
            after(&s, RM_S);
        }
        cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", rdzv_why(s.st));
        stopped(&s, 0, 3, 3);
        stopped(&s, 1, 3, 3);
        stopped(&s, 2, -1, -1);
        after(&s, round ? RM_S << (round - 1) : 0);
    }
    cr_assert(!said(&s, "abandon"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Worker 1 alone has filled its memory, and the two of lower number that come back take all the places. */
Test(forming, who_alone_holds_the_state_gives_it_also_where_the_ring_has_no_room_for_it)
{
    struct story s;
    struct rdzv_settings settings = story_settings(1);
    settings.workers_max = settings.workers_target = 2;
    story_begin(&s, settings);
    expect_workers(&s, 6);
    for (int w = 1; w < 3; w++) {
        hello(&s, w, -1);
        stopped(&s, w, -1, -1);
    }
    for (int w = 1; w < 3; w++)
        listed(&s, w, -1, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", rdzv_why(s.st));
    ready(&s, 2, 0);
    expect_workers(&s, 7);
    hello(&s, 0, -1);
    s.trainer[1]++;
    hello(&s, 1, -1);
    stopped(&s, 0, -1, -1);
    stopped(&s, 1, -1, -1);
    stopped(&s, 2, 0, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", rdzv_why(s.st));
    cr_assert_eq(s.form.form.count, 2);
    cr_assert_eq(s.form.form.member[0].role, ROLE_RECEIVE);
    cr_assert_eq(s.form.form.source[0].worker, 2, "%s", str_text(&s.log));
    story_end(&s);
}

/* One step takes a quarter of a year by its word, and all of them are made anew. */
Test(forming, work_that_is_done_anew_is_no_more_than_was_done_whatever_a_step_is_said_to_take)
{
    struct story s;
    struct rdzv_settings settings = story_settings(1);
    settings.steps = 1000000;
    story_begin(&s, settings);
    train_with(&s, 1);
    for (int64_t step = 1; step < 1000000; step *= 10)
        progress_in(&s, 0, step, MSG_NUMBER_MOST);
    cr_assert_eq(s.st->known_step, 100000);
    s.trainer[0]++;
    hello(&s, 0, -1);
    stopped(&s, 0, -1, -1);
    listed(&s, 0, -1, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", rdzv_why(s.st));
    cr_assert_geq(s.st->goodput.productive, 0);
    cr_assert_geq(s.st->goodput.rework, 0);
    story_end(&s);
}
