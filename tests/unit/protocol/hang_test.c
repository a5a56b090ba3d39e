/* Rings that stand still, one story each. Steps may take 2 s; heartbeats come every second. */
#include "tests/unit/protocol/story.h"

static struct rdzv_settings impatient(void)
{
    struct rdzv_settings settings = story_settings(1);
    settings.step_timeout = 2 * RM_S;
    return settings;
}

static void beat(struct story *s, int w, int64_t counter, int waiting_for)
{
    struct message m;
    message_init(&m, MSG_HEARTBEAT);
    m.heartbeat.counter = counter;
    m.heartbeat.phase = PHASE_TRAINING;
    m.heartbeat.waiting_for = waiting_for;
    hear(s, w, &m);
}

/* Three seconds in which worker w says counters[w] + i * moves[w] and whom it waits for. */
static void stand_still(struct story *s, const int waiting[3], const int moves[3])
{
    for (int i = 0; i < 3; i++) {
        for (int w = 0; w < 3; w++)
            beat(s, w, 5 + i * moves[w], waiting[w]);
        after(s, RM_S);
    }
}

Test(hang, who_neither_waits_nor_moves_is_told_to_kill_its_trainer)
{
    struct story s;
    story_begin(&s, impatient());
    train_with(&s, 3);
    stand_still(&s, (const int[]){2, 0, -1}, (const int[]){0, 0, 0});
    cr_assert(said(&s, "send 2 fault"), "%s", str_text(&s.log));
    cr_assert(said(&s, "\"event\":\"workerLost\",\"time\":0,\"worker\":2"), "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING);
    stopped(&s, 0, 3, 3);
    stopped(&s, 1, 3, 3);
    ready(&s, 0, 3);
    ready(&s, 1, 3);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "nobody waits for the one that hangs");
    fault_of(&s, 2, FAULT_TRAINER_EXIT, -1, -1);
    cr_assert(said(&s, "workerFailed"), "a hang is a failure");
    progress(&s, 0, 4);
    cr_assert_eq(s.recovery.cause, CAUSE_HANG);
    story_end(&s);
}

Test(hang, a_slow_step_that_somebody_computes_is_none)
{
    struct story s;
    story_begin(&s, impatient());
    train_with(&s, 3);
    stand_still(&s, (const int[]){2, 0, -1}, (const int[]){0, 0, 1});
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    cr_assert_gt(rdzv_deadline(s.st), s.now, "the timer does not spin");
    story_end(&s);
}

Test(hang, where_all_wait_the_end_of_the_chain_is_to_blame)
{
    struct story s;
    story_begin(&s, impatient());
    train_with(&s, 3);
    stand_still(&s, (const int[]){1, 7, 0}, (const int[]){0, 0, 0});
    cr_assert(said(&s, "send 1 fault"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(hang, steps_keep_it_away)
{
    struct story s;
    story_begin(&s, impatient());
    train_with(&s, 3);
    for (int step = 1; step < 9; step++) {
        for (int w = 0; w < 3; w++) {
            progress(&s, w, step);
            beat(&s, w, 5, -1);
        }
        after(&s, RM_S);
    }
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(hang, one_that_was_given_up_is_refused_when_it_comes_back)
{
    struct story s;
    story_begin(&s, impatient());
    train_with(&s, 3);
    expect_workers(&s, 3);
    hello(&s, 2, 1);
    cr_assert(said(&s, "abandon"), "%s", str_text(&s.log));
    cr_assert(said(&s, "close 2"), "%s", str_text(&s.log));
    story_end(&s);
}
