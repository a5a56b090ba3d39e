/* Trainers that do not do what they are told outside of a step, one story each. Heartbeats come every second,
 * a ring has 2 s to form, a step 2 s. All these were found by the simulator (docs/bugs.md). */
#include "tests/unit/coordinator/core/story.h"

static struct rdzv_settings impatient(int min)
{
    struct rdzv_settings settings = story_settings(min);
    settings.step_timeout = settings.form_timeout = 2 * RM_S;
    return settings;
}

/* So many seconds in which all of `workers` (a mask) tell that they live, and nothing else. */
static void live_on(struct story *s, unsigned workers, int seconds)
{
    struct message m;
    for (int i = 0; i < seconds; i++) {
        for (int w = 0; w < 8; w++) {
            message_init(&m, MSG_HEARTBEAT);
            m.heartbeat.waiting_for = -1;
            if (workers >> w & 1)
                hear(s, w, &m);
        }
        after(s, RM_S);
    }
}

/* Workers 0 and 1 train, worker 2 wants to join and is asked to. */
static void join_begins(struct story *s)
{
    train_with(s, 2);
    progress(s, 0, 1);
    expect_workers(s, 7);
    act_on(s, CAUSE_WORKER_JOINED, 2);
    hello(s, 2, -1);
    cr_assert_eq(rdzv_state(s->st), RDZV_QUIESCING, "%s", str_text(&s->log));
    forget(s);
}

Test(answer, who_stopped_at_the_boundary_is_not_blamed_for_a_newcomer_that_says_nothing)
{
    struct story s;
    struct rdzv_settings settings = impatient(1);
    settings.join_window = 60 * RM_S;
    story_begin(&s, settings);
    join_begins(&s);
    stopped(&s, 0, 2, 2);
    stopped(&s, 1, 2, 2);
    live_on(&s, 7, 5);
    cr_assert_not(said(&s, "send 0 fault"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "send 1 fault"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(answer, a_newcomer_that_says_nothing_is_waited_for_like_a_latecomer)
{
    struct story s;
    story_begin(&s, impatient(1));
    join_begins(&s);
    stopped(&s, 0, 2, 2);
    stopped(&s, 1, 2, 2);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "it has a moment");
    after(&s, 100 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    ready(&s, 0, 2);
    ready(&s, 1, 2);
    progress(&s, 0, 3);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "it does not ask to join as long as it owes an answer");
    story_end(&s);
}

Test(answer, a_newcomer_that_says_nothing_gets_another_trainer_and_joins_with_that)
{
    struct story s;
    story_begin(&s, impatient(1));
    join_begins(&s);
    for (int w = 0; w < 2; w++)
        stopped(&s, w, 2, 2);
    after(&s, 100 * RM_MS);
    for (int w = 0; w < 2; w++)
        ready(&s, w, 2);
    for (int i = 0; i < 6; i++) {
        progress(&s, 0, 3 + i);
        live_on(&s, 7, 1);
    }
    cr_assert(said(&s, "send 2 fault"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "workerLost"), "it was no member");
    fault_of(&s, 2, FAULT_TRAINER_EXIT, -1, -1);
    s.trainer[2]++;
    struct message m;
    hello_message(&s, 2, -1, &m);
    hear(&s, 2, &m);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(answer, a_trainer_that_says_nothing_while_workers_gather_is_killed)
{
    struct story s;
    story_begin(&s, impatient(2));
    expect_workers(&s, 3);
    hello(&s, 0, -1);
    hello(&s, 1, -1);
    stopped(&s, 0, -1, -1);
    live_on(&s, 3, 6);
    cr_assert(said(&s, "send 1 fault"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "send 0 fault"));
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING);
    story_end(&s);
}

/* Two of three have come, within a start of 4 s: worker 1 is told to stop, and has not answered. */
static void one_owes_its_answer(struct story *s, struct rdzv_settings settings)
{
    settings.start_timeout = 4 * RM_S;
    story_begin(s, settings);
    expect_workers(s, 3);
    hello(s, 0, -1);
    stopped(s, 0, -1, -1);
    hello(s, 1, -1);
}

Test(answer, one_that_hangs_shortly_before_the_start_is_over_is_killed_first_and_its_next_trainer_has_time)
{
    struct story s;
    one_owes_its_answer(&s, impatient(2));
    live_on(&s, 3, 5);
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "its answer may come yet: %s", str_text(&s.log));
    live_on(&s, 3, 1);
    cr_assert(said(&s, "send 1 fault"), "%s", str_text(&s.log));
    fault_of(&s, 1, FAULT_TRAINER_EXIT, -1, -1);
    live_on(&s, 3, 3);
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "another one starts: %s", str_text(&s.log));
    s.trainer[1]++;
    hello(&s, 1, -1);
    stopped(&s, 1, -1, -1);
    listed(&s, 0, -1, -1);
    listed(&s, 1, -1, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(answer, trainers_that_hang_one_after_the_other_end_a_start_as_well)
{
    struct story s;
    struct rdzv_settings settings = impatient(2);
    settings.max_restarts = 1000;
    one_owes_its_answer(&s, settings);
    for (int second = 0; second < 60 && s.ended < 0; second++) {
        live_on(&s, 3, 1);
        if (!said(&s, "send 1 fault"))
            continue;
        forget(&s);
        fault_of(&s, 1, FAULT_TRAINER_EXIT, -1, -1);
        s.trainer[1]++;
        hello(&s, 1, -1);
    }
    cr_assert_eq(s.ended, 6, "%s", rdzv_why(s.st));
    story_end(&s);
}

Test(answer, who_is_killed_while_workers_gather_and_does_not_come_again_ends_the_start_as_ever)
{
    struct story s;
    one_owes_its_answer(&s, impatient(2));
    live_on(&s, 3, 6);
    fault_of(&s, 1, FAULT_TRAINER_EXIT, -1, -1);
    live_on(&s, 3, 5);
    cr_assert_eq(rdzv_state(s.st), RDZV_FAILED, "%s", str_text(&s.log));
    story_end(&s);
}

Test(answer, a_member_that_does_not_stop_loses_its_trainer_and_keeps_its_memory)
{
    struct story s;
    story_begin(&s, impatient(1));
    train_with(&s, 2);
    fault_of(&s, 0, FAULT_RING, -1, -1);
    stopped(&s, 0, 0, -1);
    live_on(&s, 3, 6);
    cr_assert(said(&s, "send 1 fault"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "abandon"), "its agent holds the state for the next trainer");
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING);
    story_end(&s);
}

Test(answer, a_writer_that_hangs_is_killed_and_the_others_save)
{
    struct story s;
    story_begin(&s, impatient(3));
    train_with(&s, 3);
    progress(&s, 0, 9);
    expect_workers(&s, 3);
    stopped(&s, 0, 9, 9);
    stopped(&s, 1, 9, 9);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", str_text(&s.log));
    checkpointed(&s, 0, 9, 0, 2, false);
    forget(&s);
    live_on(&s, 3, 2);
    cr_assert(said(&s, "send 1 fault"), "%s", str_text(&s.log));
    cr_assert(said(&s, "send 0 save"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(answer, what_a_stranger_computes_with_is_not_learnt)
{
    struct story s;
    struct message m;
    story_begin(&s, impatient(1));
    expect_workers(&s, 1);
    s.conn[5] = s.conns++;
    hello_message(&s, 5, -1, &m);
    text_copy(m.hello.fingerprint, sizeof m.hello.fingerprint, "cpu-b");
    hear(&s, 5, &m);
    cr_assert(said(&s, "abandon"));
    forget(&s);
    hello(&s, 0, -1);
    cr_assert_not(said(&s, "abandon"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(answer, one_that_finished_and_then_hangs_is_found_when_it_has_to_stop)
{
    struct story s;
    story_begin(&s, impatient(1));
    train_with(&s, 2);
    finished(&s, 1);
    leaving(&s, 0);
    fault_of(&s, 1, FAULT_STORAGE, -1, 5); /* says something else meanwhile */
    live_on(&s, 3, 1);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "the others are about to finish, too");
    struct rdzv_event interrupt = {.kind = RDZV_INTERRUPT};
    play(&s, &interrupt);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    stopped(&s, 0, 100, 100);
    live_on(&s, 3, 1);
    cr_assert_not(said(&s, "fault"), "it has a moment: %s", str_text(&s.log));
    live_on(&s, 3, 4);
    cr_assert(said(&s, "send 1 fault"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "send 0 fault"));
    story_end(&s);
}

Test(answer, a_silent_worker_outside_of_the_ring_is_told_as_lost_so_that_run_gives_it_up)
{
    struct story s;
    story_begin(&s, impatient(1));
    train_with(&s, 1);
    for (int i = 1; i < 100; i++)
        progress(&s, 0, i);
    expect_workers(&s, 3);
    hello(&s, 1, -1);
    for (int i = 0; i < 6; i++) {
        progress(&s, 0, 99);
        live_on(&s, 1, 1);
    }
    cr_assert(said(&s, "\"event\":\"workerLost\",\"time\":0,\"worker\":1"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(answer, nobody_left_to_publish_is_waited_for_no_longer_than_a_start_may_take)
{
    struct story s;
    story_begin(&s, impatient(2));
    train_with(&s, 2);
    progress(&s, 0, 9);
    expect_workers(&s, 1);
    stopped(&s, 0, 9, 9);
    checkpointed(&s, 0, 9, 0, 1, false);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING);
    s.attempt[0] = 1;
    expect_workers(&s, 1);
    after(&s, 59 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", str_text(&s.log));
    after(&s, 2 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "%s", str_text(&s.log));
    after(&s, 60 * RM_S);
    cr_assert_eq(s.ended, 6);
    story_end(&s);
}

Test(answer, the_coordinators_own_pause_is_nobodys_silence_and_nobodys_hang)
{
    struct story s;
    story_begin(&s, impatient(1));
    train_with(&s, 3);
    progress(&s, 0, 1);
    live_on(&s, 7, 1);
    sleep_through(&s, 60 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    cr_assert_not(said(&s, "workerLost"), "%s", str_text(&s.log));
    after(&s, 6 * RM_S);
    cr_assert(said(&s, "workerLost"), "from now on silence counts again");
    story_end(&s);
}

/* However long it stood still, from half of lostAfter on to twice that. */
Test(answer, a_pause_that_ends_as_somebodys_time_is_over_is_nobodys_silence)
{
    for (rm_time pause = 2500 * RM_MS; pause < 10 * RM_S; pause += 250 * RM_MS) {
        struct story s;
        story_begin(&s, story_settings(1));
        train_with(&s, 3);
        live_on(&s, 7, 1);
        sleep_through(&s, pause);
        cr_assert_not(said(&s, "workerLost"), "%.2f s: %s", (double)pause / RM_S, str_text(&s.log));
        live_on(&s, 3, 6);
        cr_assert(said(&s, "\"workerLost\",\"time\":0,\"worker\":2"), "%.2f s: %s", (double)pause / RM_S,
                  str_text(&s.log));
        cr_assert_not(said(&s, "\"workerLost\",\"time\":0,\"worker\":0"), "%s", str_text(&s.log));
        story_end(&s);
    }
}

/* What it owes comes while nobody reads, and behind another's word; less than a heartbeat after it was due.
 */
Test(answer, an_answer_that_lies_unread_behind_another_word_is_one)
{
    struct story s;
    story_begin(&s, impatient(1));
    train_with(&s, 2);
    fault_of(&s, 0, FAULT_RING, -1, -1);
    stopped(&s, 0, 0, -1);
    live_on(&s, 3, 3);
    s.now += 3500 * RM_MS;
    fault_of(&s, 0, FAULT_RING, -1, -1);
    cr_assert_not(said(&s, "send 1 fault"), "%s", str_text(&s.log));
    stopped(&s, 1, 0, -1);
    cr_assert_not(said(&s, "send 1 fault"), "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(answer, nobody_goes_back_far_before_one_that_holds_more_has_answered)
{
    struct story s;
    story_begin(&s, impatient(1));
    train_with(&s, 2);
    for (int i = 1; i < 10; i++)
        progress(&s, 1, i);
    fault_of(&s, 1, FAULT_TRAINER_EXIT, -1, -1);
    struct message m;
    s.trainer[1]++;
    hello_message(&s, 1, 9, &m);
    hear(&s, 1, &m);
    stopped(&s, 0, 0, -1);
    after(&s, RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "%s", str_text(&s.log));
    stopped(&s, 1, 9, 9);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.resume.step, 9);
    story_end(&s);
}

/* Word of a ring that came to nothing arrives when the next one trains: its steps were counted as lost then.
 */
Test(answer, steps_that_came_to_nothing_are_counted_as_redone_once)
{
    struct story s;
    struct message old;
    story_begin(&s, impatient(1));
    train_with(&s, 2);
    progress(&s, 0, 1);
    message_init(&old, MSG_PROGRESS);
    old.generation = (struct msg_generation){1, 77};
    old.progress.step = 8;
    hear(&s, 0, &old);
    fault_of(&s, 1, FAULT_TRAINER_EXIT, -1, -1);
    stopped(&s, 0, 1, 1);
    ready(&s, 0, 1);
    progress(&s, 0, 2);
    cr_assert(said(&s, "recovered"), "%s", str_text(&s.log));
    cr_assert_eq(s.recovery.steps_redone, 0, "%s", str_text(&s.log));
    story_end(&s);
}

/* A newcomer with nothing and worker 1, whose trainer is another one and has not answered yet; its memory
 * holds step 9. */
static void newcomer_and_holder(struct story *s)
{
    struct message m;
    story_begin(s, impatient(1));
    train_with(s, 2);
    for (int i = 1; i < 10; i++)
        progress(s, 1, i);
    fault_of(s, 1, FAULT_TRAINER_EXIT, -1, -1);
    s->trainer[1]++;
    hello_message(s, 1, 9, &m);
    hear(s, 1, &m);
    closed(s, 0);
    s->attempt[0]++;
    hello(s, 0, -1);
    stopped(s, 0, -1, -1);
    listed(s, 0, -1, -1);
    cr_assert_eq(rdzv_state(s->st), RDZV_GATHERING, "%s", str_text(&s->log));
    forget(s);
}

Test(answer, who_leaves_hands_over_what_it_alone_holds_although_it_has_not_answered_yet)
{
    struct story s;
    newcomer_and_holder(&s);
    leaving(&s, 1);
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "%s", str_text(&s.log));
    cr_assert_not(said(&s, "release"), "%s", str_text(&s.log));
    stopped(&s, 1, 9, 9);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.resume.step, 9);
    cr_assert_eq(s.form.form.count, 1, "who leaves is no member");
    cr_assert_not(said(&s, "release"), "%s", str_text(&s.log));
    ready(&s, 0, 9);
    cr_assert(said(&s, "send 1 release"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(answer, who_leaves_and_has_not_answered_saves_what_it_alone_holds_where_too_few_stay)
{
    struct story s;
    struct message m;
    story_begin(&s, impatient(2));
    train_with(&s, 2);
    for (int i = 1; i < 10; i++)
        progress(&s, 1, i);
    fault_of(&s, 1, FAULT_TRAINER_EXIT, -1, -1);
    s.trainer[1]++;
    hello_message(&s, 1, 9, &m);
    hear(&s, 1, &m);
    closed(&s, 0);
    expect_workers(&s, 2);
    leaving(&s, 1);
    live_on(&s, 2, 1);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    stopped(&s, 1, 9, 9);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(answer, who_leaves_and_never_answers_is_waited_for_no_longer_than_a_start_may_take)
{
    struct story s;
    newcomer_and_holder(&s);
    leaving(&s, 1);
    live_on(&s, 3, 61);
    cr_assert_eq(s.form.form.resume.step, 0, "%s", str_text(&s.log));
    cr_assert(said(&s, "send 1 release"), "%s", str_text(&s.log));
    story_end(&s);
}

/* The ring has begun without what it held: those steps were counted as lost then. */
Test(answer, steps_of_one_that_answers_when_others_have_begun_without_it_are_counted_as_redone_once)
{
    struct story s;
    newcomer_and_holder(&s);
    live_on(&s, 3, 61);
    cr_assert_eq(s.form.form.resume.step, 0, "%s", str_text(&s.log));
    stopped(&s, 1, 9, 9);
    ready(&s, 0, 0);
    progress(&s, 0, 1);
    cr_assert_eq(s.recovery.steps_redone, 9, "%s", str_text(&s.log));
    fault_of(&s, 0, FAULT_TRAINER_EXIT, -1, -1);
    s.trainer[0]++;
    struct message m;
    hello_message(&s, 0, 1, &m);
    hear(&s, 0, &m);
    stopped(&s, 0, 1, 1);
    stopped(&s, 1, -1, -1);
    ready(&s, 0, 1);
    ready(&s, 1, 1);
    progress(&s, 0, 2);
    cr_assert_eq(s.recovery.steps_redone, 0, "%s", str_text(&s.log));
    story_end(&s);
}

/* With fast sums, whose histories differ: worker 0 has come to the end, with weights of 07... */
static void finish_first(struct story *s)
{
    struct rdzv_settings settings = impatient(1);
    settings.exact = false;
    story_begin(s, settings);
    train_with(s, 2);
    for (int i = 1; i <= 100; i++)
        progress(s, 0, i);
    finished(s, 0);
}

static void finish_with_others(struct story *s, int w)
{
    struct message m;
    message_init(&m, MSG_FINISHED);
    m.finished.step = 100;
    m.finished.digest[0] = 9;
    hear(s, w, &m);
}

Test(answer, complete_names_the_weights_that_were_published_and_not_those_of_another_history)
{
    struct story s;
    finish_first(&s);
    finished(&s, 1);
    checkpointed(&s, 0, 100, 0, 2, true);
    checkpointed(&s, 1, 100, 1, 2, true);
    cr_assert(said(&s, "publish"), "%s", str_text(&s.log));
    finish_with_others(&s, 1);
    published(&s, 0, 100, true);
    cr_assert(said(&s, "\"weightsSha256\":\"07"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(answer, a_piece_that_comes_late_is_of_the_weights_that_its_writer_finished_with)
{
    struct story s;
    finish_first(&s);
    finish_with_others(&s, 1);
    checkpointed(&s, 0, 100, 0, 1, true);
    published(&s, 0, 100, true);
    cr_assert(said(&s, "\"weightsSha256\":\"07"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Workers 0 and 1 are to load that step. */
static void load_begins(struct story *s, int64_t step)
{
    expect_workers(s, 3);
    first_come(s, 2);
    for (int w = 0; w < 2; w++)
        listed(s, w, step, -1);
    cr_assert_eq(rdzv_state(s->st), RDZV_FORMING, "%s", str_text(&s->log));
}

Test(answer, a_load_that_fails_after_its_ring_was_given_up_refuses_the_checkpoint_all_the_same)
{
    struct story s;
    story_begin(&s, impatient(2));
    load_begins(&s, 20);
    fault_of(&s, 1, FAULT_TRAINER_EXIT, -1, -1);
    load_fails(&s, 0, 20, CLASS_OBJECT);
    load_fails(&s, 1, 20, CLASS_OBJECT);
    cr_assert(said(&s, "checkpointRefused"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "can't be written"), "%s", str_text(&s.log));
    load_fails(&s, 1, 20, CLASS_OBJECT);
    cr_assert_not(said(&s, "can't be written"), "%s", str_text(&s.log));
    story_end(&s);
}

static void stop_at_another_history_of_8(struct story *s)
{
    struct message m;
    fault_of(s, 0, FAULT_NOT_FINITE, -1, 9);
    message_init(&m, MSG_STOPPED);
    m.stopped.round = s->round;
    m.stopped.state = state_of(8);
    m.stopped.state.lineage[1] = 1;
    m.stopped.update_step = 8;
    m.stopped.trainer_pid = s->trainer[0];
    hear(s, 0, &m);
}

static void save_step_8_of_a_fast_job(struct story *s)
{
    struct rdzv_settings settings = impatient(1);
    settings.exact = false;
    story_begin(s, settings);
    train_with(s, 1);
    progress(s, 0, 8);
    checkpointed(s, 0, 8, 0, 1, false);
}

Test(answer, a_step_of_which_another_history_is_saved_is_not_saved_again)
{
    struct story s;
    save_step_8_of_a_fast_job(&s);
    published(&s, 0, 8, false);
    stop_at_another_history_of_8(&s);
    cr_assert_eq(s.ended, 5, "%s", str_text(&s.log));
    story_end(&s);
}

Test(answer, a_step_of_which_another_history_is_saved_meanwhile_is_waited_for_no_longer)
{
    struct story s;
    save_step_8_of_a_fast_job(&s);
    stop_at_another_history_of_8(&s);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", str_text(&s.log));
    published(&s, 0, 8, false);
    cr_assert_eq(s.ended, 5, "%s", str_text(&s.log));
    story_end(&s);
}

Test(answer, who_counts_on_is_given_the_time_to_fill_its_memory_before_it_stops)
{
    struct story s;
    story_begin(&s, impatient(2));
    expect_workers(&s, 3);
    hello(&s, 0, -1);
    hello(&s, 1, -1);
    stopped(&s, 0, -1, -1);
    for (int i = 0; i < 12; i++) {
        struct message m;
        message_init(&m, MSG_HEARTBEAT);
        m.heartbeat.waiting_for = -1;
        m.heartbeat.counter = 5 + i;
        hear(&s, 1, &m);
        live_on(&s, 1, 1);
    }
    cr_assert_not(said(&s, "fault"), "%s", str_text(&s.log));
    live_on(&s, 3, 7);
    cr_assert(said(&s, "send 1 fault"), "%s", str_text(&s.log));
    story_end(&s);
}

/* A predecessor's last word arrives, of a checkpoint that turns out to be damaged. */
Test(answer, a_final_checkpoint_that_does_not_load_is_no_end)
{
    struct story s;
    story_begin(&s, impatient(2));
    load_begins(&s, 100);
    checkpointed(&s, 0, 100, 0, 1, true);
    published(&s, 0, 100, true);
    for (int w = 0; w < 2; w++)
        load_fails(&s, w, 100, CLASS_OBJECT);
    for (int w = 0; w < 2; w++)
        stopped(&s, w, -1, -1);
    for (int w = 0; w < 2; w++)
        listed(&s, w, 100, 20);
    for (int w = 0; w < 2; w++)
        ready(&s, w, 20);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    for (int w = 0; w < 2; w++)
        finished(&s, w);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", str_text(&s.log));
    story_end(&s);
}

/* Found by waiting for it: formTimeout until the ring was given up, and three more until it was found. */
Test(answer, how_long_a_trainer_stood_still_while_the_ring_formed_is_not_granted_once_more)
{
    struct story s;
    struct rdzv_settings settings = story_settings(1);
    story_begin(&s, settings);
    expect_workers(&s, 3);
    for (int w = 0; w < 2; w++)
        hello(&s, w, -1);
    for (int w = 0; w < 2; w++)
        stopped(&s, w, -1, -1);
    for (int w = 0; w < 2; w++)
        listed(&s, w, -1, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    rm_time began = s.now;
    for (int64_t beat = 1; beat < 100 && !said(&s, "send 1 fault"); beat++) {
        for (int w = 0; w < 2; w++) {
            struct message m;
            message_init(&m, MSG_HEARTBEAT);
            m.heartbeat.counter = w ? 0 : beat;
            m.heartbeat.waiting_for = w ? -1 : 1;
            hear(&s, w, &m);
        }
        if (beat == 1)
            ready(&s, 0, 0);
        if (rdzv_state(s.st) == RDZV_QUIESCING)
            stopped(&s, 0, 0, -1);
        after(&s, RM_S);
    }
    cr_assert(said(&s, "send 1 fault"), "%s", str_text(&s.log));
    cr_assert_geq(s.now - began, 3 * settings.form_timeout - 2 * RM_S,
                  "a machine that is busy otherwise gets its time");
    cr_assert_leq(s.now - began, 3 * settings.form_timeout + 2 * RM_S, "%.1f s",
                  (double)(s.now - began) / RM_S);
    cr_assert_not(said(&s, "send 0 fault"));
    story_end(&s);
}
