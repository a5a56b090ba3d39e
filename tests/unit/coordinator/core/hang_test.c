/* Rings that stand still, one story each. Steps may take 2 s; heartbeats come every second. */
#include <stdio.h>

#include "tests/unit/coordinator/core/story.h"

static struct rdzv_settings impatient(void)
{
    struct rdzv_settings settings = story_settings(1);
    settings.step_timeout = 2 * RM_S;
    return settings;
}

static void beat_at(struct story *s, int w, int64_t counter, int waiting_for, int64_t bytes)
{
    struct message m;
    message_init(&m, MSG_HEARTBEAT);
    m.heartbeat.counter = counter;
    m.heartbeat.phase = PHASE_TRAINING;
    m.heartbeat.waiting_for = waiting_for;
    m.heartbeat.bytes = bytes;
    hear(s, w, &m);
}

static void beat(struct story *s, int w, int64_t counter, int waiting_for)
{
    beat_at(s, w, counter, waiting_for, 0);
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
    stand_still(&s, (const int[]){2, 0, -1}, (const int[]){1, 1, 0});
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
    stand_still(&s, (const int[]){2, 0, -1}, (const int[]){1, 1, 1});
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    cr_assert_gt(rdzv_deadline(s.st), s.now, "the timer does not spin");
    story_end(&s);
}

Test(hang, where_all_wait_and_live_the_end_of_the_chain_is_to_blame)
{
    struct story s;
    story_begin(&s, impatient());
    train_with(&s, 3);
    for (int i = 0; i < 4; i++)
        stand_still(&s, (const int[]){1, 7, 0}, (const int[]){1, 1, 1});
    cr_assert(said(&s, "send 1 fault"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Nothing comes from worker 1 to worker 2, which has received least. */
static void wait_in_a_circle(struct story *s)
{
    static const int64_t received[3] = {300, 200, 100};
    for (int i = 0; i < 12 && rdzv_state(s->st) == RDZV_TRAINING; i++) {
        for (int w = 0; w < 3; w++)
            beat_at(s, w, 5 + i, (w + 2) % 3, received[w]);
        after(s, RM_S);
    }
    cr_assert_eq(rdzv_state(s->st), RDZV_QUIESCING, "%s", str_text(&s->log));
}

Test(hang, of_those_who_wait_in_a_circle_nobody_is_killed_and_a_ring_without_the_bad_path_goes_on)
{
    struct story s;
    story_begin(&s, impatient());
    train_with(&s, 3);
    progress(&s, 0, 4);
    for (int i = 0; i < 2; i++) {
        wait_in_a_circle(&s);
        for (int w = 0; w < 3; w++)
            stopped(&s, w, 4, 4);
        cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
        for (int w = 0; w < 3; w++)
            ready(&s, w, 4);
    }
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    cr_assert(!said(&s, " fault") && !said(&s, "workerLost"), "all are well: %s", str_text(&s.log));
    cr_assert(said(&s, "it and worker 2 can't reach each other (no step for "), "%s", str_text(&s.log));
    cr_assert(said(&s, "as nothing comes from worker 1 to worker 2)"), "%s", str_text(&s.log));
    story_end(&s);
}

/* A trainer's word is no promise of ours: one that says that it waits for itself must not end the
 * coordinator. */
Test(hang, of_those_who_wait_who_says_that_it_waits_for_itself_is_to_blame)
{
    struct story s;
    story_begin(&s, impatient());
    train_with(&s, 3);
    progress(&s, 0, 4);
    for (int i = 0; i < 12 && rdzv_state(s.st) == RDZV_TRAINING; i++) {
        for (int w = 0; w < 3; w++)
            beat_at(&s, w, 5 + i, w == 2 ? 2 : (w + 2) % 3, 300 - 100 * w);
        after(&s, RM_S);
    }
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    cr_assert(said(&s, "send 2 fault"), "%s", str_text(&s.log));
    story_end(&s);
}

/* So many seconds in which all wait for each other, and something comes in each. */
static void reduce_slowly(struct story *s, int seconds)
{
    for (int i = 0; i < seconds && rdzv_state(s->st) == RDZV_TRAINING; i++) {
        for (int w = 0; w < 3; w++)
            beat_at(s, w, s->now, (w + 2) % 3, s->now + w);
        after(s, RM_S);
    }
}

Test(hang, a_reduction_that_is_slow_is_no_circle_but_one_that_drips_is)
{
    struct story s;
    struct rdzv_settings settings = impatient();
    settings.step_timeout = 10 * RM_S;
    story_begin(&s, settings);
    train_with(&s, 3);
    reduce_slowly(&s, 38);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    reduce_slowly(&s, 30);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(hang, where_all_are_needed_and_wait_in_a_circle_again_and_again_the_run_ends_with_their_names)
{
    struct story s;
    struct rdzv_settings settings = impatient();
    settings.workers_min = 3;
    settings.max_restarts = 0;
    story_begin(&s, settings);
    train_with(&s, 3);
    for (int i = 0; i < 40 && s.ended < 0; i++) {
        wait_in_a_circle(&s);
        for (int w = 0; w < 3; w++)
            stopped(&s, w, 0, -1);
        for (int second = 0; second < 31 && rdzv_state(s.st) == RDZV_GATHERING; second++) {
            for (int w = 0; w < 3; w++)
                beat(&s, w, 100 + second, -1);
            after(&s, RM_S);
        }
        for (int w = 0; w < 3 && s.ended < 0; w++)
            ready(&s, w, 0);
    }
    cr_assert_eq(s.ended, 4, "%s", str_text(&s.log));
    cr_assert(said(&s, "end 4 workers 1 and 2 can't reach each other"), "%s", str_text(&s.log));
    cr_assert(!said(&s, " fault"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(hang, one_that_waits_for_who_has_finished_is_not_killed_either)
{
    struct story s;
    story_begin(&s, impatient());
    train_with(&s, 3);
    for (int w = 0; w < 2; w++) {
        progress(&s, w, 100);
        finished(&s, w);
    }
    for (int i = 0; i < 12 && rdzv_state(s.st) == RDZV_TRAINING; i++) {
        for (int w = 0; w < 3; w++)
            beat(&s, w, 5 + i, w == 2 ? 1 : -1);
        after(&s, RM_S);
    }
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    cr_assert(!said(&s, " fault"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(hang, a_trainer_that_was_stopped_while_it_waited_is_told_from_those_who_wait)
{
    for (int culprit = 0; culprit < 3; culprit++) {
        struct story s;
        int moves[3] = {1, 1, 1};
        char blamed[40];
        moves[culprit] = 0;
        snprintf(blamed, sizeof blamed, "send %d fault", culprit);
        story_begin(&s, impatient());
        train_with(&s, 3);
        stand_still(&s, (const int[]){2, 0, 1}, moves);
        cr_assert(said(&s, blamed), "%s", str_text(&s.log));
        story_end(&s);
    }
}

/* Worker 1's agent falls silent; its last word was that its trainer waits, like everybody. */
Test(hang, the_stale_word_of_a_silent_agent_is_not_believed)
{
    struct story s;
    struct rdzv_settings settings = impatient();
    settings.step_timeout = 10 * RM_S;
    settings.lost_after = 60 * RM_S;
    story_begin(&s, settings);
    train_with(&s, 3);
    beat(&s, 1, 5, 0);
    for (int i = 0; i < 10; i++) {
        cr_assert(!said(&s, " fault"), "blamed after %d s: %s", i, str_text(&s.log));
        beat(&s, 0, 5 + i, 2);
        beat(&s, 2, 5 + i, 1);
        after(&s, RM_S);
    }
    cr_assert(said(&s, "send 1 fault"), "%s", str_text(&s.log));
    story_end(&s);
}

/* It was to look after 2 s and does so half a second later, less than a heartbeat: whatever the three have
 * said meanwhile lies unread. Once it is read, one of them is still for all to see. */
Test(hang, who_stood_still_itself_until_shortly_after_it_was_to_look_blames_nobody)
{
    struct story s;
    story_begin(&s, impatient());
    train_with(&s, 3);
    for (int w = 0; w < 3; w++)
        beat(&s, w, 5, -1);
    sleep_through(&s, 2500 * RM_MS);
    cr_assert(!said(&s, " fault"), "%s", str_text(&s.log));
    cr_assert_gt(rdzv_deadline(s.st), s.now, "the timer does not spin");
    for (int w = 0; w < 3; w++)
        beat(&s, w, w == 1 ? 5 : 6, -1);
    after(&s, RM_S);
    cr_assert(said(&s, "send 1 fault"), "%s", str_text(&s.log));
    cr_assert(!said(&s, "send 0 fault") && !said(&s, "send 2 fault"), "%s", str_text(&s.log));
    story_end(&s);
}

/* The same, and what it finds first is not its timer but one of the words that lie there. */
Test(hang, who_finds_what_was_said_while_it_stood_still_blames_nobody_at_the_first_word)
{
    struct story s;
    story_begin(&s, impatient());
    train_with(&s, 3);
    for (int w = 0; w < 3; w++)
        beat(&s, w, 5, -1);
    s.now += 2500 * RM_MS;
    for (int w = 0; w < 3; w++) {
        beat(&s, w, w == 1 ? 5 : 6, -1);
        cr_assert(!said(&s, " fault"), "%s", str_text(&s.log));
    }
    cr_assert_gt(rdzv_deadline(s.st), s.now, "the timer does not spin");
    after(&s, RM_S);
    cr_assert(said(&s, "send 1 fault"), "%s", str_text(&s.log));
    cr_assert(!said(&s, "send 0 fault") && !said(&s, "send 2 fault"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Worker 1 has been still for 2.05 s as the coordinator falls asleep itself, just before it was to look. By
 * the time that it wakes worker 1 has long gone on; its word lies behind worker 0's. */
Test(hang, nor_does_who_slept_for_so_long_that_it_forgives_that_time)
{
    struct story s;
    struct rdzv_settings settings = impatient();
    settings.lost_after = 60 * RM_S;
    story_begin(&s, settings);
    train_with(&s, 3);
    after(&s, 900 * RM_MS);
    for (int w = 0; w < 3; w++)
        beat(&s, w, 5, -1);
    for (int i = 0; i < 2; i++) {
        after(&s, 1025 * RM_MS);
        beat(&s, 0, 6 + i, -1);
        beat(&s, 2, 6 + i, -1);
    }
    cr_assert(!said(&s, " fault"), "%s", str_text(&s.log));
    s.now += 7 * RM_S;
    for (int w = 0; w < 3; w++) {
        beat(&s, w, 9, -1);
        cr_assert(!said(&s, " fault"), "%s", str_text(&s.log));
    }
    cr_assert_gt(rdzv_deadline(s.st), s.now, "the timer does not spin");
    after(&s, RM_S);
    cr_assert(!said(&s, " fault"), "%s", str_text(&s.log));
    story_end(&s);
}

/* All wait. At the first look, after 8 s, worker 1's counter has not grown for 5: too long for one that waits
 * and too short for blame. At the third, after 12 s, it has been still for 9. */
Test(hang, who_is_neither_fresh_nor_stale_is_looked_at_again_and_not_blamed)
{
    struct story s;
    struct rdzv_settings settings = impatient();
    settings.step_timeout = 8 * RM_S;
    settings.lost_after = 60 * RM_S;
    story_begin(&s, settings);
    train_with(&s, 3);
    for (int i = 0; i < 12; i++) {
        cr_assert(!said(&s, " fault"), "blamed after %d s: %s", i, str_text(&s.log));
        for (int w = 0; w < 3; w++)
            beat(&s, w, w == 1 && i > 3 ? 5 + 3 : 5 + i, (w + 2) % 3);
        after(&s, RM_S);
        cr_assert_gt(rdzv_deadline(s.st), s.now, "the timer does not spin");
    }
    cr_assert(said(&s, "send 1 fault"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Found by the simulator: at the first look, after 8 s, worker 1 has been still for only 2 and counts as
 * waiting, so that all seemed to wait for each other. */
Test(hang, who_hung_a_moment_ago_makes_no_circle_in_which_anybody_would_do)
{
    struct story s;
    struct rdzv_settings settings = impatient();
    settings.step_timeout = 8 * RM_S;
    settings.lost_after = 60 * RM_S;
    story_begin(&s, settings);
    train_with(&s, 3);
    for (int i = 0; i < 15; i++) {
        for (int w = 0; w < 3; w++)
            beat(&s, w, w == 1 && i > 6 ? 5 + 6 : 5 + i, (w + 2) % 3);
        after(&s, RM_S);
    }
    cr_assert(said(&s, "send 1 fault"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "send 0 fault") || said(&s, "send 2 fault"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(hang, of_several_that_show_nothing_the_one_that_is_still_for_longest_is_blamed)
{
    struct story s;
    story_begin(&s, impatient());
    train_with(&s, 3);
    beat(&s, 2, 5, 1);
    after(&s, RM_S / 10);
    beat(&s, 0, 5, 2);
    beat(&s, 1, 5, 0);
    after(&s, 3 * RM_S);
    cr_assert(said(&s, "send 2 fault"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(hang, one_that_hangs_at_the_last_step_is_not_hidden_by_those_who_finished)
{
    struct story s;
    struct rdzv_settings settings = impatient();
    story_begin(&s, settings);
    train_with(&s, 3);
    for (int w = 0; w < 2; w++) {
        progress(&s, w, 100);
        finished(&s, w);
    }
    stand_still(&s, (const int[]){-1, -1, 1}, (const int[]){0, 0, 0});
    cr_assert(said(&s, "send 2 fault"), "%s", str_text(&s.log));
    cr_assert(!said(&s, "send 0 fault") && !said(&s, "send 1 fault"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(hang, an_evaluation_that_somebody_stands_still_in_is_found)
{
    struct story s;
    story_begin(&s, impatient());
    train_with(&s, 3);
    for (int w = 0; w < 3; w++)
        progress(&s, w, 1);
    stand_still(&s, (const int[]){2, -1, 1}, (const int[]){1, 0, 1});
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

/* Worker 0's agent lives, and its trainer never moves. */
static void show_nothing(struct story *s, rm_time t)
{
    for (rm_time end = s->now + t; s->now < end;) {
        beat(s, 0, 0, -1);
        after(s, end - s->now < RM_S ? end - s->now : RM_S);
    }
}

/* 20 steps of 5 s each and then 10 of 100 s: a mean would be patient for minutes. */
Test(hang, patience_follows_the_median_step_and_not_the_mean)
{
    struct story s;
    struct rdzv_settings settings = story_settings(1);
    settings.lost_after = 3600 * RM_S;
    story_begin(&s, settings);
    train_with(&s, 1);
    for (int step = 1; step <= 30; step++)
        progress_in(&s, 0, step, step <= 20 ? 5 * RM_S : 100 * RM_S);
    show_nothing(&s, 50 * RM_S - 1);
    cr_assert(!said(&s, " fault"), "%s", str_text(&s.log));
    after(&s, 1);
    cr_assert(said(&s, "send 0 fault"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(hang, without_steps_to_go_by_patience_is_half_a_minute)
{
    struct story s;
    struct rdzv_settings settings = story_settings(1);
    settings.lost_after = 3600 * RM_S;
    story_begin(&s, settings);
    train_with(&s, 1);
    show_nothing(&s, 30 * RM_S - 1);
    cr_assert(!said(&s, " fault"), "%s", str_text(&s.log));
    after(&s, 1);
    cr_assert(said(&s, "send 0 fault"), "%s", str_text(&s.log));
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

Test(hang, time_in_which_the_ring_stood_still_is_not_productive_though_nobody_knew)
{
    struct story s;
    story_begin(&s, impatient());
    train_with(&s, 3);
    rm_time before = rdzv_goodput(s.st, s.now).productive;
    stand_still(&s, (const int[]){2, 0, -1}, (const int[]){1, 1, 0});
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING);
    struct rdzv_goodput spent = rdzv_goodput(s.st, s.now);
    cr_assert_leq(spent.productive, before, "%" PRId64 " ms of 3000 that brought no step",
                  (spent.productive - before) / RM_MS);
    cr_assert_geq(spent.recovery, 2 * RM_S);
    story_end(&s);
}
