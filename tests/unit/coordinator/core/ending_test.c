/* How a run ends: what an end that comes in between must not hide. */
#include "tests/unit/coordinator/core/story.h"

static void train_to_the_end(struct story *s)
{
    train_with(s, 2);
    for (int i = 1; i <= 100; i++)
        progress(s, 0, i);
    forget(s);
}

static void interrupt(struct story *s)
{
    struct rdzv_event e = {.kind = RDZV_INTERRUPT};
    play(s, &e);
}

Test(ending, an_interrupt_after_the_last_step_ends_complete)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_to_the_end(&s);
    interrupt(&s);
    for (int w = 0; w < 2; w++)
        stopped(&s, w, 100, 100);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    for (int w = 0; w < 2; w++)
        ready(&s, w, 100);
    for (int w = 0; w < 2; w++)
        finished(&s, w);
    for (int w = 0; w < 2; w++)
        checkpointed(&s, w, 100, w, 2, true);
    published(&s, 0, 100, true);
    cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
    cr_assert(said(&s, "\"event\":\"complete\""));
    cr_assert_not(said(&s, "\"event\":\"interrupted\""));
    story_end(&s);
}

Test(ending, a_worker_that_tells_of_a_step_behind_the_last_one_does_not_keep_the_run_from_its_end)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_to_the_end(&s);
    progress(&s, 1, 101);
    for (int w = 0; w < 2; w++)
        finished(&s, w);
    for (int w = 0; w < 2; w++)
        checkpointed(&s, w, 100, w, 2, true);
    published(&s, 0, 100, true);
    cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
    story_end(&s);
}

/* 2^53 - 1 is the largest that a message can carry. */
Test(ending, a_step_that_nobody_can_have_made_is_not_heard_whatever_says_it)
{
    const int64_t impossible = (INT64_C(1) << 53) - 1;
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 2);
    progress(&s, 0, 3);
    progress(&s, 1, impossible);
    fault_of(&s, 0, FAULT_RING, 1, -1);
    stopped(&s, 1, 101, 101);
    stopped(&s, 0, 3, 101);
    cr_assert_not(said(&s, " form "), "nobody has answered yet: %s", str_text(&s.log));
    for (int w = 0; w < 2; w++)
        stopped(&s, w, 3, 3);
    cr_assert(said(&s, "resume=3:"), "%s", str_text(&s.log));
    for (int w = 0; w < 2; w++)
        ready(&s, w, 3);
    progress(&s, 0, 4);
    progress(&s, 1, 4);
    cr_assert_eq(times_said(&s, "\"event\":\"step\""), 4, "%s", str_text(&s.log));
    story_end(&s);
}

Test(ending, a_checkpoint_behind_the_last_step_is_no_state_of_this_job)
{
    struct story s;
    story_begin(&s, story_settings(1));
    expect_workers(&s, 3);
    first_come(&s, 2);
    for (int w = 0; w < 2; w++)
        listed(&s, w, 400, 40);
    cr_assert(said(&s, "resume=40:"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(ending, an_interrupt_before_the_last_step_still_interrupts)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 2);
    progress(&s, 0, 99);
    interrupt(&s);
    for (int w = 0; w < 2; w++)
        stopped(&s, w, 99, 99);
    for (int w = 0; w < 2; w++)
        checkpointed(&s, w, 99, w, 2, false);
    published(&s, 0, 99, false);
    cr_assert_eq(s.ended, 130, "%s", str_text(&s.log));
    story_end(&s);
}

Test(ending, a_leave_that_takes_the_run_below_the_minimum_is_told)
{
    struct story s;
    story_begin(&s, story_settings(2));
    train_with(&s, 2);
    progress(&s, 0, 5);
    after(&s, RM_S);
    leaving(&s, 1);
    for (int w = 0; w < 2; w++)
        stopped(&s, w, 5, 5);
    for (int w = 0; w < 2; w++)
        checkpointed(&s, w, 5, w, 2, false);
    published(&s, 0, 5, false);
    after(&s, RM_S);
    cr_assert_eq(s.ended, 6, "%s", str_text(&s.log));
    const char *left = strstr(str_text(&s.log), "\"event\":\"workerLeft\"");
    cr_assert(left && strstr(left, "\"event\":\"failed\""), "before the last word: %s", str_text(&s.log));
    story_end(&s);
}

Test(ending, a_newcomer_that_the_last_step_overtakes_is_told_as_skipped)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_to_the_end(&s);
    expect_workers(&s, 7); /* the third is on its way */
    for (int w = 0; w < 2; w++)
        finished(&s, w);
    for (int w = 0; w < 2; w++)
        checkpointed(&s, w, 100, w, 2, true);
    published(&s, 0, 100, true);
    cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
    cr_assert(said(&s, "\"event\":\"joinSkipped\""), "%s", str_text(&s.log));
    story_end(&s);
}

Test(ending, a_loss_that_nobody_knows_is_null_and_not_zero)
{
    struct story s;
    story_begin(&s, story_settings(1));
    expect_workers(&s, 1);
    hello(&s, 0, -1);
    stopped(&s, 0, -1, -1);
    listed(&s, 0, 100, -1);
    ready(&s, 0, 100);
    finished(&s, 0);
    checkpointed(&s, 0, 100, 0, 1, true);
    published(&s, 0, 100, true);
    cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
    cr_assert(said(&s, "\"loss\":null"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(ending, weights_that_are_not_exact_are_not_told_as_exact)
{
    struct story s;
    struct message m;
    story_begin(&s, story_settings(1));
    train_with(&s, 1);
    message_init(&m, MSG_FINISHED);
    m.finished.step = 100;
    m.finished.exact = false; /* it went on from a state that was not */
    hear(&s, 0, &m);
    checkpointed(&s, 0, 100, 0, 1, true);
    published(&s, 0, 100, true);
    cr_assert(said(&s, "\"exact\":false"), "%s", str_text(&s.log));
    story_end(&s);
}

/* At min = target one leaves and another one follows under its index once its process has ended. */
Test(ending, one_that_leaves_and_is_followed_by_another_does_not_end_the_job)
{
    struct story s;
    struct rdzv_event e = {.kind = RDZV_EXPECT, .expect = {.count = 2}};
    story_begin(&s, story_settings(2));
    train_with(&s, 2);
    progress(&s, 0, 3);
    e.expect.worker[1].worker = 1;
    e.expect.worker[1].next = true;
    play(&s, &e);
    leaving(&s, 1);
    stopped(&s, 0, 3, 3);
    stopped(&s, 1, 3, 3);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", rdzv_why(s.st));
    checkpointed(&s, 0, 3, 0, 2, false);
    checkpointed(&s, 1, 3, 1, 2, false);
    published(&s, 0, 3, false);
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "%s", rdzv_why(s.st));
    cr_assert(said(&s, "send 1 release"), "%s", str_text(&s.log));
    cr_assert(said(&s, "workers here: 1, needed: 2; worker 1 is on its way"), "%s", str_text(&s.log));
    closed(&s, 1);
    s.attempt[1]++;
    expect_workers(&s, 3);
    hello(&s, 1, -1);
    stopped(&s, 1, -1, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", rdzv_why(s.st));
    story_end(&s);
}

/* `run` takes one away and adds one at the same moment; the leave is read before its line. */
Test(ending, a_leave_that_is_read_before_the_join_ordered_with_it_does_not_end_the_job)
{
    struct story s;
    story_begin(&s, story_settings(1));
    expect_workers(&s, 1);
    hello(&s, 0, -1);
    leaving(&s, 0);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    after(&s, 100 * RM_MS);
    expect_workers(&s, 3);
    after(&s, RM_S);
    cr_assert_eq(s.ended, -1, "worker 1 is on its way: %s", str_text(&s.log));
    hello(&s, 1, -1);
    stopped(&s, 1, -1, -1);
    listed(&s, 1, -1, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(ending, a_leave_that_nobody_follows_ends_it_a_moment_later)
{
    struct story s;
    story_begin(&s, story_settings(1));
    expect_workers(&s, 1);
    hello(&s, 0, -1);
    leaving(&s, 0);
    after(&s, RM_S);
    cr_assert_eq(s.ended, 6, "%s", str_text(&s.log));
    story_end(&s);
}

/* Of a coordinator that died agents repeat the pieces of a step that all have gone on from, or behind it. */
Test(ending, a_checkpoint_that_is_published_behind_a_newer_one_is_no_news)
{
    struct story s;
    story_begin(&s, story_settings(1));
    expect_workers(&s, 3);
    first_come(&s, 2);
    for (int w = 0; w < 2; w++)
        checkpointed(&s, w, 4, w, 2, false);
    cr_assert(said(&s, "publish"), "%s", str_text(&s.log));
    for (int w = 0; w < 2; w++)
        listed(&s, w, 6, -1);
    cr_assert(said(&s, "resume=6:"), "%s", str_text(&s.log));
    published(&s, 0, 4, false);
    cr_assert_not(said(&s, "checkpointSaved"), "%s", str_text(&s.log));
    for (int w = 0; w < 2; w++)
        ready(&s, w, 6);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    story_end(&s);
}
