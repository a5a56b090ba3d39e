/* Mode Elastic: programs beside trainers that fail, one story each. maxRestarts is 2; 42 ends the job, 7 and
 * 137 do not count. */
#include <stdio.h>

#include "common/base/exit_code.h"
#include "tests/unit/coordinator/core/story.h"

static struct rdzv_settings settings_of(int max_restarts)
{
    struct rdzv_settings s = story_settings(1);
    s.brought = true;
    s.max_restarts = max_restarts;
    s.rule[42] = RULE_FAILS_JOB;
    s.rule[7] = s.rule[137] = RULE_SPARES;
    return s;
}

/* Its program has ended, and its trainer with it; another pair comes up. */
static void program_fails(struct story *s, int w, int code, bool memory)
{
    struct message m;
    struct msg_fault failed = {
        .kind = FAULT_PROGRAM, .exit_code = code, .memory = memory, .output = "a\nb\n"};
    fault_says(s, w, &failed);
    fault_of(s, w, FAULT_TRAINER_EXIT, -1, -1);
    if (s->ended >= 0)
        return;
    s->trainer[w] += 1000;
    hello_message(s, w, -1, &m);
    hear(s, w, &m);
}

Test(beside, a_failure_is_told_once_with_code_and_output_and_counts)
{
    struct story s;
    struct msg_fault failed = {.kind = FAULT_PROGRAM, .exit_code = 3};
    story_begin(&s, settings_of(0));
    train_with(&s, 3);
    fault_says(&s, 1, &failed);
    cr_assert(said(&s, "\"event\":\"programFailed\",\"time\":0,\"worker\":1,\"programExitCode\":3"), "%s",
              str_text(&s.log));
    forget(&s);
    fault_says(&s, 1, &failed); /* on another connection */
    cr_assert(!said(&s, "programFailed"));
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "the trainer's end is what stops the ring");
    fault_of(&s, 1, FAULT_TRAINER_EXIT, -1, -1);
    cr_assert(said(&s, "workerFailed") && said(&s, "workerQuarantined"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(beside, what_a_rule_spares_does_not_count)
{
    struct story s;
    story_begin(&s, settings_of(0));
    train_with(&s, 3);
    for (int i = 0; i < 3; i++)
        program_fails(&s, 1, 7, false);
    cr_assert(!said(&s, "workerFailed") && !said(&s, "uarantine"), "%s", str_text(&s.log));
    fault_of(&s, 1, FAULT_TRAINER_EXIT, -1, -1);
    cr_assert(said(&s, "workerFailed"), "a trainer that ends by itself has no code of the program's: %s",
              str_text(&s.log));
    story_end(&s);
}

Test(beside, who_is_killed_for_memory_counts_whatever_the_rules_say)
{
    struct story s;
    story_begin(&s, settings_of(0));
    train_with(&s, 3);
    program_fails(&s, 1, 137, false);
    cr_assert(!said(&s, "workerFailed"), "%s", str_text(&s.log));
    program_fails(&s, 2, 137, true);
    cr_assert(said(&s, "workerFailed"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(beside, a_rule_ends_the_job_with_the_programs_code)
{
    struct story s;
    story_begin(&s, settings_of(2));
    train_with(&s, 3);
    program_fails(&s, 1, 42, false);
    stopped(&s, 0, 0, 0);
    stopped(&s, 2, 0, 0);
    cr_assert_eq(s.ended, EXIT_TRAINING, "%s", str_text(&s.log));
    cr_assert(said(&s, "failurePolicy.rules end the job at that exit code"), "%s", str_text(&s.log));
    cr_assert(said(&s, "\"programExitCode\":42"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(beside, a_trainer_that_came_up_since_ends_for_a_reason_of_its_own)
{
    struct story s;
    struct message m;
    struct msg_fault failed = {.kind = FAULT_PROGRAM, .exit_code = 7};
    story_begin(&s, settings_of(0));
    train_with(&s, 3);
    fault_says(&s, 1, &failed); /* and the word of the trainer's end was lost */
    s.trainer[1] += 1000;
    hello_message(&s, 1, -1, &m);
    hear(&s, 1, &m);
    fault_of(&s, 1, FAULT_TRAINER_EXIT, -1, -1);
    cr_assert(said(&s, "workerFailed"), "%s", str_text(&s.log));
    story_end(&s);
}

/* As its agent says it after `hello`: program and trainer have ended, so long ago, and another pair is up. */
static void failed_unheard(struct story *s, int w, int code, rm_time ago)
{
    struct msg_fault f = {
        .kind = FAULT_PROGRAM, .exit_code = code, .trainer = 1, .over = true, .lasted = ago, .output = "a\n"};
    snprintf(f.detail, sizeof f.detail, "exit code %d", code);
    fault_says(s, w, &f);
}

static void comes_back_with_another_pair(struct story *s, int w)
{
    closed(s, w);
    s->trainer[w] += 1000;
    hello(s, w, -1);
}

static struct rdzv_settings successor(int max_restarts)
{
    struct rdzv_settings settings = settings_of(max_restarts);
    settings.term = 2;
    settings.predecessor = (struct rdzv_predecessor){
        .given = true, .told = 7, .evaluated = -1, .saved = -1, .lost_at = RM_S / 2};
    return settings;
}

/* Of ring 1.5 with three members; of worker 1 a pair that came up since says hello last. */
static void three_follow(struct story *s, struct rdzv_settings settings)
{
    struct message m;
    story_begin(s, settings);
    expect_workers(s, 7);
    for (int i = 0; i < 3; i++) {
        int w = 2 * i % 3;
        hello_message(s, w, w == 1 ? -1 : 7, &m);
        m.hello.ring = (struct msg_generation){1, 5};
        m.hello.phase = w == 1 ? PHASE_IDLE : PHASE_TRAINING;
        m.hello.members_count = 3;
        for (int k = 0; k < 3; k++)
            m.hello.member[k] = k;
        s->conn[w] = s->conns++;
        hear(s, w, &m);
    }
}

Test(beside, a_failure_that_no_coordinator_heard_counts_with_the_next_one_and_once)
{
    struct story s;
    three_follow(&s, successor(2));
    cr_assert(!said(&s, "programFailed"), "%s", str_text(&s.log));
    failed_unheard(&s, 1, 3, RM_S);
    cr_assert(said(&s, "\"worker\":1,\"programExitCode\":3"), "%s", str_text(&s.log));
    comes_back_with_another_pair(&s, 1);
    failed_unheard(&s, 1, 3, 2 * RM_S);
    cr_assert_eq(times_said(&s, "programFailed"), 1, "%s", str_text(&s.log));
    cr_assert_eq(times_said(&s, "workerFailed"), 1, "%s", str_text(&s.log));
    story_end(&s);
}

Test(beside, a_rule_ends_the_job_also_by_a_failure_that_no_coordinator_heard)
{
    struct story s;
    story_begin(&s, settings_of(2));
    train_with(&s, 3);
    comes_back_with_another_pair(&s, 1);
    failed_unheard(&s, 1, 42, RM_S);
    for (int w = 0; w < 3; w++)
        stopped(&s, w, w == 1 ? -1 : 0, 0);
    cr_assert_eq(s.ended, EXIT_TRAINING, "%s", str_text(&s.log));
    cr_assert(said(&s, "ended with its program: exit code 42; failurePolicy.rules end the job"), "%s",
              str_text(&s.log));
    story_end(&s);
}

Test(beside, a_rule_spares_also_a_failure_that_no_coordinator_heard)
{
    struct story s;
    three_follow(&s, successor(0));
    failed_unheard(&s, 1, 7, RM_S);
    cr_assert(said(&s, "programFailed") && !said(&s, "workerFailed"), "%s", str_text(&s.log));
    story_end(&s);
}

/* A failure on a connection that had broken: the same coordinator hears of it when the worker is back. */
Test(beside, a_failure_that_a_cut_connection_kept_back_counts_once)
{
    struct story s;
    story_begin(&s, settings_of(0));
    train_with(&s, 3);
    comes_back_with_another_pair(&s, 1);
    cr_assert(!said(&s, "workerFailed"), "%s", str_text(&s.log));
    failed_unheard(&s, 1, 3, RM_S);
    cr_assert(said(&s, "programFailed") && said(&s, "workerFailed") && said(&s, "workerQuarantined"), "%s",
              str_text(&s.log));
    story_end(&s);
}

Test(beside, a_failure_whose_trainers_end_alone_was_not_heard_is_told_once_and_counts)
{
    struct story s;
    struct msg_fault failed = {.kind = FAULT_PROGRAM, .exit_code = 3, .trainer = 1};
    story_begin(&s, settings_of(2));
    train_with(&s, 3);
    fault_says(&s, 1, &failed);
    comes_back_with_another_pair(&s, 1);
    failed_unheard(&s, 1, 3, RM_S);
    cr_assert_eq(times_said(&s, "programFailed"), 1, "%s", str_text(&s.log));
    cr_assert_eq(times_said(&s, "workerFailed"), 1, "%s", str_text(&s.log));
    story_end(&s);
}

/* The word is repeated until another trainer trains. */
Test(beside, a_failure_whose_trainers_end_has_counted_does_not_count_again)
{
    struct story s;
    struct msg_fault failed = {.kind = FAULT_PROGRAM, .exit_code = 3, .trainer = 1};
    struct msg_fault ended = {.kind = FAULT_TRAINER_EXIT, .trainer = 1};
    story_begin(&s, settings_of(2));
    train_with(&s, 3);
    fault_says(&s, 1, &failed);
    fault_says(&s, 1, &ended);
    comes_back_with_another_pair(&s, 1);
    failed_unheard(&s, 1, 3, RM_S);
    cr_assert_eq(times_said(&s, "programFailed"), 1, "%s", str_text(&s.log));
    cr_assert_eq(times_said(&s, "workerFailed"), 1, "%s", str_text(&s.log));
    story_end(&s);
}

/* Its agent counts its trainers anew. */
Test(beside, the_first_trainer_of_another_process_is_another_one)
{
    struct story s;
    struct msg_fault ended = {.kind = FAULT_TRAINER_EXIT, .trainer = 1};
    story_begin(&s, settings_of(2));
    train_with(&s, 3);
    fault_says(&s, 1, &ended);
    cr_assert_eq(times_said(&s, "workerFailed"), 1, "%s", str_text(&s.log));
    s.attempt[1]++;
    comes_back_with_another_pair(&s, 1);
    failed_unheard(&s, 1, 3, RM_S);
    cr_assert_eq(times_said(&s, "workerFailed"), 2, "%s", str_text(&s.log));
    story_end(&s);
}

Test(beside, a_failure_that_is_older_than_the_window_counts_no_more)
{
    struct story s;
    three_follow(&s, successor(0));
    failed_unheard(&s, 1, 3, 3600 * RM_S);
    cr_assert(said(&s, "programFailed") && !said(&s, "workerFailed"), "%s", str_text(&s.log));
    story_end(&s);
}

static const struct msg_fault refusal = {
    .kind = FAULT_MACHINE, .exit_code = EXIT_USAGE, .detail = "ringmaster refuses it: a function"};

Test(beside, a_refused_program_ends_a_job_of_pods_that_nobody_else_can_do_at_once)
{
    struct story s;
    struct rdzv_settings settings = settings_of(2);
    settings.unsupervised = true;
    settings.workers_min = 2;
    story_begin(&s, settings);
    hello(&s, 0, -1);
    fault_says(&s, 0, &refusal);
    cr_assert_eq(s.ended, EXIT_USAGE, "%s", str_text(&s.log));
    cr_assert(said(&s, "end 2 worker 0: ringmaster refuses it: a function"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(beside, a_refused_newcomer_is_left_out_where_others_train)
{
    struct story s;
    struct rdzv_settings settings = settings_of(2);
    settings.unsupervised = true;
    story_begin(&s, settings);
    train_with(&s, 3);
    expect_workers(&s, 15);
    hello(&s, 3, -1);
    fault_says(&s, 3, &refusal);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    cr_assert(said(&s, "workerRefused"), "%s", str_text(&s.log));
    story_end(&s);
}

static struct rdzv_settings two_in_pods(void)
{
    struct rdzv_settings settings = settings_of(2);
    settings.unsupervised = true;
    settings.workers_min = settings.workers_target = 2;
    return settings;
}

/* Its machine, or its image's disk, was slow: its program was not there in time, as others' were. */
Test(beside, a_newcomer_that_is_refused_after_steps_ends_no_job_of_pods_that_waits_for_it)
{
    struct story s;
    story_begin(&s, two_in_pods());
    train_with(&s, 2);
    progress(&s, 0, 3);
    progress(&s, 1, 3);
    s.attempt[1]++;
    hello(&s, 1, -1);
    fault_says(&s, 1, &refusal);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    cr_assert(said(&s, "workerRefused"), "%s", str_text(&s.log));
    s.attempt[0]++;
    hello(&s, 0, -1);
    fault_says(&s, 0, &refusal);
    cr_assert_eq(s.ended, EXIT_USAGE, "all say so: %s", str_text(&s.log));
    story_end(&s);
}

Test(beside, a_coordinator_that_follows_knows_by_who_holds_a_state_that_others_have_trained)
{
    struct story s;
    struct rdzv_settings settings = two_in_pods();
    settings.term = 2;
    story_begin(&s, settings);
    hello(&s, 0, 3);
    hello(&s, 1, -1);
    fault_says(&s, 1, &refusal);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    cr_assert(said(&s, "workerRefused"), "%s", str_text(&s.log));
    story_end(&s);
}
