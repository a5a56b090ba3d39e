/* Workers that fail again and again, one story each. maxRestarts is 2. */
#include "coordinator/status/history.h"
#include "tests/unit/coordinator/core/story.h"

/* Its trainer died, and another one has come up and answered. */
static void crash(struct story *s, int w, int64_t step)
{
    struct message m;
    fault_of(s, w, FAULT_TRAINER_EXIT, -1, -1);
    s->trainer[w] += 1000;
    hello_message(s, w, step, &m);
    hear(s, w, &m);
}

Test(failures, who_fails_once_too_often_is_put_into_quarantine_and_the_others_go_on)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 3);
    progress(&s, 0, 3);
    for (int i = 0; i < 2; i++)
        crash(&s, 1, 3);
    cr_assert(!said(&s, "uarantine"), "%s", str_text(&s.log));
    fault_of(&s, 1, FAULT_TRAINER_EXIT, -1, -1);
    cr_assert(
        said(
            &s,
            "tell {\"event\":\"workerQuarantined\",\"time\":0,\"worker\":1,\"step\":3,\"cause\":\"3 failures "
            "within 3600 s, failurePolicy.maxRestarts allows 2; the newest: as the story goes\"}"),
        "%s", str_text(&s.log));
    cr_assert(said(&s, "send 1 abandon"), "%s", str_text(&s.log));
    cr_assert(said(&s, "close 1"), "%s", str_text(&s.log));
    stopped(&s, 0, 3, 3);
    stopped(&s, 2, 3, 3);
    ready(&s, 0, 3);
    ready(&s, 2, 3);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    story_end(&s);
}

static void quarantine(struct story *s, int w)
{
    for (int i = 0; i < 3; i++)
        crash(s, w, 3);
    cr_assert(said(s, "workerQuarantined"), "%s", str_text(&s->log));
    forget(s);
}

Test(failures, the_last_worker_that_there_was_ends_the_job_although_all_steps_are_made)
{
    struct story s;
    struct rdzv_settings settings = story_settings(1);
    settings.unsupervised = true;
    settings.workers_target = 1;
    story_begin(&s, settings);
    hello(&s, 0, -1);
    stopped(&s, 0, -1, -1);
    listed(&s, 0, -1, -1);
    ready(&s, 0, 0);
    progress(&s, 0, 100);
    for (int i = 0; i < 2; i++)
        crash(&s, 0, -1);
    fault_of(&s, 0, FAULT_TRAINER_EXIT, -1, -1);
    cr_assert_eq(s.ended, 5, "in its place nobody comes: %s", str_text(&s.log));
    cr_assert(said(&s, "worker 0 is in quarantine"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(failures, its_next_process_is_refused_with_the_reason)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 3);
    quarantine(&s, 1);
    s.attempt[1]++;
    expect_workers(&s, 7); /* it was on its way already */
    hello(&s, 1, -1);
    cr_assert(said(&s, "send 1 abandon"), "%s", str_text(&s.log));
    cr_assert(said(&s, "worker 1 is in quarantine: 3 failures"), "%s", str_text(&s.log));
    cr_assert(said(&s, "close 1"), "%s", str_text(&s.log));
    s.attempt[1]++;
    expect_workers(&s, 7);
    cr_assert(!said(&s, "workerFailed"), "what it does now counts no more: %s", str_text(&s.log));
    story_end(&s);
}

Test(failures, the_status_shows_the_quarantine)
{
    struct story s;
    struct str out = str_init(1 << 20);
    story_begin(&s, story_settings(1));
    train_with(&s, 3);
    quarantine(&s, 1);
    expect_workers(&s, 5);
    struct history *c = calloc(1, sizeof *c);
    struct history_terms terms = {.job = "j", .checkpoint_uri = "file:///c"};
    history_print_status(c, s.st, &terms, s.now, &out);
    cr_assert(strstr(str_text(&out), "\"quarantined\":[{\"worker\":1,\"cause\":\"3 failures within 3600 s"),
              "%s", str_text(&out));
    free(c);
    str_clear(&out);
    story_end(&s);
}

Test(failures, what_one_in_quarantine_did_does_not_count_against_the_others)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 3);
    quarantine(&s, 1);
    crash(&s, 2, 3);
    crash(&s, 2, 3);
    cr_assert_lt(s.ended, 0);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "it forms without worker 1: %s", str_text(&s.log));
    stopped(&s, 0, 3, 3);
    stopped(&s, 2, 3, 3);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", rdzv_why(s.st));
    story_end(&s);
}

Test(failures, with_too_few_left_what_is_held_is_saved_and_the_job_ends_with_5)
{
    struct story s;
    story_begin(&s, story_settings(3));
    train_with(&s, 3);
    progress(&s, 0, 3);
    quarantine(&s, 1);
    stopped(&s, 0, 3, 3);
    stopped(&s, 2, 3, 3);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", rdzv_why(s.st));
    checkpointed(&s, 0, 3, 0, 2, false);
    checkpointed(&s, 2, 3, 1, 2, false);
    published(&s, s.publish.publish.step == 3 ? 0 : 2, 3, false);
    cr_assert_eq(s.ended, 5, "%s", str_text(&s.log));
    cr_assert(said(&s,
                   "worker 1 is in quarantine (3 failures within 3600 s, failurePolicy.maxRestarts allows 2; "
                   "the newest: as the story goes), and 2 are left of the 3 that are needed; the newest "
                   "checkpoint is of "
                   "step 3"),
              "%s", str_text(&s.log));
    story_end(&s);
}

Test(failures, a_hang_on_order_is_none)
{
    struct story s;
    struct rdzv_settings settings = story_settings(1);
    settings.step_timeout = 2 * RM_S;
    settings.lost_after = 60 * RM_S;
    story_begin(&s, settings);
    train_with(&s, 1);
    for (int i = 0; i < 9; i++) {
        act_on(&s, CAUSE_HANG, 0);
        after(&s, 3 * RM_S);
        cr_assert(said(&s, "send 0 fault"), "%s", str_text(&s.log));
        crash(&s, 0, 0);
        stopped(&s, 0, 0, -1);
        ready(&s, 0, 0);
        cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    }
    cr_assert(!said(&s, "workerFailed"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(failures, old_ones_are_forgotten)
{
    struct story s;
    struct rdzv_settings settings = story_settings(1);
    settings.within = 100 * RM_S;
    settings.lost_after = 3600 * RM_S;
    story_begin(&s, settings);
    train_with(&s, 2);
    for (int i = 0; i < 6; i++) {
        crash(&s, 1, 0);
        stopped(&s, 1, 0, -1);
        after(&s, 51 * RM_S);
    }
    cr_assert(!said(&s, "workerQuarantined"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Processes that die before they ever said hello are known by the next attempt. */
Test(failures, one_that_never_comes_up_is_put_into_quarantine_too)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 2);
    for (int i = 0; i < 4; i++) {
        expect_workers(&s, 7);
        s.attempt[2]++;
    }
    cr_assert(said(&s, "\"event\":\"workerQuarantined\",\"time\":0,\"worker\":2"), "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    story_end(&s);
}

/* ---- numbers that are not finite ---- */

/* Two workers have made step 3. */
static void two_train(struct story *s)
{
    story_begin(s, story_settings(1));
    train_with(s, 2);
    for (int w = 0; w < 2; w++)
        progress(s, w, 3);
}

/* Two train at step 3; worker 1's memory shows it another header than worker 0 sees. */
Test(failures, what_one_worker_alone_takes_for_not_finite_is_its_own_failure_and_no_end)
{
    struct story s;
    two_train(&s);
    fault_of(&s, 1, FAULT_NOT_FINITE, -1, 4);
    cr_assert(said(&s, "send 0,1 stop"), "%s", str_text(&s.log));
    for (int w = 0; w < 2; w++)
        stopped(&s, w, 3, 3);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    cr_assert(said(&s, "\"event\":\"workerFailed\",\"time\":0,\"worker\":1"), "%s", str_text(&s.log));
    cr_assert(said(&s, "no other worker says so"), "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(failures, what_two_see_to_be_not_finite_ends_the_job)
{
    struct story s;
    two_train(&s);
    for (int w = 0; w < 2; w++)
        fault_of(&s, w, FAULT_NOT_FINITE, -1, 4);
    for (int w = 0; w < 2; w++)
        stopped(&s, w, 3, 3);
    for (int w = 0; w < 2; w++)
        checkpointed(&s, w, 3, w, 2, false);
    published(&s, 0, 3, false);
    cr_assert_eq(s.ended, 5, "%s", str_text(&s.log));
    cr_assert(said(&s, "it would come out the same again"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Who is gone can't be asked, and who told it is not to blame for that. */
Test(failures, what_one_saw_whose_neighbour_died_meanwhile_counts_for_nothing)
{
    struct story s;
    two_train(&s);
    fault_of(&s, 1, FAULT_NOT_FINITE, -1, 4);
    expect_workers(&s, 2);
    stopped(&s, 1, 3, 3);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    cr_assert_not(said(&s, "workerFailed"), "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    story_end(&s);
}
