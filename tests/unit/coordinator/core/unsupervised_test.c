/* A coordinator whom nobody tells who is expected. The target is 3, the join window 100 ms. */
#include "coordinator/status/history.h"
#include "tests/unit/coordinator/core/story.h"

static void begin(struct story *s, int min)
{
    struct rdzv_settings settings = story_settings(min);
    settings.unsupervised = true;
    story_begin(s, settings);
}

static void come(struct story *s, int w, int64_t step)
{
    hello(s, w, step);
    stopped(s, w, step, step);
    if (step < 0)
        listed(s, w, -1, -1);
}

static void train(struct story *s, int n)
{
    for (int w = 0; w < n; w++)
        come(s, w, -1);
    if (rdzv_state(s->st) == RDZV_GATHERING)
        after(s, 100 * RM_MS);
    for (int w = 0; w < n; w++)
        ready(s, w, 0);
    cr_assert_eq(rdzv_state(s->st), RDZV_TRAINING, "%s", str_text(&s->log));
    forget(s);
}

Test(unsupervised, it_forms_at_once_when_the_target_is_there)
{
    struct story s;
    begin(&s, 1);
    come(&s, 0, -1);
    come(&s, 1, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "a third one is to come");
    cr_assert(rdzv_may_hand_over(s.st));
    come(&s, 2, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    cr_assert_not(rdzv_may_hand_over(s.st), "what it has begun it sees through");
    story_end(&s);
}

Test(unsupervised, with_enough_it_waits_for_the_others_only_as_long_as_the_window)
{
    struct story s;
    begin(&s, 2);
    come(&s, 0, -1);
    come(&s, 1, -1);
    after(&s, 99 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING);
    after(&s, RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(unsupervised, below_min_it_waits_for_ever_and_says_so)
{
    struct story s;
    begin(&s, 2);
    come(&s, 0, -1);
    cr_assert(said(&s, "workers here: 1, needed: 2"), "%s", str_text(&s.log));
    after(&s, 3600 * RM_S);
    cr_assert_lt(s.ended, 0, "%s", str_text(&s.log));
    story_end(&s);
}

Test(unsupervised, who_leaves_before_the_first_step_holds_nothing_that_is_worth_waiting_for)
{
    struct story s;
    begin(&s, 3);
    train(&s, 3);
    leaving(&s, 1);
    after(&s, RM_S);
    for (int w = 0; w < 3; w++)
        stopped(&s, w, 0, 0);
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "%s", str_text(&s.log));
    cr_assert(said(&s, "release"), "only then it is replaced: %s", str_text(&s.log));
    story_end(&s);
}

Test(unsupervised, all_who_leave_within_half_a_second_stop_once)
{
    struct story s;
    begin(&s, 2);
    train(&s, 3);
    progress(&s, 0, 1);
    leaving(&s, 0);
    after(&s, 300 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "the first leave waits for others");
    leaving(&s, 1);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    leaving(&s, 2);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "now all leave: %s", str_text(&s.log));
    for (int w = 0; w < 3; w++)
        stopped(&s, w, 2, 2);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", str_text(&s.log));
    cr_assert(said(&s, "send 0,1,2 save"), "all save their slices: %s", str_text(&s.log));
    for (int w = 0; w < 3; w++)
        checkpointed(&s, w, 2, w, 3, false);
    cr_assert_not(said(&s, "\"event\":\"released\""));
    cr_assert_not(rdzv_may_hand_over(s.st), "they wait for their release");
    published(&s, 0, 2, false);
    cr_assert(rdzv_may_hand_over(s.st));
    cr_assert(said(&s, "\"event\":\"released\",\"time\":0,\"worker\":2"), "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING);
    cr_assert_lt(s.ended, 0);
    story_end(&s);
}

Test(unsupervised, one_leave_alone_begins_after_half_a_second)
{
    struct story s;
    begin(&s, 2);
    train(&s, 3);
    cr_assert(rdzv_may_hand_over(s.st), "a successor finds a ring that trains");
    leaving(&s, 0);
    cr_assert_not(rdzv_may_hand_over(s.st), "who leaves waits for this coordinator");
    after(&s, 499 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    after(&s, RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    story_end(&s);
}

/* Workers 0 and 1 train; the steps that are left are worth a join. */
static void train_two(struct story *s)
{
    train(s, 2);
    progress_in(s, 0, 1, 10 * RM_S);
    forget(s);
}

Test(unsupervised, who_makes_the_target_full_joins_at_once)
{
    struct story s;
    begin(&s, 1);
    train_two(&s);
    hello(&s, 2, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    story_end(&s);
}

/* What room for a newcomer costs was once counted with the hours in which nobody was there. */
Test(unsupervised, after_an_outage_of_hours_newcomers_have_a_place)
{
    struct story s;
    begin(&s, 1);
    train_two(&s);
    closed(&s, 0);
    closed(&s, 1);
    after(&s, 3 * 3600 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "%s", str_text(&s.log));
    for (int w = 0; w < 2; w++) {
        s.attempt[w] = 1;
        s.trainer[w] += 1000;
    }
    come(&s, 0, -1);
    after(&s, 100 * RM_MS);
    ready(&s, 0, 0);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    progress_in(&s, 0, 1, 10 * RM_S);
    hello(&s, 1, -1);
    after(&s, 100 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(unsupervised, above_the_target_those_who_come_together_join_together)
{
    struct story s;
    begin(&s, 1);
    train(&s, 3);
    progress_in(&s, 0, 1, 10 * RM_S);
    hello(&s, 3, -1);
    after(&s, 50 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    hello(&s, 4, -1);
    after(&s, 50 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(unsupervised, an_agent_that_learns_the_jobs_name_from_the_welcome_is_welcome)
{
    struct story s;
    struct message m;
    begin(&s, 1);
    hello_message(&s, 0, -1, &m);
    m.hello.job[0] = 0;
    s.conn[0] = s.conns++;
    hear(&s, 0, &m);
    cr_assert(said(&s, "send 0 welcome"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Term 2, of a job that trained to step 7; the predecessor's machine went with it. lostAfter is 5 s. */
static void succeed(struct story *s)
{
    struct rdzv_settings settings = story_settings(1);
    settings.unsupervised = true;
    settings.term = 2;
    settings.lost_after = 5 * RM_S;
    settings.predecessor = (struct rdzv_predecessor){.given = true, .told = 7, .evaluated = -1, .saved = -1};
    story_begin(s, settings);
    cr_assert_eq(rdzv_state(s->st), RDZV_RECOVERING);
}

static void beat(struct story *s, int w)
{
    struct message m;
    message_init(&m, MSG_HEARTBEAT);
    m.heartbeat.phase = PHASE_STOPPED;
    hear(s, w, &m);
}

/* The workers (bits) are heard each second meanwhile. */
static void wait_with(struct story *s, unsigned workers, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        after(s, RM_S);
        for (int w = 0; w < 3; w++) {
            if (workers & 1u << w)
                beat(s, w);
        }
    }
}

Test(unsupervised, a_successor_does_not_begin_with_newcomers_while_survivors_may_be_on_their_way)
{
    struct story s;
    succeed(&s);
    come(&s, 1, -1);
    wait_with(&s, 1u << 1, 14);
    cr_assert_eq(rdzv_state(s.st), RDZV_RECOVERING, "%s", str_text(&s.log));
    hello(&s, 0, 7);
    cr_assert_neq(rdzv_state(s.st), RDZV_RECOVERING, "who holds the state is here: %s", str_text(&s.log));
    story_end(&s);
}

Test(unsupervised, a_successor_learns_what_the_job_computes_with_from_survivors_and_not_from_newcomers)
{
    struct story s;
    struct message m;
    succeed(&s);
    hello_message(&s, 1, -1, &m);
    text_copy(m.hello.fingerprint, sizeof m.hello.fingerprint, "cpu-b");
    s.conn[1] = s.conns++;
    hear(&s, 1, &m);
    cr_assert_not(said(&s, "computes other bits"), "it may be the first of a new job");
    hello(&s, 0, 7);
    cr_assert(said(&s, "worker 1 computes other bits"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "worker 0 computes other bits"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(unsupervised, a_successor_begins_with_newcomers_once_nobody_else_came)
{
    struct story s;
    succeed(&s);
    come(&s, 1, -1);
    wait_with(&s, 1u << 1, 15);
    cr_assert_neq(rdzv_state(s.st), RDZV_RECOVERING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(unsupervised, a_successor_among_newcomers_only_waits_for_nobody_when_all_are_there)
{
    struct story s;
    succeed(&s);
    for (int w = 0; w < 3; w++)
        come(&s, w, -1);
    wait_with(&s, 7, 5);
    cr_assert_neq(rdzv_state(s.st), RDZV_RECOVERING, "%s", str_text(&s.log));
    story_end(&s);
}
