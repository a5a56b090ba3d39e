/* A coordinator that succeeds another one, one story each. */
#include "coordinator/core/rdzv_state.h"
#include "tests/unit/coordinator/core/story.h"

/* The predecessor told steps up to 7 and died; workers 0..n-1 are on its list. */
static void succeed(struct story *s, int n)
{
    struct rdzv_settings settings = story_settings(2);
    settings.term = 2;
    settings.predecessor = (struct rdzv_predecessor){
        .given = true, .told = 7, .evaluated = -1, .saved = -1, .lost_at = RM_S / 2};
    story_begin(s, settings);
    expect_workers(s, (1u << n) - 1);
    cr_assert_eq(rdzv_state(s->st), RDZV_RECOVERING);
}

/* Says hello as one of ring 1.5, which has members 0..n-1. */
static void hello_of_ring(struct story *s, int w, enum msg_phase phase, int n)
{
    struct message m;
    hello_message(s, w, 3, &m);
    m.hello.ring = (struct msg_generation){1, 5};
    m.hello.phase = phase;
    m.hello.members_count = n;
    for (int i = 0; i < n; i++)
        m.hello.member[i] = i;
    s->conn[w] = s->conns++;
    hear(s, w, &m);
}

static void step_of_ring(struct story *s, int w, int64_t step)
{
    struct message m;
    message_init(&m, MSG_PROGRESS);
    m.generation = (struct msg_generation){1, 5};
    m.progress.step = step;
    m.progress.loss = 2.5;
    m.progress.loss_known = true;
    m.progress.numbers = msg_numbers_unknown();
    hear(s, w, &m);
}

/* It says again all that nobody has acknowledged, and has no rank yet. */
Test(recover, what_a_member_says_again_is_told_before_the_ring_is_taken_over)
{
    struct story s;
    struct message m;
    succeed(&s, 2);
    hello_of_ring(&s, 0, PHASE_TRAINING, 2);
    message_init(&m, MSG_EVALUATED);
    m.generation = (struct msg_generation){1, 5};
    m.evaluated.step = 9;
    m.evaluated.loss = 1.5;
    hear(&s, 0, &m);
    cr_assert_eq(rdzv_state(s.st), RDZV_RECOVERING);
    cr_assert(said(&s, "\"event\":\"evaluated\""), "%s", str_text(&s.log));
    step_of_ring(&s, 0, 9);
    cr_assert(said(&s, "\"event\":\"step\""), "%s", str_text(&s.log));
    story_end(&s);
}

Test(recover, a_whole_ring_trains_on_and_is_told_to_go_again)
{
    struct story s;
    succeed(&s, 3);
    hello_of_ring(&s, 0, PHASE_TRAINING, 3);
    hello_of_ring(&s, 1, PHASE_READY, 3);
    cr_assert_eq(rdzv_state(s.st), RDZV_RECOVERING);
    hello_of_ring(&s, 2, PHASE_TRAINING, 3);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    cr_assert(said(&s, "send 0,1,2 go g=1.5"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, " stop "));
    cr_assert_eq(s.recovery.cause, CAUSE_COORDINATOR_LOST);
    cr_assert_eq(s.recovery.total, RM_S / 2);
    story_end(&s);
}

/* An agent says again what it does not know to have been heard: that its trainer is ready, which was before
 * the ring broke. */
Test(recover, a_ring_that_broke_meanwhile_is_formed_anew_whatever_is_said_again)
{
    struct story s;
    struct message m;
    succeed(&s, 2);
    hello_of_ring(&s, 0, PHASE_READY, 2);
    message_init(&m, MSG_FAULT);
    m.generation = (struct msg_generation){1, 5};
    m.fault.kind = FAULT_RING;
    m.fault.peer = 1;
    hear(&s, 0, &m);
    message_init(&m, MSG_READY);
    m.generation = (struct msg_generation){1, 5};
    m.ready.state = state_of(3);
    m.ready.trainer_pid = s.trainer[0];
    hear(&s, 0, &m);
    hello_of_ring(&s, 1, PHASE_READY, 2);
    cr_assert_not(said(&s, " go "), "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    story_end(&s);
}

/* A program's processes would be ended (program_test.c); a trainer waits for its turn. */
Test(recover, a_trainer_of_an_older_ring_is_told_nothing_until_it_is_taken_in)
{
    struct story s;
    struct message m;
    succeed(&s, 3);
    hello_of_ring(&s, 0, PHASE_TRAINING, 2);
    hello_of_ring(&s, 1, PHASE_TRAINING, 2);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    hello_message(&s, 2, 3, &m);
    m.hello.ring = (struct msg_generation){1, 4};
    m.hello.phase = PHASE_TRAINING;
    s.conn[2] = s.conns++;
    hear(&s, 2, &m);
    cr_assert_not(said(&s, "send 2 stop"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(recover, a_list_that_names_a_worker_twice_is_of_no_ring)
{
    struct story s;
    struct message m;
    succeed(&s, 2);
    hello_message(&s, 0, 3, &m);
    m.hello.ring = (struct msg_generation){1, 9};
    m.hello.phase = PHASE_TRAINING;
    m.hello.members_count = 2;
    s.conn[0] = s.conns++;
    hear(&s, 0, &m);
    cr_assert_eq(rdzv_state(s.st), RDZV_RECOVERING, "it waits for who says more");
    hello_of_ring(&s, 0, PHASE_TRAINING, 2);
    hello_of_ring(&s, 1, PHASE_TRAINING, 2);
    cr_assert(said(&s, "send 0,1 go g=1.5"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(recover, what_was_told_before_is_not_told_again_and_the_rest_is)
{
    struct story s;
    succeed(&s, 2);
    hello_of_ring(&s, 0, PHASE_TRAINING, 2);
    for (int step = 6; step <= 8; step++)
        step_of_ring(&s, 0, step);
    cr_assert_not(said(&s, "\"step\":7,\"loss\""), "%s", str_text(&s.log));
    cr_assert(said(&s, "\"step\":8,\"loss\":2.5"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(recover, a_member_that_does_not_come_back_is_lost_after_its_time)
{
    struct story s;
    succeed(&s, 3);
    hello_of_ring(&s, 0, PHASE_TRAINING, 3);
    hello_of_ring(&s, 1, PHASE_TRAINING, 3);
    after(&s, 4 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_RECOVERING);
    struct message beat;
    message_init(&beat, MSG_HEARTBEAT);
    hear(&s, 0, &beat);
    hear(&s, 1, &beat);
    cr_assert_eq(rdzv_deadline(s.st), 6 * RM_S);
    after(&s, RM_S);
    cr_assert(said(&s, "\"event\":\"workerLost\",\"time\":0,\"worker\":2"), "%s", str_text(&s.log));
    stopped(&s, 0, 9, 9);
    stopped(&s, 1, 9, 9);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    cr_assert_eq(s.form.generation.term, 2);
    cr_assert_eq(s.form.generation.n, 1);
    cr_assert_eq(s.form.form.resume.step, 9);
    story_end(&s);
}

Test(recover, one_that_run_knows_to_be_dead_is_not_waited_for)
{
    struct story s;
    succeed(&s, 3);
    hello_of_ring(&s, 0, PHASE_TRAINING, 3);
    hello_of_ring(&s, 1, PHASE_TRAINING, 3);
    expect_workers(&s, 3);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(recover, a_stop_of_the_predecessor_that_comes_late_forms_the_ring_anew)
{
    struct story s;
    succeed(&s, 2);
    hello_of_ring(&s, 0, PHASE_TRAINING, 2);
    hello_of_ring(&s, 1, PHASE_TRAINING, 2);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    s.round = 3;
    stopped(&s, 0, 9, 9);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING);
    cr_assert_gt(s.round, 1000000, "rounds of a later term are above all earlier ones");
    story_end(&s);
}

Test(recover, workers_that_obey_a_higher_term_make_this_one_step_down)
{
    struct story s;
    story_begin(&s, story_settings(1));
    struct message m;
    hello_message(&s, 0, -1, &m);
    m.term = 2;
    s.conn[0] = s.conns++;
    play(&s, &(struct rdzv_event){.kind = RDZV_MESSAGE, .conn = s.conn[0], .message = &m});
    cr_assert_eq(s.ended, 4);
    cr_assert_not(said(&s, "release"));
    story_end(&s);
}

/* Who went on alone to the last step may hold other bits of it: its piece would never fit. */
Test(recover, the_final_checkpoint_is_written_by_those_who_finished)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 2);
    expect_workers(&s, 7);
    finished(&s, 0);
    hello(&s, 2, 100);
    stopped(&s, 2, 100, 100);
    finished(&s, 1);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", str_text(&s.log));
    cr_assert(said(&s, "send 0,1 save"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(recover, where_the_time_went_is_counted_on_and_what_was_trained_meanwhile_is_productive)
{
    struct story s;
    struct rdzv_settings settings = story_settings(2);
    settings.term = 2;
    settings.predecessor = (struct rdzv_predecessor){
        .given = true, .told = 7, .evaluated = -1, .saved = -1, .lost_at = RM_S / 2, .spent_at = RM_S / 4};
    settings.predecessor.spent =
        (struct rdzv_goodput){.productive = 20 * RM_S, .recovery = 10 * RM_S, .waiting = 3 * RM_S};
    story_begin(&s, settings);
    expect_workers(&s, 3);
    after(&s, RM_S);
    hello_of_ring(&s, 0, PHASE_TRAINING, 2);
    hello_of_ring(&s, 1, PHASE_TRAINING, 2);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    struct rdzv_goodput spent = rdzv_goodput(s.st, s.now);
    cr_assert_eq(spent.productive, 20 * RM_S + s.now - RM_S / 4);
    cr_assert_eq(spent.recovery, 10 * RM_S);
    cr_assert_eq(spent.waiting, 3 * RM_S);
    story_end(&s);
}

/* What a predecessor is said to have spent comes from outside, and is not taken where it can't be. */
Test(recover, time_that_a_predecessor_spent_at_a_moment_to_come_is_not_counted_and_takes_nothing_away)
{
    struct story s;
    struct rdzv_settings settings = story_settings(2);
    settings.term = 2;
    settings.predecessor = (struct rdzv_predecessor){
        .given = true, .told = 7, .evaluated = -1, .saved = -1, .lost_at = RM_S / 2, .spent_at = 3600 * RM_S};
    settings.predecessor.spent = (struct rdzv_goodput){.productive = 20 * RM_S, .waiting = 3 * RM_S};
    story_begin(&s, settings);
    expect_workers(&s, 3);
    after(&s, RM_S);
    hello_of_ring(&s, 0, PHASE_TRAINING, 2);
    hello_of_ring(&s, 1, PHASE_TRAINING, 2);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    struct rdzv_goodput spent = rdzv_goodput(s.st, s.now);
    cr_assert_eq(spent.productive, RM_S);
    cr_assert_eq(spent.waiting, 0);
    story_end(&s);
}

/* It is said again to whoever takes over, and the one who said it may have died before it dropped its state.
 */
Test(recover, a_state_that_nobody_vouches_for_is_none_to_a_successor_either)
{
    struct story s;
    succeed(&s, 2);
    hello_of_ring(&s, 0, PHASE_TRAINING, 2);
    struct message m;
    message_init(&m, MSG_FAULT);
    m.generation = (struct msg_generation){1, 5};
    m.fault.kind = FAULT_PROOF;
    m.fault.class = CLASS_PAIR;
    m.fault.step = 8;
    hear(&s, 0, &m);
    hello(&s, 1, 8);
    cr_assert_not(s.st->worker[1].state.held);
    story_end(&s);
}

/* The next one would be counted on from it, to a number that no message may hold. */
Test(recover, a_ring_of_the_successors_own_term_is_taken_from_nobody)
{
    struct story s;
    struct message m;
    succeed(&s, 2);
    hello_message(&s, 0, 7, &m);
    m.hello.ring = (struct msg_generation){2, MSG_NUMBER_MOST};
    m.hello.phase = PHASE_TRAINING;
    m.hello.members_count = 1;
    s.conn[0] = s.conns++;
    hear(&s, 0, &m);
    hello_of_ring(&s, 1, PHASE_STOPPED, 2);
    after(&s, 4 * RM_S);
    hello_of_ring(&s, 0, PHASE_STOPPED, 2);
    hello_of_ring(&s, 1, PHASE_STOPPED, 2);
    after(&s, RM_S);
    stopped(&s, 0, 7, 7);
    stopped(&s, 1, 7, 7);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    cr_assert_eq(s.form.generation.n, 1);
    story_end(&s);
}
