/* A program's processes that outlive their ring: of who is cut off, of a launcher that is killed, or as they
 * take their time; and what is heard of their failures too late. */
#include <stdio.h>

#include "program_story.h"

static void hello_of_ring(struct story *s, int w, enum msg_phase phase, struct msg_generation ring,
                          unsigned members)
{
    struct message m;
    hello_message(s, w, 0, &m);
    m.hello.ring = ring;
    m.hello.phase = phase;
    for (int i = 0; i < 3; i++)
        if (members & 1u << i)
            m.hello.member[m.hello.members_count++] = i;
    s->conn[w] = s->conns++;
    hear(s, w, &m);
}

/* A worker that was cut off says hello, and its processes of that generation run, with those of `members`. */
static void comes_back(struct story *s, int w, struct msg_generation ring, unsigned members)
{
    hello_of_ring(s, w, PHASE_TRAINING, ring, members);
}

/* Longer than any newcomer is waited for. */
static void a_while(struct story *s)
{
    for (int64_t counter = 1; counter < 5; counter++) {
        beats(s, 3, counter, PHASE_TRAINING);
        after(s, RM_S);
    }
}

/* For lostAfter nobody hears of who is away, and that may be why the others wait. */
static void lost_after(struct story *s)
{
    a_while(s);
    cr_assert_neq(rdzv_state(s->st), RDZV_FORMING, "%s", str_text(&s->log));
    a_while(s);
}

/* Worker 2 is cut off while all three run, and the others' processes are told to stop. */
static void one_is_cut_off(struct story *s)
{
    begin(s, program(2), 3);
    closed(s, 2);
    fails(s, 0);
    cr_assert_eq(rdzv_state(s->st), RDZV_QUIESCING, "%s", str_text(&s->log));
}

/* All who are here have answered but worker 2, whose processes live; then it answers, too. */
static void waits_for_2_to_answer(struct story *s)
{
    a_while(s);
    cr_assert_not(said(s, " go "), "%s", str_text(&s->log));
    cr_assert_gt(rdzv_deadline(s->st), s->now);
    answers(s, 2);
}

static void waits_for_worker_2(struct story *s)
{
    waits_for_2_to_answer(s);
    all_run(s, 3);
}

Test(program_away, nobody_starts_beside_processes_of_one_that_comes_back_while_the_others_stop)
{
    struct story s;
    one_is_cut_off(&s);
    comes_back(&s, 2, (struct msg_generation){1, 1}, 7);
    cr_assert(said(&s, "send 2 stop g=1.1"), "%s", str_text(&s.log));
    answers(&s, 0);
    answers(&s, 1);
    waits_for_worker_2(&s);
    story_end(&s);
}

Test(program_away, nobody_starts_beside_processes_of_one_that_comes_back_while_others_gather)
{
    struct story s;
    struct rdzv_settings settings = program(2);
    settings.workers_min = 2;
    begin(&s, settings, 3);
    closed(&s, 1);
    closed(&s, 2);
    fails(&s, 0);
    answers(&s, 0);
    lost_after(&s);
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "%s", str_text(&s.log));
    comes_back(&s, 2, (struct msg_generation){1, 1}, 7);
    hello(&s, 1, 0);
    answers(&s, 1);
    waits_for_worker_2(&s);
    story_end(&s);
}

Test(program_away, nobody_starts_beside_processes_of_one_that_comes_back_while_the_next_ring_forms)
{
    struct story s;
    one_is_cut_off(&s);
    answers(&s, 0);
    answers(&s, 1);
    lost_after(&s);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    ready(&s, 0, 0);
    comes_back(&s, 2, (struct msg_generation){1, 1}, 7);
    ready(&s, 1, 0);
    answers(&s, 0);
    answers(&s, 1);
    waits_for_worker_2(&s);
    story_end(&s);
}

Test(program_away, what_lives_on_where_one_was_cut_off_is_ended_when_it_comes_back)
{
    struct story s;
    one_is_cut_off(&s);
    answers(&s, 0);
    answers(&s, 1);
    lost_after(&s);
    all_run(&s, 2);
    finished(&s, 0); /* so nobody is taken in any more */
    forget(&s);
    comes_back(&s, 2, (struct msg_generation){1, 1}, 7);
    cr_assert(said(&s, "send 2 stop g=1.2"), "%s", str_text(&s.log));
    answers(&s, 2);
    a_while(&s);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "the ring goes on: %s", str_text(&s.log));
    story_end(&s);
}

static void succeed_with(struct story *s, struct rdzv_settings settings)
{
    settings.term = 2;
    settings.unsupervised = true;
    settings.predecessor =
        (struct rdzv_predecessor){.given = true, .told = -1, .evaluated = -1, .saved = -1, .begun = 1};
    story_begin(s, settings);
}

static void succeed(struct story *s)
{
    succeed_with(s, program(2));
}

Test(program_away, an_older_ring_that_a_successor_went_on_with_stops_when_a_newer_one_comes_back)
{
    struct story s;
    succeed(&s);
    comes_back(&s, 2, (struct msg_generation){1, 2}, 4); /* cut off since, as a ring of one */
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    finished(&s, 2);
    comes_back(&s, 0, (struct msg_generation){1, 4}, 3);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    comes_back(&s, 1, (struct msg_generation){1, 4}, 3);
    answers(&s, 1);
    answers(&s, 2);
    forget(&s);
    a_while(&s);
    cr_assert_not(said(&s, " form "), "worker 0's processes live: %s", str_text(&s.log));
    answers(&s, 0);
    cr_assert(said(&s, "send 0,1,2 form g=2.1"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(program_away, what_lives_on_beside_the_ring_that_a_successor_goes_on_with_is_ended)
{
    struct story s;
    succeed(&s);
    comes_back(&s, 0, (struct msg_generation){1, 4}, 3);
    comes_back(&s, 2, (struct msg_generation){1, 2}, 4);
    comes_back(&s, 1, (struct msg_generation){1, 4}, 3);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    cr_assert(said(&s, "send 2 stop") && !said(&s, "send 0,1 stop"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Its predecessor died before it told that ring to go. */
Test(program_away, a_successor_lets_no_ring_go_beside_processes_of_another_generation)
{
    struct story s;
    succeed(&s);
    hello_of_ring(&s, 0, PHASE_READY, (struct msg_generation){1, 4}, 3);
    comes_back(&s, 2, (struct msg_generation){1, 2}, 4);
    hello_of_ring(&s, 1, PHASE_READY, (struct msg_generation){1, 4}, 3);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    answers(&s, 0);
    answers(&s, 1);
    waits_for_2_to_answer(&s);
    cr_assert(said(&s, "send 0,1,2 form g=2.1"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(program_away, what_ended_with_its_launcher_holds_nobody_up)
{
    struct story s;
    one_is_cut_off(&s);
    comes_back(&s, 2, (struct msg_generation){1, 1}, 7);
    fault_of(&s, 2, FAULT_TRAINER_EXIT, -1, -1);
    answers(&s, 0);
    answers(&s, 1);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    story_end(&s);
}

/* Its machine may be reached again, with the processes on it: when its connection ended, a ring ran, or
 * stopped, or it had just come back to be stopped. */
Test(program_away, who_is_cut_off_as_the_others_stop_is_waited_for_until_it_is_lost)
{
    for (int when = 0; when < 3; when++) {
        struct story s;
        begin(&s, program(2), 3);
        if (when == 1)
            fails(&s, 0);
        closed(&s, 2);
        if (when != 1)
            fails(&s, 0);
        if (when == 2) {
            comes_back(&s, 2, (struct msg_generation){1, 1}, 7);
            closed(&s, 2);
        }
        answers(&s, 0);
        answers(&s, 1);
        lost_after(&s);
        cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "case %d: %s", when, str_text(&s.log));
        cr_assert(said(&s, "did not come back"), "%s", str_text(&s.log));
        story_end(&s);
    }
}

Test(program_away, who_is_cut_off_as_the_others_stop_and_comes_back_in_time_stops_with_them)
{
    struct story s;
    one_is_cut_off(&s);
    answers(&s, 0);
    answers(&s, 1);
    after(&s, 4 * RM_S);
    cr_assert_not(said(&s, " form "), "%s", str_text(&s.log));
    comes_back(&s, 2, (struct msg_generation){1, 1}, 7);
    waits_for_worker_2(&s);
    cr_assert_not(said(&s, "workerLost"), "%s", str_text(&s.log));
    story_end(&s);
}

/* It was out of its ring already, and its processes of an older one were about to be stopped. */
Test(program_away, who_was_given_up_and_is_cut_off_while_its_processes_are_stopped_is_waited_for)
{
    struct story s;
    one_is_cut_off(&s);
    answers(&s, 0);
    answers(&s, 1);
    lost_after(&s);
    comes_back(&s, 2, (struct msg_generation){1, 1}, 7);
    closed(&s, 2);
    answers(&s, 0);
    answers(&s, 1);
    lost_after(&s);
    cr_assert(said(&s, "form g=1.3"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(program_away, a_successor_waits_for_one_that_is_cut_off_as_it_takes_over)
{
    struct story s;
    succeed(&s);
    comes_back(&s, 0, (struct msg_generation){1, 4}, 7);
    comes_back(&s, 2, (struct msg_generation){1, 4}, 7);
    for (int i = 0; i < 4 * 3; i++) { /* as long as survivors are waited for, less a second */
        beats(&s, 1, i + 1, PHASE_TRAINING);
        beats_of(&s, 2, i + 1, PHASE_TRAINING);
        after(&s, RM_S / 3);
    }
    closed(&s, 2);
    beats(&s, 1, 100, PHASE_TRAINING);
    after(&s, 2 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    answers(&s, 0);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    a_while(&s);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    cr_assert(said(&s, "did not come back"), "%s", str_text(&s.log));
    story_end(&s);
}

/* A process in a call that holds it, or a gracePeriod that is longer than anybody is given to answer. */
Test(program_away, a_launcher_that_beats_is_given_the_time_its_program_needs)
{
    struct story s;
    begin(&s, program(2), 3);
    fails(&s, 0);
    answers(&s, 0);
    answers(&s, 2);
    for (int64_t counter = 1; counter < 200; counter++) {
        beats(&s, 3, counter, PHASE_STOPPED);
        after(&s, RM_S);
    }
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    cr_assert_not(said(&s, "hang") || said(&s, "workerLost"), "%s", str_text(&s.log));
    answers(&s, 1);
    cr_assert(said(&s, "send 0,1,2 form"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Its agent beats in its place, and the counter stands. */
static void stands_still(struct story *s, int w, rm_time t)
{
    for (rm_time end = s->now + t; s->now < end; after(s, RM_S)) {
        beats_of(s, w, 1, PHASE_TRAINING);
        for (int other = 0; other < 3; other++)
            if (other != w)
                beats_of(s, other, 100 + s->now / RM_S, PHASE_STOPPED);
    }
}

Test(program_away, a_launcher_that_stands_still_when_it_is_to_stop_is_killed_and_what_it_left_is_awaited)
{
    struct story s;
    begin(&s, program(2), 3);
    fails(&s, 0);
    answers(&s, 0);
    answers(&s, 2);
    stands_still(&s, 1, 29 * RM_S);
    cr_assert_not(said(&s, "hang"), "%s", str_text(&s.log));
    stands_still(&s, 1, 3 * RM_S);
    cr_assert(said(&s, "send 1 fault") && said(&s, "kind=hang"), "%s", str_text(&s.log));
    stands_still(&s, 1, 100 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    cr_assert(said(&s, "worker 1: the processes of its program have not ended yet"), "%s", str_text(&s.log));
    fault_of(&s, 1, FAULT_TRAINER_EXIT, -1, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(program_away, what_a_launcher_left_that_hung_in_its_ring_is_awaited)
{
    struct story s;
    begin(&s, program(2), 3);
    stands_still(&s, 1, 40 * RM_S);
    cr_assert(said(&s, "kind=hang"), "%s", str_text(&s.log));
    answers(&s, 0);
    answers(&s, 2);
    stands_still(&s, 1, 60 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    fault_of(&s, 1, FAULT_TRAINER_EXIT, -1, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    story_end(&s);
}

/* It was cut off, its processes are gone, and its agent says after `hello` how they went, so long ago. */
static void says_late(struct story *s, int w, int code, rm_time ago)
{
    struct msg_fault f = {.kind = FAULT_PROGRAM, .exit_code = code, .lasted = ago};
    snprintf(f.detail, sizeof f.detail, "exit code %d", code);
    hello_of_ring(s, w, PHASE_IDLE, (struct msg_generation){1, 1}, 7);
    fault_says(s, w, &f);
}

Test(program_away, a_failure_that_a_cut_connection_kept_back_counts)
{
    struct story s;
    struct rdzv_settings settings = program(50);
    settings.rule[42] = RULE_FAILS_JOB;
    begin(&s, settings, 3);
    closed(&s, 1);
    after(&s, 2 * RM_S);
    says_late(&s, 1, 42, RM_S);
    cr_assert(said(&s, "programFailed") && said(&s, "at=now within=1.0s"), "%s", str_text(&s.log));
    for (int w = 0; w < 3; w++)
        answers(&s, w);
    cr_assert_eq(s.ended, 5, "%s", str_text(&s.log));
    cr_assert(said(&s, "worker 1: exit code 42; failurePolicy.rules end the job"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(program_away, a_failure_of_a_worker_alone_that_a_cut_connection_kept_back_counts)
{
    struct story s;
    begin(&s, program(0), 1);
    closed(&s, 0);
    after(&s, 2 * RM_S);
    says_late(&s, 0, 3, RM_S);
    answers(&s, 0);
    cr_assert_eq(s.ended, 5, "%s", str_text(&s.log));
    story_end(&s);
}

/* Its connection broke before its agent knew that the word had arrived. */
Test(program_away, a_failure_that_is_said_again_counts_once)
{
    struct story s;
    begin(&s, program(1), 3);
    fails(&s, 1);
    closed(&s, 1);
    after(&s, RM_S);
    says_late(&s, 1, 3, RM_S + RM_MS);
    for (int w = 0; w < 3; w++)
        answers(&s, w);
    says_late(&s, 1, 3, RM_S + RM_MS);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    cr_assert_eq(times_said(&s, "programFailed"), 1, "%s", str_text(&s.log));
    story_end(&s);
}

Test(program_away, of_two_failures_the_first_speaks_though_it_is_heard_last)
{
    struct story s;
    struct rdzv_settings settings = program(50);
    settings.rule[42] = RULE_FAILS_JOB;
    begin(&s, settings, 3);
    closed(&s, 1);
    after(&s, 2 * RM_S);
    fails(&s, 0); /* as its neighbour was gone */
    answers(&s, 0);
    answers(&s, 2);
    after(&s, RM_S);
    says_late(&s, 1, 42, 2 * RM_S);
    answers(&s, 1);
    cr_assert_eq(s.ended, 5, "%s", str_text(&s.log));
    cr_assert(said(&s, "\"programExitCode\":42"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(program_away, what_failed_after_the_others_were_told_to_go_does_not_count_however_late_it_is_heard)
{
    for (int before = 0; before < 2; before++) {
        struct story s;
        begin(&s, program(0), 3);
        closed(&s, 1);
        after(&s, 2 * RM_S);
        leaving(&s, 2);
        after(&s, RM_S);
        cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
        after(&s, RM_S);
        says_late(&s, 1, 3, before ? 3 * RM_S : RM_S);
        for (int w = 0; w < 3; w++)
            answers(&s, w);
        cr_assert_eq(s.ended, before ? 5 : -1, "%s", str_text(&s.log));
        story_end(&s);
    }
}

Test(program_away, a_member_that_comes_back_to_its_ring_runs_on)
{
    struct story s;
    begin(&s, program(2), 3);
    closed(&s, 2);
    comes_back(&s, 2, (struct msg_generation){1, 1}, 7);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    cr_assert_not(said(&s, " stop "), "%s", str_text(&s.log));
    story_end(&s);
}

Test(program_away, a_ring_of_which_one_waits_to_be_told_to_go_goes_on_under_a_successor)
{
    struct story s;
    succeed(&s);
    comes_back(&s, 0, (struct msg_generation){1, 4}, 3);
    hello_of_ring(&s, 1, PHASE_READY, (struct msg_generation){1, 4}, 3);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    cr_assert(said(&s, "send 0,1 go g=1.4"), "%s", str_text(&s.log));
    story_end(&s);
}

static void fails_in(struct story *s, int w, int64_t n, int code)
{
    struct message m;
    message_init(&m, MSG_FAULT);
    m.generation = (struct msg_generation){1, n};
    m.fault = (struct msg_fault){
        .kind = FAULT_PROGRAM, .exit_code = code, .peer = -1, .step = -1, .rank = -1, .detail = "it broke"};
    hear(s, w, &m);
}

/* Worker 2, which was cut off in an older ring, comes to a successor first, and its program fails there. */
static void an_older_ring_fails_first(struct story *s, int code)
{
    comes_back(s, 2, (struct msg_generation){1, 2}, 7);
    cr_assert_eq(rdzv_state(s->st), RDZV_RECOVERING, "%s", str_text(&s->log));
    fails_in(s, 2, 2, code);
    after(s, RM_S);
    comes_back(s, 0, (struct msg_generation){1, 4}, 3);
    comes_back(s, 1, (struct msg_generation){1, 4}, 3);
    cr_assert_eq(rdzv_state(s->st), RDZV_TRAINING, "%s", str_text(&s->log));
}

Test(program_away, a_failure_of_an_older_ring_hides_none_of_the_ring_that_a_successor_goes_on_with)
{
    struct story s;
    succeed(&s);
    an_older_ring_fails_first(&s, 42);
    after(&s, RM_S);
    fails_in(&s, 0, 4, 3);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(program_away, a_failure_of_an_older_ring_ends_no_job_that_a_successor_goes_on_with)
{
    struct story s;
    struct rdzv_settings settings = program(50);
    settings.rule[42] = RULE_FAILS_JOB;
    succeed_with(&s, settings);
    an_older_ring_fails_first(&s, 42);
    leaving(&s, 1);
    after(&s, RM_S);
    for (int w = 0; w < 3; w++)
        answers(&s, w);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    story_end(&s);
}

/* Its connection breaks behind that word, its agent says hello of a ring that runs, and the others come. */
Test(program_away, a_failure_that_a_successor_heard_is_told_once_though_its_worker_comes_back)
{
    struct story s;
    succeed(&s);
    comes_back(&s, 0, (struct msg_generation){1, 4}, 3);
    fails_in(&s, 0, 4, 3);
    comes_back(&s, 0, (struct msg_generation){1, 4}, 3);
    comes_back(&s, 1, (struct msg_generation){1, 4}, 3);
    fails_in(&s, 0, 4, 3);
    lost_after(&s);
    cr_assert_eq(times_said(&s, "programFailed"), 1, "%s", str_text(&s.log));
    cr_assert(said(&s, "at=now within=1.0s"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, " go "), "%s", str_text(&s.log));
    story_end(&s);
}

static struct rdzv_settings frozen(void)
{
    struct rdzv_settings settings = program(2);
    settings.alone = settings.unsupervised = true;
    settings.workers_target = settings.workers_max = settings.lanes = 1;
    return settings;
}

/* Worker 0 runs, and another process takes its place and has nothing to end. */
static void is_replaced(struct story *s, const struct rdzv_settings *settings)
{
    story_begin(s, *settings);
    hello(s, 0, 0);
    answers(s, 0);
    all_run(s, 1);
    s->attempt[0]++;
    hello(s, 0, 0);
    answers(s, 0);
}

/* The word that it is replaced may not reach it. Where snapshots are made of a program it runs once. */
Test(program_away, who_takes_a_place_begins_when_the_one_before_has_to_have_stopped)
{
    struct story s;
    struct rdzv_settings settings = frozen();
    rm_time half = settings.lost_after / 2;
    is_replaced(&s, &settings);
    after(&s, half);
    beats_of(&s, 0, 1, PHASE_STOPPED);
    after(&s, settings.lost_after - half - RM_MS);
    cr_assert_neq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    after(&s, 2 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    story_end(&s);
    settings.alone = false;
    is_replaced(&s, &settings);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    story_end(&s);
}

/* Its coordinator's predecessor knew the next one, and may have answered it until now. */
Test(program_away, who_was_given_up_is_not_let_in_by_a_coordinator_that_never_saw_who_came_then)
{
    struct story s;
    struct rdzv_settings settings = frozen();
    settings.attempt_least = 2;
    story_begin(&s, settings);
    s.attempt[0] = 1;
    hello(&s, 0, 0);
    cr_assert(said(&s, "attempt 1 of worker 0 has been replaced by attempt 2"), "%s", str_text(&s.log));
    s.attempt[0] = 2;
    hello(&s, 0, 0);
    answers(&s, 0);
    all_run(&s, 1);
    story_end(&s);
}
