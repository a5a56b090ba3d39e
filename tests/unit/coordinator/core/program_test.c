/* Workers that run a user's program: no steps, nothing to save, one failure a generation. */
#include <stdio.h>

#include "program_story.h"

Test(program, it_is_complete_when_all_have_ended_with_0_and_nothing_is_saved)
{
    struct story s;
    begin(&s, program(2), 3);
    finished(&s, 0);
    finished(&s, 1);
    cr_assert_eq(s.ended, -1);
    finished(&s, 2);
    cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
    cr_assert(said(&s, "\"event\":\"complete\"") && said(&s, "\"exitCode\":0"));
    cr_assert_not(said(&s, "weightsSha256") || said(&s, "save") || said(&s, "\"event\":\"step\""));
    story_end(&s);
}

Test(program, the_first_ring_waits_longer_for_who_imports_and_later_ones_do_not)
{
    struct story s;
    struct rdzv_settings settings = program(2);
    settings.first_window = 30 * RM_S;
    story_begin(&s, settings);
    expect_workers(&s, 7);
    for (int w = 0; w < 2; w++) {
        hello(&s, w, 0);
        answers(&s, w);
    }
    after(&s, 3 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "%s", str_text(&s.log));
    hello(&s, 2, 0);
    answers(&s, 2);
    all_run(&s, 3);
    fails(&s, 1);
    expect_workers(&s, 15);
    for (int w = 0; w < 3; w++)
        answers(&s, w);
    after(&s, 150 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "worker 3 is late: %s", str_text(&s.log));
    story_end(&s);
}

Test(program, the_first_failure_of_a_generation_counts_and_those_that_follow_do_not)
{
    struct story s;
    begin(&s, program(1), 3);
    for (int round = 0; round < 2; round++) {
        cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
        fails(&s, 1);
        cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING);
        fails(&s, 0);
        fails(&s, 2);
        for (int w = 0; w < 3; w++)
            answers(&s, w);
        if (round == 0)
            all_run(&s, 3);
    }
    cr_assert_eq(s.ended, 5, "%s", str_text(&s.log));
    cr_assert(said(&s, "2 failures within 3600 s") && said(&s, "worker 1: exit code 3"));
    story_end(&s);
}

static void ends_with(struct story *s, int w, int code, bool memory)
{
    struct msg_fault f = {.kind = FAULT_PROGRAM, .exit_code = code, .memory = memory};
    snprintf(f.detail, sizeof f.detail, "exit code %d", code);
    fault_says(s, w, &f);
    for (int i = 0; i < 3; i++)
        answers(s, i);
}

/* One failure more than maxRestarts allows, with a rule for that code: what ends the job, -1 nothing. */
static int after_a_failure(enum rdzv_rule rule, int code, bool memory, const char *sentence)
{
    struct story s;
    struct rdzv_settings settings = program(0);
    settings.rule[42] = (uint8_t)rule;
    settings.rule[137] = (uint8_t)rule;
    begin(&s, settings, 3);
    ends_with(&s, 1, code, memory);
    int ended = s.ended;
    cr_assert(said(&s, sentence), "%s", str_text(&s.log));
    cr_assert_eq(ended >= 0, said(&s, "\"exitCode\":5,\"programExitCode\":"), "%s", str_text(&s.log));
    story_end(&s);
    return ended;
}

Test(program, a_rule_says_what_an_exit_code_means_but_spares_nobody_who_was_short_of_memory)
{
    static const struct {
        enum rdzv_rule rule;
        int code;
        bool memory;
        int ended;
        const char *sentence;
    } cases[] = {
        {RULE_COUNTS, 42, false, 5, "1 failures within 3600 s"},
        {RULE_FAILS_JOB, 42, false, 5, "worker 1: exit code 42; failurePolicy.rules end the job"},
        {RULE_FAILS_JOB, 43, false, 5, "1 failures within 3600 s"},
        {RULE_SPARES, 42, false, -1, "form g=1.2"},
        {RULE_SPARES, 43, false, 5, "1 failures within 3600 s"},
        {RULE_SPARES, 137, false, -1, "form g=1.2"},
        {RULE_SPARES, 137, true, 5, "1 failures within 3600 s"},
        {RULE_FAILS_JOB, 137, true, 5, "failurePolicy.rules end the job"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_eq(after_a_failure(cases[i].rule, cases[i].code, cases[i].memory, cases[i].sentence),
                     cases[i].ended, "case %zu", i);
}

Test(program, a_rule_ends_the_job_at_the_first_failure_whatever_is_allowed)
{
    struct story s;
    struct rdzv_settings settings = program(1000);
    settings.rule[42] = RULE_FAILS_JOB;
    begin(&s, settings, 3);
    ends_with(&s, 2, 42, false);
    cr_assert_eq(s.ended, 5, "%s", str_text(&s.log));
    cr_assert(said(&s, "\"programExitCode\":42"), "%s", str_text(&s.log));
    story_end(&s);
}

static void leaves_within(struct story *s, int w, rm_time deadline)
{
    struct message m;
    message_init(&m, MSG_LEAVING);
    text_copy(m.leaving.reason, sizeof m.leaving.reason, "SIGTERM");
    m.leaving.deadline = deadline;
    hear(s, w, &m);
}

Test(program, an_announced_stop_says_what_time_is_left_less_what_is_needed_to_say_that_all_ended)
{
    struct story s;
    begin(&s, program(0), 3);
    leaves_within(&s, 2, 25 * RM_S);
    cr_assert(said(&s, "at=boundary within=24.0s"), "%s", str_text(&s.log));
    forget(&s);
    leaves_within(&s, 0, 10 * RM_S);
    cr_assert(said(&s, "send 0,1,2 stop") && said(&s, "at=boundary within=9.0s"), "%s", str_text(&s.log));
    forget(&s);
    closed(&s, 1);
    cr_assert_not(said(&s, "within=1.0s"), "it may come back: %s", str_text(&s.log));
    after(&s, 60 * RM_S);
    cr_assert(said(&s, "at=now within=1.0s"), "who is left waits in a collective: %s", str_text(&s.log));
    story_end(&s);
}

Test(program, a_time_that_is_over_when_the_stop_is_told_kills_nobody_at_once)
{
    struct story s;
    begin(&s, program(0), 3);
    leaves_within(&s, 2, RM_S);
    after(&s, 3 * RM_S);
    forget(&s);
    leaves_within(&s, 0, 25 * RM_S);
    cr_assert(said(&s, "at=boundary within=1.0s"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(program, who_does_not_know_its_time_has_the_jobs)
{
    struct story s;
    stops_for_a_leave(&s, program(0));
    cr_assert(said(&s, "at=boundary\n") && !said(&s, "within="), "%s", str_text(&s.log));
    story_end(&s);
}

Test(program, a_sudden_loss_leaves_a_second)
{
    struct story s;
    begin(&s, program(0), 3);
    expect_workers(&s, 3);
    cr_assert(said(&s, "at=now within=1.0s"), "%s", str_text(&s.log));
    story_end(&s);
}

/* A successor's beginning: what three workers say who were in a ring of the term before. */
static void take_over_from(struct story *s, struct rdzv_settings settings, int64_t begun)
{
    settings.term = 2;
    settings.predecessor =
        (struct rdzv_predecessor){.given = true, .told = -1, .evaluated = -1, .saved = -1, .begun = 1};
    story_begin(s, settings);
    expect_workers(s, 7);
    s->generation = 4;
    for (int w = 0; w < 3; w++) {
        struct message m;
        hello_message(s, w, 0, &m);
        m.hello.ring = (struct msg_generation){1, 4};
        m.hello.phase = PHASE_TRAINING;
        m.hello.begun = begun;
        m.hello.members_count = 3;
        for (int i = 0; i < 3; i++)
            m.hello.member[i] = i;
        s->conn[w] = s->conns++;
        hear(s, w, &m);
    }
    cr_assert_eq(rdzv_state(s->st), RDZV_TRAINING, "%s", str_text(&s->log));
}

Test(program, a_stop_that_a_predecessor_announced_is_not_cut_short_by_its_successor)
{
    struct story s;
    struct message m;
    take_over_from(&s, program(0), 4);
    forget(&s);
    message_init(&m, MSG_STOPPED);
    m.stopped.round = 3; /* the predecessor's */
    m.stopped.state = state_of(0);
    m.stopped.update_step = -1;
    hear(&s, 1, &m);
    cr_assert(said(&s, "at=now\n") && !said(&s, "within="), "%s", str_text(&s.log));
    story_end(&s);
}

Test(program, generations_are_counted_over_the_terms)
{
    struct story s;
    take_over_from(&s, program(5), 4);
    ends_with(&s, 0, 3, false);
    cr_assert_eq(s.form.form.begun, 4);
    for (int w = 0; w < 3; w++) {
        struct message m;
        message_init(&m, MSG_READY);
        m.generation = s.form.generation;
        m.ready.state = state_of(0);
        m.ready.trainer_pid = s.trainer[w];
        hear(&s, w, &m);
    }
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    fault_says(&s, 0,
               &(struct msg_fault){.kind = FAULT_PROGRAM, .exit_code = 3, .detail = "of the older one"});
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    expect_workers(&s, 3);
    for (int w = 0; w < 2; w++)
        answers(&s, w);
    cr_assert_eq(s.form.form.begun, 5);
    story_end(&s);
}

Test(program, a_job_has_begun_where_a_predecessor_may_have_and_nobody_knows)
{
    struct story s;
    struct rdzv_settings settings = program(0);
    settings.term = 3;
    settings.predecessor =
        (struct rdzv_predecessor){.given = true, .told = -1, .evaluated = -1, .saved = -1, .begun = 1};
    story_begin(&s, settings);
    expect_workers(&s, 3);
    for (int w = 0; w < 2; w++)
        hello(&s, w, 0);
    for (int w = 0; w < 2; w++)
        answers(&s, w);
    cr_assert(said(&s, "form g=3.1") && s.form.form.begun == 1, "%s", str_text(&s.log));
    story_end(&s);
}

Test(program, the_first_generation_of_a_job_is_number_0)
{
    struct story s;
    begin(&s, program(0), 3);
    cr_assert_eq(s.form.form.begun, 0);
    story_end(&s);
}

/* Its agent counts a generation from `ready` on, as `go` may be under way; none was. */
Test(program, a_first_generation_that_came_to_nothing_before_it_was_told_to_go_counts_for_nothing)
{
    struct story s;
    struct message m;
    story_begin(&s, program(0));
    expect_workers(&s, 3);
    for (int w = 0; w < 2; w++) {
        hello(&s, w, 0);
        answers(&s, w);
    }
    ready(&s, 0, 0);
    closed(&s, 0);
    hello_message(&s, 0, 0, &m);
    m.hello.ring = s.form.generation;
    m.hello.phase = PHASE_READY;
    m.hello.begun = 1;
    s.conn[0] = s.conns++;
    hear(&s, 0, &m);
    for (int w = 0; w < 2; w++)
        answers(&s, w);
    cr_assert(said(&s, "form g=1.2"), "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.begun, 0);
    story_end(&s);
}

/* It may never have been told to who is gone, and its counts are lost with it. */
Test(program, a_failure_that_a_successor_hears_of_counts)
{
    struct story s;
    struct rdzv_settings settings = program(0);
    settings.term = 2;
    settings.predecessor =
        (struct rdzv_predecessor){.given = true, .told = -1, .evaluated = -1, .saved = -1, .begun = 1};
    story_begin(&s, settings);
    expect_workers(&s, 3);
    s.generation = 4;
    for (int w = 0; w < 2; w++) {
        struct message m;
        hello_message(&s, w, 0, &m);
        m.hello.ring = (struct msg_generation){1, 4};
        m.hello.phase = PHASE_TRAINING;
        m.hello.members_count = 2;
        m.hello.member[1] = 1;
        s.conn[w] = s.conns++;
        hear(&s, w, &m);
        if (w == 0)
            fails(&s, 0);
    }
    cr_assert(said(&s, "at=now within=1.0s"), "%s", str_text(&s.log));
    answers(&s, 0);
    answers(&s, 1);
    cr_assert_eq(s.ended, 5, "%s", str_text(&s.log));
    story_end(&s);
}

Test(program, a_failure_beside_the_loss_of_a_worker_is_nobodys)
{
    struct story s;
    begin(&s, program(0), 3);
    fails(&s, 0); /* its neighbour's machine has gone, and it says so first */
    answers(&s, 0);
    answers(&s, 1);
    closed(&s, 2);
    expect_workers(&s, 3);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    all_run(&s, 2);
    story_end(&s);
}

Test(program, a_failure_beside_the_end_of_a_launcher_is_nobodys)
{
    struct story s;
    begin(&s, program(0), 3);
    act_on(&s, CAUSE_TRAINER_EXIT, 1); /* a drill's: no failure either */
    fails(&s, 0);
    fault_of(&s, 1, FAULT_TRAINER_EXIT, -1, -1);
    answers(&s, 0);
    answers(&s, 2);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    cr_assert_not(said(&s, "failurePolicy"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(program, what_was_told_to_go_does_not_fail)
{
    struct story s;
    stops_for_a_leave(&s, program(0));
    fails(&s, 1);
    for (int w = 0; w < 3; w++)
        answers(&s, w);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    story_end(&s);
}

Test(program, all_that_finished_while_a_stop_was_on_its_way_have_finished)
{
    struct story s;
    stops_for_a_leave(&s, program(2));
    for (int w = 0; w < 3; w++)
        finished(&s, w);
    cr_assert_gt(rdzv_deadline(s.st), s.now, "there is nothing to do but to wait for their answers");
    for (int w = 0; w < 3; w++)
        answers(&s, w);
    cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
    story_end(&s);
}

Test(program, who_is_told_to_leave_goes_also_when_others_are_done)
{
    struct story s;
    begin(&s, program(2), 3);
    finished(&s, 0);
    leaving(&s, 2);
    after(&s, RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    for (int w = 0; w < 3; w++)
        answers(&s, w);
    all_run(&s, 2);
    cr_assert(said(&s, "send 2 release"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(program, nobody_is_taken_in_once_one_is_done)
{
    struct story s;
    begin(&s, program(2), 2);
    finished(&s, 0);
    act_on(&s, CAUSE_WORKER_JOINED, 2);
    expect_workers(&s, 7);
    hello(&s, 2, 0);
    after(&s, 10 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(program, an_hour_without_a_step_is_no_hang_whatever_the_timeout_and_the_heartbeat)
{
    struct story s;
    struct rdzv_settings settings = program(2);
    settings.step_timeout = RM_S;
    settings.heartbeat = 20 * RM_S;
    settings.lost_after = 50 * RM_S;
    begin(&s, settings, 2);
    for (int64_t counter = 1; counter < 200; counter++) {
        after(&s, 39 * RM_S); /* by two clocks */
        beats(&s, 2, counter, PHASE_TRAINING);
    }
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    cr_assert_not(said(&s, "hang"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(program, any_number_of_changes_of_members_ends_nothing)
{
    struct story s;
    begin(&s, program(2), 3);
    for (int i = 0; i < 100; i++) {
        struct message m;
        message_init(&m, MSG_FAULT);
        m.fault.kind = FAULT_RING;
        m.fault.peer = -1;
        hear(&s, i % 3, &m);
        for (int w = 0; w < 3; w++)
            answers(&s, w);
        after(&s, 40 * RM_S * (rdzv_state(s.st) != RDZV_FORMING));
        all_run(&s, 3);
    }
    cr_assert_eq(s.ended, -1);
    story_end(&s);
}

Test(program, who_can_not_be_ended_is_named)
{
    struct story s;
    stops_for_a_leave(&s, program(2));
    answers(&s, 0);
    answers(&s, 2);
    forget(&s);
    for (int64_t counter = 1; counter < 40; counter++) {
        beats(&s, 3, counter, PHASE_STOPPED);
        after(&s, RM_S);
    }
    cr_assert(said(&s, "worker 1: the processes of its program have not ended yet"), "%s", str_text(&s.log));
    story_end(&s);
}

/* ---- what the program says of its progress ---- */

static void reports_with(struct story *s, int w, struct msg_reported said)
{
    struct message m;
    message_init(&m, MSG_REPORTED);
    m.generation = s->form.generation;
    m.reported = said;
    hear(s, w, &m);
}

static void reports(struct story *s, int w, int64_t step, rm_time still)
{
    reports_with(
        s, w,
        (struct msg_reported){.step = step, .steps = 100, .loss = 2.5, .loss_known = true, .still = still});
}

Test(program, its_progress_is_told_once_for_each_step_and_is_that_of_the_lowest_rank)
{
    struct story s;
    begin(&s, program(2), 3);
    reports(&s, 1, 3, 0);
    cr_assert(said(&s, "\"event\":\"progress\"") && said(&s, "\"step\":3,\"steps\":100,\"loss\":2.5"), "%s",
              str_text(&s.log));
    forget(&s);
    reports(&s, 1, 3, RM_S);
    reports(&s, 2, 9, 0);
    cr_assert_not(said(&s, "progress"), "%s", str_text(&s.log));
    reports(&s, 0, 2, 0);
    reports(&s, 1, 4, 0);
    cr_assert(said(&s, "\"step\":2") && !said(&s, "\"step\":4"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(program, a_loss_that_is_not_known_and_steps_that_are_not_said_are_not_there)
{
    struct story s;
    begin(&s, program(2), 3);
    reports_with(&s, 0, (struct msg_reported){.step = 3});
    cr_assert(said(&s, "\"step\":3,\"loss\":null") && !said(&s, "\"steps\""), "%s", str_text(&s.log));
    story_end(&s);
}

static struct rdzv_settings impatient(rm_time step_timeout)
{
    struct rdzv_settings s = program(1);
    s.step_timeout = step_timeout;
    s.rule[0] = RULE_SPARES;
    return s;
}

Test(program, whose_report_stands_still_hangs_and_that_is_one_failure_that_no_rule_spares)
{
    struct story s;
    begin(&s, impatient(10 * RM_S), 3);
    for (int round = 0; round < 2; round++) {
        cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
        reports(&s, 0, 40, 9 * RM_S);
        cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
        reports(&s, 0, 40, 10 * RM_S);
        cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING);
        cr_assert(said(&s, "at=now within=1.0s"), "%s", str_text(&s.log));
        cr_assert(said(&s, "it hangs: it reported step 40 of 100 10.0 s ago, and no other since"), "%s",
                  str_text(&s.log));
        reports(&s, 0, 40, 11 * RM_S); /* it is on its way out */
        for (int w = 0; w < 3; w++)
            answers(&s, w);
        if (round == 0)
            all_run(&s, 3);
    }
    cr_assert_eq(s.ended, 5, "%s", str_text(&s.log));
    cr_assert_not(said(&s, "programExitCode"), "it has none: %s", str_text(&s.log));
    story_end(&s);
}

/* The one that reports waits in a collective for the one that was stopped. The next hang is nobody's order.
 */
Test(program, a_hang_that_was_ordered_is_no_failure_whoever_stops_to_report)
{
    struct story s;
    struct rdzv_settings settings = impatient(10 * RM_S);
    settings.max_restarts = 0;
    begin(&s, settings, 3);
    reports(&s, 0, 40, RM_S);
    act_on(&s, CAUSE_HANG, 2);
    reports(&s, 0, 40, 10 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING);
    for (int w = 0; w < 3; w++)
        answers(&s, w);
    all_run(&s, 3);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    reports(&s, 0, 40, 10 * RM_S);
    for (int w = 0; w < 3; w++)
        answers(&s, w);
    cr_assert_eq(s.ended, 5, "%s", str_text(&s.log));
    story_end(&s);
}

Test(program, a_hang_is_none_where_nothing_was_reported_in_this_generation)
{
    struct story s;
    begin(&s, impatient(10 * RM_S), 3);
    reports(&s, 0, 40, 0);
    fails(&s, 1);
    for (int w = 0; w < 3; w++)
        answers(&s, w);
    struct msg_generation older = s.form.generation;
    older.n--;
    all_run(&s, 3);
    struct message m;
    message_init(&m, MSG_REPORTED);
    m.generation = older;
    m.reported = (struct msg_reported){.step = 40, .still = 3600 * RM_S};
    hear(&s, 0, &m);
    for (int64_t counter = 1; counter < 600; counter++) {
        beats(&s, 3, counter, PHASE_TRAINING);
        after(&s, RM_S);
    }
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    reports(&s, 0, 12, 0);
    cr_assert(said(&s, "\"step\":12"), "it goes on from an older checkpoint");
    story_end(&s);
}

/* Auto: whether it hangs after so long, with reports that came each so often before. */
static bool hangs_by_itself(int moves, rm_time each, rm_time still)
{
    struct story s;
    begin(&s, impatient(0), 3);
    for (int i = 0; i <= moves; i++) {
        reports(&s, 0, i, 0);
        beats(&s, 3, i + 1, PHASE_TRAINING);
        s.now += each;
    }
    reports(&s, 0, moves, still);
    bool hangs = rdzv_state(s.st) == RDZV_QUIESCING;
    story_end(&s);
    return hangs;
}

Test(program, of_itself_it_hangs_after_ten_times_what_lies_between_its_reports_and_five_minutes_at_least)
{
    cr_assert_not(hangs_by_itself(2, RM_S, 3600 * RM_S), "nobody knows its pace yet");
    cr_assert_not(hangs_by_itself(3, RM_S, 299 * RM_S), "it may evaluate");
    cr_assert(hangs_by_itself(3, RM_S, 300 * RM_S));
    cr_assert_not(hangs_by_itself(5, 60 * RM_S, 599 * RM_S), "it reports once a minute");
    cr_assert(hangs_by_itself(5, 60 * RM_S, 600 * RM_S));
}

static rm_time age(const struct story *s)
{
    struct rdzv_goodput g = rdzv_goodput(s->st, s->now);
    return g.productive + g.checkpoint + g.recovery + g.waiting + g.rework;
}

/* Time that came to nothing with a sudden loss, of a generation that ran for 30 s. */
static rm_time rework_of(bool announced, rm_time reported_ago)
{
    struct story s;
    begin(&s, program(2), 3);
    rm_time before = age(&s);
    for (int64_t counter = 1; counter <= 30; counter++) {
        after(&s, RM_S);
        beats(&s, 3, counter, PHASE_TRAINING);
    }
    if (reported_ago >= 0)
        reports(&s, 0, 40, reported_ago);
    if (announced)
        leaving(&s, 2);
    else
        fails(&s, 1);
    rm_time rework = rdzv_goodput(s.st, s.now).rework;
    cr_assert_eq(age(&s) - before, 30 * RM_S, "%s", str_text(&s.log));
    story_end(&s);
    return rework;
}

Test(program, what_it_did_since_its_last_report_is_rework_where_the_loss_is_sudden)
{
    cr_assert_eq(rework_of(false, 12 * RM_S), 12 * RM_S);
    cr_assert_eq(rework_of(false, -1), 30 * RM_S, "it reported nothing: all of it");
    cr_assert_eq(rework_of(false, 3600 * RM_S), 30 * RM_S, "no more than it ran");
    cr_assert_eq(rework_of(true, 12 * RM_S), 0);
}

Test(program, a_failure_says_whose_it_is_and_what_was_said_last)
{
    struct story s;
    begin(&s, program(2), 3);
    fault_says(&s, 1,
               &(struct msg_fault){.kind = FAULT_PROGRAM,
                                   .exit_code = 3,
                                   .rank = 5,
                                   .detail = "rank 5: exit code 3: it broke",
                                   .output = "Traceback:\n it broke\x1b[31m"});
    cr_assert(said(&s, "\"rank\":5,\"programExitCode\":3,\"reason\":\"rank 5: exit code 3: it broke\""), "%s",
              str_text(&s.log));
    cr_assert(said(&s, "\"output\":\"Traceback:\\n it broke\\u001B[31m\""), "%s", str_text(&s.log));
    story_end(&s);
}

/* ---- snapshots of its processes ---- */

static void tells_of_snapshot(struct story *s, struct msg_frozen what)
{
    struct message m;
    message_init(&m, MSG_FROZEN);
    m.generation = s->form.generation;
    m.frozen = what;
    hear(s, 0, &m);
}

Test(program, what_became_of_a_snapshot_is_told_and_the_time_for_it_is_not_productive)
{
    struct story s;
    begin(&s, program(2), 3);
    for (int64_t counter = 1; counter <= 10; counter++) {
        beats(&s, 3, counter, PHASE_TRAINING);
        after(&s, RM_S);
    }
    rm_time ran = rdzv_goodput(s.st, s.now).productive;
    tells_of_snapshot(
        &s, (struct msg_frozen){
                .word = FROZEN_SAVED, .number = 4, .bytes = 77, .frozen = 2 * RM_S, .took = 3 * RM_S});
    cr_assert(said(&s, "\"event\":\"checkpointSaved\"") && said(&s, "process-00000004") &&
                  said(&s, "\"frozenMs\":2000.0"),
              "%s", str_text(&s.log));
    struct rdzv_goodput g = rdzv_goodput(s.st, s.now);
    cr_assert(g.productive == ran - 2 * RM_S && g.checkpoint == 2 * RM_S);
    struct msg_frozen not_made = {.word = FROZEN_NOT_SAVED, .frozen = RM_S, .why = "there is no room"};
    tells_of_snapshot(&s, not_made);
    cr_assert(said(&s, "\"event\":\"checkpointSkipped\"") && said(&s, "there is no room"), "%s",
              str_text(&s.log));
    tells_of_snapshot(&s, (struct msg_frozen){.word = FROZEN_NOT_SAVED, .frozen = RM_S});
    cr_assert_eq(times_said(&s, "checkpointSkipped"), 1, "it is as it should be");
    rm_time waited = rdzv_goodput(s.st, s.now).waiting;
    tells_of_snapshot(&s, (struct msg_frozen){.word = FROZEN_HELD, .frozen = RM_S});
    tells_of_snapshot(&s, (struct msg_frozen){.word = FROZEN_RESTORED, .number = 4});
    cr_assert(said(&s, "\"event\":\"checkpointLoaded\""), "%s", str_text(&s.log));
    g = rdzv_goodput(s.st, s.now);
    cr_assert(g.waiting == waited + RM_S && g.checkpoint == 4 * RM_S && g.productive == ran - 5 * RM_S);
    tells_of_snapshot(&s, (struct msg_frozen){.word = FROZEN_HELD, .frozen = MSG_NUMBER_MOST});
    cr_assert_eq(rdzv_goodput(s.st, s.now).productive, 0, "no more than there was");
    story_end(&s);
}

Test(program, time_stood_still_by_who_was_given_up_meanwhile_is_counted_once)
{
    struct story s;
    begin(&s, program(2), 3);
    for (int64_t counter = 1; counter <= 5; counter++) {
        beats(&s, 3, counter, PHASE_TRAINING);
        after(&s, RM_S);
    }
    for (int w = 0; w < 3; w++)
        reports(&s, w, 3, 0);
    fails(&s, 1);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING);
    struct rdzv_goodput before = rdzv_goodput(s.st, s.now);
    tells_of_snapshot(&s, (struct msg_frozen){.word = FROZEN_HELD, .frozen = RM_S});
    struct rdzv_goodput g = rdzv_goodput(s.st, s.now);
    cr_assert_gt(before.productive, RM_S);
    cr_assert(g.productive == before.productive && g.waiting == before.waiting);
    story_end(&s);
}

Test(program, each_heartbeat_has_an_answer_where_silence_makes_the_program_stand_still)
{
    for (int answers_it = 0; answers_it < 2; answers_it++) {
        struct story s;
        struct rdzv_settings settings = program(2);
        settings.alone = answers_it;
        begin(&s, settings, 3);
        int before = times_said(&s, "ack");
        beats(&s, 3, 7, PHASE_TRAINING);
        cr_assert_eq(times_said(&s, "ack") - before, answers_it ? 3 : 0);
        story_end(&s);
    }
}
