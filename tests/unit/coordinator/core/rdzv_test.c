/* The coordinator's rules, one story each. */
#include <signal.h>
#include <stdio.h>

#include "coordinator/core/rdzv_fault.h"
#include "coordinator/status/history.h"
#include "tests/unit/coordinator/core/story.h"

Test(rdzv, workers_that_hold_nothing_begin_from_the_seed)
{
    struct story s;
    story_begin(&s, story_settings(2));
    train_with(&s, 3);
    cr_assert_eq(s.form.form.count, 3);
    cr_assert_eq(s.form.form.member[2].role, ROLE_INIT);
    cr_assert_not(s.form.form.resume.held);
    story_end(&s);
}

Test(rdzv, a_latecomer_is_waited_for_during_the_join_window_only)
{
    struct story s;
    story_begin(&s, story_settings(1));
    expect_workers(&s, 7);
    for (int w = 0; w < 2; w++) {
        hello(&s, w, -1);
        stopped(&s, w, -1, -1);
        listed(&s, w, -1, -1);
    }
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING);
    cr_assert_lt(rdzv_deadline(s.st), s.now + 200 * RM_MS);
    after(&s, 150 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING);
    cr_assert_eq(s.form.form.count, 2);
    story_end(&s);
}

Test(rdzv, workers_load_the_newest_checkpoint_once_all_of_them_list_it)
{
    struct story s;
    story_begin(&s, story_settings(1));
    expect_workers(&s, 3);
    first_come(&s, 2);
    listed(&s, 0, 40, 20);
    listed(&s, 1, 20, -1); /* a moment before 40 was published */
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "%s", str_text(&s.log));
    listed(&s, 0, 40, 20);
    listed(&s, 1, 40, 20);
    cr_assert_eq(s.form.form.member[1].role, ROLE_LOAD);
    cr_assert_eq(s.form.form.resume.step, 40);
    story_end(&s);
}

Test(rdzv, a_killed_worker_costs_no_timer)
{
    struct story s;
    story_begin(&s, story_settings(2));
    train_with(&s, 4);
    progress(&s, 0, 1);
    act_on(&s, CAUSE_WORKER_LOST, 3);
    rm_time begin = s.now;
    closed(&s, 3);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "alone, a closed socket loses nobody");
    fault_of(&s, 2, FAULT_RING, 3, 1);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING);
    cr_assert(said(&s, "\"workerLost\""));
    for (int w = 0; w < 3; w++)
        stopped(&s, w, 1, 1);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING);
    cr_assert_eq(s.form.form.count, 3);
    for (int w = 0; w < 3; w++)
        ready(&s, w, 1);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    cr_assert_eq(s.now, begin, "no time had to pass");
    s.now += 5 * RM_MS;
    progress(&s, 0, 2);
    cr_assert_eq(s.recovery.cause, CAUSE_WORKER_LOST);
    cr_assert_eq(s.recovery.total, 5 * RM_MS);
    cr_assert_eq(s.recovery.steps_redone, 0);
    story_end(&s);
}

Test(rdzv, the_ring_fault_may_come_before_the_closed_socket)
{
    struct story s;
    story_begin(&s, story_settings(2));
    train_with(&s, 3);
    fault_of(&s, 0, FAULT_RING, 2, 0);
    stopped(&s, 0, 0, -1);
    stopped(&s, 1, 0, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "a ring error alone loses nobody");
    closed(&s, 2);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING);
    cr_assert_eq(s.form.form.count, 2);
    story_end(&s);
}

Test(rdzv, a_worker_may_lose_its_connection_and_come_back_while_training_goes_on)
{
    struct story s;
    story_begin(&s, story_settings(2));
    train_with(&s, 3);
    closed(&s, 1);
    after(&s, 2 * RM_S);
    struct message m;
    hello_message(&s, 1, 4, &m);
    m.hello.phase = PHASE_TRAINING;
    m.hello.ring = (struct msg_generation){1, s.generation};
    s.conn[1] = s.conns++;
    hear(&s, 1, &m);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    cr_assert_not(said(&s, "workerLost"));
    closed(&s, 1);
    for (int i = 0; i < 6; i++) {
        progress(&s, 0, i + 1);
        progress(&s, 2, i + 1);
        after(&s, RM_S);
    }
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "it had lostAfter to come back");
    cr_assert(said(&s, "did not come back in"));
    story_end(&s);
}

/* Found by the simulator (seed 1007042): the newcomer alone was enough, and began again from step 0. */
Test(rdzv, nobody_starts_over_while_the_only_holders_trainer_comes_back)
{
    struct story s;
    struct message m;
    story_begin(&s, story_settings(1));
    train_with(&s, 1);
    for (int i = 1; i <= 5; i++)
        progress(&s, 0, i);
    expect_workers(&s, 3);
    act_on(&s, CAUSE_WORKER_JOINED, 1);
    hello(&s, 1, -1);
    stopped(&s, 0, 5, 5);
    stopped(&s, 1, -1, -1);
    listed(&s, 1, -1, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING);
    fault_of(&s, 0, FAULT_TRAINER_EXIT, -1, 5);
    stopped(&s, 1, -1, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "worker 0's agent still holds step 5");
    s.trainer[0]++;
    hello_message(&s, 0, 5, &m);
    hear(&s, 0, &m);
    stopped(&s, 0, 5, 5);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING);
    cr_assert_eq(s.form.form.resume.step, 5);
    story_end(&s);
}

Test(rdzv, who_missed_the_last_update_catches_up_and_a_newcomer_receives)
{
    struct story s;
    story_begin(&s, story_settings(2));
    train_with(&s, 3);
    progress(&s, 0, 8);
    expect_workers(&s, 0x17);
    hello(&s, 4, -1);
    fault_of(&s, 0, FAULT_RING, 2, 8);
    closed(&s, 2);
    stopped(&s, 4, -1, -1);
    stopped(&s, 0, 8, 8);
    stopped(&s, 1, 7, 7);
    cr_assert_eq(s.form.form.resume.step, 8);
    cr_assert_eq(s.form.form.member[0].role, ROLE_KEEP);
    cr_assert_eq(s.form.form.member[1].role, ROLE_CATCH_UP);
    cr_assert_eq(s.form.form.member[2].worker, 4, "newcomers come last");
    cr_assert_eq(s.form.form.member[2].role, ROLE_RECEIVE);
    cr_assert_eq(s.form.form.source[0].worker, 0);
    story_end(&s);
}

Test(rdzv, a_stopped_of_an_older_round_says_nothing)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 3);
    leaving(&s, 2);
    int64_t old = s.round;
    fault_of(&s, 0, FAULT_RING, -1, 0);
    cr_assert_gt(s.round, old);
    struct message m;
    message_init(&m, MSG_STOPPED);
    m.stopped.round = old;
    m.stopped.state = state_of(0);
    for (int w = 0; w < 3; w++)
        hear(&s, w, &m);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING);
    story_end(&s);
}

Test(rdzv, an_announced_leave_stops_at_the_boundary_and_redoes_nothing)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 3);
    progress(&s, 0, 1);
    leaving(&s, 2);
    cr_assert(said(&s, "send 0,1,2 stop g=1.1 round=2 at=boundary"), "%s", str_text(&s.log));
    for (int w = 0; w < 3; w++)
        progress(&s, w, 2);
    for (int w = 0; w < 3; w++)
        stopped(&s, w, 2, 2);
    cr_assert_eq(s.form.form.count, 2);
    cr_assert(said(&s, "send 2 release"));
    cr_assert(said(&s, "\"workerLeft\""));
    closed(&s, 2);
    ready(&s, 0, 2);
    ready(&s, 1, 2);
    progress(&s, 0, 3);
    cr_assert_eq(s.recovery.cause, CAUSE_WORKER_LEFT);
    cr_assert_eq(s.recovery.steps_redone, 0);
    story_end(&s);
}

Test(rdzv, leaves_that_follow_within_half_a_second_are_taken_together)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 4);
    leaving(&s, 3);
    for (int w = 0; w < 4; w++)
        stopped(&s, w, 0, -1);
    for (int w = 0; w < 3; w++)
        ready(&s, w, 0);
    forget(&s);
    after(&s, 50 * RM_MS);
    leaving(&s, 2);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    after(&s, 50 * RM_MS);
    leaving(&s, 1);
    cr_assert_eq(rdzv_deadline(s.st), RM_S + 500 * RM_MS);
    after(&s, 400 * RM_MS);
    for (int w = 0; w < 3; w++)
        stopped(&s, w, 1, 1);
    cr_assert_eq(s.form.form.count, 1);
    story_end(&s);
}

Test(rdzv, the_only_holder_serves_its_state_before_it_may_leave)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 1);
    progress(&s, 0, 5);
    expect_workers(&s, 3);
    hello(&s, 1, -1);
    leaving(&s, 0);
    stopped(&s, 1, -1, -1);
    stopped(&s, 0, 5, 5);
    cr_assert_eq(s.form.form.count, 1);
    cr_assert_eq(s.form.form.member[0].worker, 1);
    cr_assert_eq(s.form.form.source[0].worker, 0);
    cr_assert_not(said(&s, "release"));
    ready(&s, 1, 5);
    cr_assert(said(&s, "send 0 release"));
    story_end(&s);
}

Test(rdzv, a_join_happens_at_a_boundary_and_is_skipped_near_the_end)
{
    struct story s;
    story_begin(&s, story_settings(1));
    expect_workers(&s, 1);
    hello(&s, 0, -1);
    stopped(&s, 0, -1, -1);
    listed(&s, 0, -1, -1);
    s.now += 100 * RM_MS; /* what forming costs */
    ready(&s, 0, 0);
    progress(&s, 0, 1);
    expect_workers(&s, 3);
    hello(&s, 1, -1);
    cr_assert(said(&s, "at=boundary"));
    stopped(&s, 1, -1, -1);
    stopped(&s, 0, 2, 2);
    ready(&s, 0, 2);
    ready(&s, 1, 2);
    cr_assert(said(&s, "\"workerJoined\""));
    for (int i = 3; i <= 99; i++)
        progress(&s, 0, i);
    forget(&s);
    expect_workers(&s, 7);
    hello(&s, 2, -1);
    after(&s, 200 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "one step is shorter than a forming");
    act_on(&s, CAUSE_WORKER_JOINED, 2);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "a drill is never skipped");
    story_end(&s);
}

Test(rdzv, below_min_with_nothing_on_its_way_saves_and_ends_with_6)
{
    struct story s;
    story_begin(&s, story_settings(2));
    train_with(&s, 2);
    progress(&s, 0, 9);
    act_on(&s, CAUSE_WORKER_LOST, 1);
    expect_workers(&s, 1);
    stopped(&s, 0, 9, 9);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING);
    checkpointed(&s, 0, 9, 0, 1, false);
    published(&s, 0, 9, false);
    cr_assert_eq(s.ended, 6);
    cr_assert(
        said(&s, "workers here: 1, needed: 2, and none is on its way; the newest checkpoint is of step 9"));
    story_end(&s);
}

Test(rdzv, failures_of_several_over_budget_save_and_end_with_5)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 3);
    progress(&s, 0, 3);
    for (int i = 0; i < 3; i++)
        fault_of(&s, 1 + i % 2, FAULT_TRAINER_EXIT, -1, -1);
    stopped(&s, 0, 3, 3);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING);
    checkpointed(&s, 0, 3, 0, 1, false);
    published(&s, 0, 3, false);
    cr_assert_eq(s.ended, 5);
    cr_assert(said(&s, "maxRestarts allows 2"));
    story_end(&s);
}

Test(rdzv, a_drill_is_not_a_failure)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 2);
    for (int i = 0; i < 5; i++) {
        act_on(&s, CAUSE_TRAINER_EXIT, 1);
        fault_of(&s, 1, FAULT_TRAINER_EXIT, -1, -1);
    }
    cr_assert_eq(s.ended, -1);
    cr_assert_neq(rdzv_state(s.st), RDZV_FAILED);
    story_end(&s);
}

Test(rdzv, a_nan_is_saved_and_ends_with_5_and_its_sentence)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 1);
    progress(&s, 0, 3);
    fault_of(&s, 0, FAULT_NOT_FINITE, -1, 4);
    stopped(&s, 0, 3, 3);
    checkpointed(&s, 0, 3, 0, 1, false);
    published(&s, 0, 3, false);
    cr_assert_eq(s.ended, 5);
    cr_assert(said(&s, "as the story goes"));
    cr_assert(said(&s, "start anew with --overwrite"));
    cr_assert(!said(&s, "run again to go on"), "it would fail again");
    story_end(&s);
}

Test(rdzv, an_interrupt_stops_at_the_boundary_saves_and_ends_with_130)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 2);
    struct rdzv_event e = {.kind = RDZV_INTERRUPT};
    play(&s, &e);
    cr_assert(said(&s, "at=boundary"));
    stopped(&s, 0, 6, 6);
    stopped(&s, 1, 6, 6);
    checkpointed(&s, 0, 6, 0, 2, false);
    checkpointed(&s, 1, 6, 1, 2, false);
    published(&s, 0, 6, false);
    cr_assert_eq(s.ended, 130);
    cr_assert(said(&s, "{\"event\":\"interrupted\",\"time\":0,\"step\":6}"));
    story_end(&s);
}

Test(rdzv, complete_comes_only_after_the_final_checkpoint)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 2);
    for (int i = 1; i <= 100; i++)
        progress(&s, 0, i);
    finished(&s, 0);
    finished(&s, 1);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING);
    checkpointed(&s, 0, 100, 0, 2, true);
    checkpointed(&s, 1, 100, 1, 2, true);
    cr_assert_not(said(&s, "complete"));
    closed(&s, 0);
    cr_assert(said(&s, "send 1 publish"), "the publisher died: another one is named");
    published(&s, 1, 100, true);
    cr_assert_eq(s.ended, 0);
    cr_assert(said(&s, "\"uri\":\"file:///c/final\""));
    story_end(&s);
}

Test(rdzv, a_full_disk_at_the_end_ends_with_4)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 1);
    fault_of(&s, 0, FAULT_STORAGE, -1, 50);
    cr_assert_eq(s.ended, -1, "a periodic checkpoint that fails costs only itself");
    finished(&s, 0);
    fault_of(&s, 0, FAULT_STORAGE, -1, 100);
    cr_assert_eq(s.ended, 4);
    story_end(&s);
}

Test(rdzv, steps_are_told_once_and_in_order_whoever_reports_them)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 2);
    progress(&s, 0, 1);
    progress(&s, 1, 1);
    progress(&s, 1, 2);
    progress(&s, 0, 2);
    progress(&s, 0, 4); /* nobody can tell 3 any more */
    int steps = 0;
    for (const char *at = str_text(&s.log); (at = strstr(at, "\"event\":\"step\"")); at++)
        steps++;
    cr_assert_eq(steps, 4);
    cr_assert(said(&s, "\"step\":3,\"loss\":null"));
    story_end(&s);
}

Test(rdzv, another_machines_bits_are_refused_with_both_names)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 1);
    struct message m;
    expect_workers(&s, 3);
    hello_message(&s, 1, -1, &m);
    text_copy(m.hello.fingerprint, sizeof m.hello.fingerprint, "cpu-b");
    s.conn[1] = s.conns++;
    hear(&s, 1, &m);
    cr_assert(said(&s, "'cpu-b', the job's is 'cpu-a'"));
    cr_assert(said(&s, "\"event\":\"workerRefused\""), "%s", str_text(&s.log));
    cr_assert(said(&s, "send 1 abandon"));
    cr_assert(said(&s, "close 1"));
    story_end(&s);
}

Test(rdzv, a_lower_attempt_is_told_to_abandon)
{
    struct story s;
    story_begin(&s, story_settings(1));
    s.attempt[0] = 1;
    train_with(&s, 1);
    s.attempt[0] = 0;
    int conn = s.conn[0];
    hello(&s, 0, -1);
    cr_assert(said(&s, "attempt 0 of worker 0 has been replaced by attempt 1"));
    s.conn[0] = conn;
    progress(&s, 0, 1);
    cr_assert(said(&s, "\"event\":\"step\""), "the right one trains on");
    story_end(&s);
}

/* ---- found by the simulator ---- */

Test(rdzv, a_successor_does_not_inherit_that_its_predecessor_left)
{
    struct story s;
    story_begin(&s, story_settings(2));
    train_with(&s, 3);
    leaving(&s, 2);
    for (int w = 0; w < 3; w++)
        stopped(&s, w, 1, 1);
    ready(&s, 0, 1);
    ready(&s, 1, 1);
    closed(&s, 2);
    expect_workers(&s, 3);
    s.attempt[2] = 1;
    expect_workers(&s, 7); /* a join takes the free index again */
    leaving(&s, 1);
    after(&s, 600 * RM_MS);
    stopped(&s, 0, 2, 2);
    stopped(&s, 1, 2, 2);
    checkpointed(&s, 0, 2, 0, 2, false);
    checkpointed(&s, 1, 2, 1, 2, false);
    published(&s, 0, 2, false);
    cr_assert_eq(s.ended, -1, "worker 2 is on its way: %s", str_text(&s.log));
    story_end(&s);
}

Test(rdzv, memory_counts_again_when_the_newer_checkpoint_is_damaged)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 1);
    progress(&s, 0, 9);
    checkpointed(&s, 0, 8, 0, 1, false);
    published(&s, 0, 8, false);
    s.trainer[0] = 200; /* all of its memory is of step 3 */
    fault_of(&s, 0, FAULT_TRAINER_EXIT, -1, -1);
    struct message m;
    hello_message(&s, 0, 3, &m);
    hear(&s, 0, &m);
    stopped(&s, 0, 3, 3);
    listed(&s, 0, 8, -1);
    cr_assert_eq(s.form.form.resume.step, 8, "a checkpoint is newer than that memory");
    load_fails(&s, 0, 8, CLASS_OBJECT);
    stopped(&s, 0, 3, 3);
    cr_assert_eq(s.form.form.resume.step, 3);
    cr_assert_eq(s.form.form.member[0].role, ROLE_KEEP);
    story_end(&s);
}

Test(rdzv, a_list_older_than_the_newest_checkpoint_rolls_nobody_back)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 1);
    progress(&s, 0, 9);
    checkpointed(&s, 0, 8, 0, 1, false);
    published(&s, 0, 8, false);
    fault_of(&s, 0, FAULT_RING, -1, 9);
    stopped(&s, 0, 7, 7); /* had been taken back to an older state */
    listed(&s, 0, 6, -1);
    cr_assert_eq(s.form.form.resume.step, 7);
    cr_assert_eq(s.form.form.member[0].role, ROLE_KEEP);
    story_end(&s);
}

Test(rdzv, a_publisher_that_comes_back_as_another_process_is_named_again)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 1);
    progress(&s, 0, 8);
    checkpointed(&s, 0, 8, 0, 1, false);
    cr_assert(said(&s, "publish"));
    closed(&s, 0);
    forget(&s);
    s.attempt[0] = 1;
    expect_workers(&s, 1);
    hello(&s, 0, -1);
    cr_assert(said(&s, "send 0 publish"));
    story_end(&s);
}

Test(rdzv, a_list_whose_answer_was_lost_with_the_connection_is_asked_for_again)
{
    struct story s;
    story_begin(&s, story_settings(2));
    expect_workers(&s, 3);
    first_come(&s, 2);
    listed(&s, 0, -1, -1);
    forget(&s);
    hello(&s, 1, -1); /* a new connection, before the end of the old one was seen */
    stopped(&s, 1, -1, -1);
    cr_assert(said(&s, "send 1 list"));
    story_end(&s);
}

Test(rdzv, a_newer_checkpoint_ends_the_saving_of_an_older_one)
{
    struct story s;
    story_begin(&s, story_settings(2));
    train_with(&s, 2);
    progress(&s, 0, 9);
    expect_workers(&s, 1);
    stopped(&s, 0, 7, 7);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING);
    checkpointed(&s, 0, 8, 0, 1, false); /* was under way */
    published(&s, 0, 8, false);
    cr_assert_eq(s.ended, 6);
    story_end(&s);
}

Test(rdzv, checkpoints_are_published_one_at_a_time_in_order)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 1);
    progress(&s, 0, 9);
    checkpointed(&s, 0, 3, 0, 1, false);
    forget(&s);
    checkpointed(&s, 0, 6, 0, 1, false);
    checkpointed(&s, 0, 9, 0, 1, false);
    cr_assert_not(said(&s, "publish"));
    published(&s, 0, 3, false);
    cr_assert_eq(s.publish.publish.step, 6);
    published(&s, 0, 6, false);
    cr_assert_eq(s.publish.publish.step, 9);
    story_end(&s);
}

Test(rdzv, a_publish_names_the_ring_that_saved_its_arithmetic_and_its_data)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 2);
    checkpointed(&s, 0, 3, 0, 2, false);
    checkpointed(&s, 1, 3, 1, 2, false);
    cr_assert_eq(s.publish.generation.term, 1);
    cr_assert_eq(s.publish.generation.n, s.generation);
    cr_assert_str_eq(s.publish.publish.fingerprint, "cpu-a");
    cr_assert_str_eq(s.publish.publish.data_sha256, "d");
    cr_assert_eq(s.publish.publish.data_files, 2);
    cr_assert_eq(s.publish.publish.data_bytes, 999);
    story_end(&s);
}

static void waited(struct story *s, int w, int64_t step, rm_time wait)
{
    struct message m;
    message_init(&m, MSG_PROGRESS);
    m.progress.step = step;
    m.progress.step_time = 10 * RM_MS;
    m.progress.data_wait = wait;
    hear(s, w, &m);
}

Test(rdzv, each_wait_for_data_is_counted_once)
{
    struct story s;
    struct str text = str_init(1 << 14);
    story_begin(&s, story_settings(1));
    train_with(&s, 2);
    waited(&s, 0, 1, 250 * RM_MS);
    waited(&s, 1, 1, 500 * RM_MS);
    waited(&s, 0, 2, 750 * RM_MS);
    waited(&s, 0, 1, 250 * RM_MS); /* told again after a reconnect */
    waited(&s, 0, 2, 750 * RM_MS);
    struct history *c = calloc(1, sizeof *c);
    struct exposition page = exposition_begin(&text, "ringmaster_", NULL);
    history_print_metrics(c, s.st, s.now, &page);
    free(c);
    cr_assert(strstr(str_text(&text), "ringmaster_data_wait_seconds_total 1.5\n"), "%s", str_text(&text));
    str_clear(&text);
    story_end(&s);
}

Test(rdzv, with_nobody_left_to_publish_the_run_ends)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 1);
    finished(&s, 0);
    checkpointed(&s, 0, 100, 0, 1, true);
    closed(&s, 0);
    expect_workers(&s, 0);
    cr_assert_eq(s.ended, 6);
    story_end(&s);
}

Test(rdzv, those_who_came_while_it_trained_go_on_when_the_last_holder_dies_while_saving)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 1);
    for (int i = 1; i <= 100; i++)
        progress(&s, 0, i);
    expect_workers(&s, 3);
    hello(&s, 1, -1);
    finished(&s, 0);
    expect_workers(&s, 2);
    stopped(&s, 1, -1, -1);
    listed(&s, 1, -1, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.member[0].worker, 1);
    story_end(&s);
}

Test(rdzv, a_final_checkpoint_that_stands_after_all_ends_the_run)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 1);
    for (int i = 1; i <= 100; i++)
        progress(&s, 0, i);
    finished(&s, 0);
    checkpointed(&s, 0, 100, 0, 1, true);
    s.trainer[0] = 0; /* its trainer is gone, its agent publishes on */
    fault_of(&s, 0, FAULT_TRAINER_EXIT, -1, -1);
    published(&s, 0, 100, true);
    cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
    story_end(&s);
}

Test(rdzv, commands_of_run_are_read_and_nonsense_is_refused)
{
    struct rdzv_event e;
    struct error err = {0};
    const char *expect = "{\"command\":\"expect\",\"workers\":[{\"worker\":3,\"attempt\":1}]}";
    const char *act = "{\"command\":\"act\",\"cause\":\"WorkerLost\",\"worker\":2,\"at\":77}";
    cr_assert_eq(rdzv_command_read(&e, expect, strlen(expect), &err), 0);
    cr_assert(e.kind == RDZV_EXPECT && e.expect.count == 1 && e.expect.worker[0].attempt == 1);
    cr_assert_eq(rdzv_command_read(&e, act, strlen(act), &err), 0);
    cr_assert(e.kind == RDZV_ACT && e.act.cause == CAUSE_WORKER_LOST && e.act.at == 77);
    cr_assert_eq(rdzv_command_read(&e, "{\"command\":\"dance\"}", 19, &err), -1);
    cr_assert(strstr(err.text, "'dance' is no command"));
    cr_assert_eq(rdzv_command_read(&e, "[]", 2, &err), -1);
}

Test(rdzv, the_table_has_no_way_out_of_an_end_and_none_around_forming)
{
    cr_assert(rdzv_may_move(RDZV_TRAINING, RDZV_QUIESCING));
    cr_assert_not(rdzv_may_move(RDZV_FINISHED, RDZV_GATHERING));
    cr_assert_not(rdzv_may_move(RDZV_FAILED, RDZV_GATHERING));
    cr_assert_not(rdzv_may_move(RDZV_GATHERING, RDZV_TRAINING));
    cr_assert_not(rdzv_may_move(RDZV_TRAINING, RDZV_FORMING));
}

Test(rdzv, the_protocols_page_shows_the_table_of_the_code)
{
    struct str table = str_init(1 << 16);
    static char page[1 << 17];
    FILE *f = fopen(PROTOCOL_PAGE, "r");
    cr_assert(f, "%s", PROTOCOL_PAGE);
    page[fread(page, 1, sizeof page - 1, f)] = 0;
    fclose(f);
    rdzv_print_states(&table);
    cr_assert(strstr(page, str_text(&table)), "docs/protocol.md should hold:\n%s", str_text(&table));
    str_reset(&table);
    fault_print_table(&table);
    cr_assert(strstr(page, str_text(&table)), "docs/protocol.md should hold:\n%s", str_text(&table));
    str_clear(&table);
}

Test(rdzv, without_a_time_after_which_a_silent_worker_is_lost_no_job_begins, .signal = SIGABRT)
{
    struct rdzv_settings settings = story_settings(1);
    settings.lost_after = 0;
    rdzv_open(&settings, 0);
}
