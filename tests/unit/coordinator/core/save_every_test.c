/* checkpoint.every: Auto. The coordinator measures what saves cost, counts how often all who held the state
 * were lost, and tells the ring how long to train between two checkpoints. */
#include "coordinator/core/rdzv_state.h"
#include "tests/unit/coordinator/core/story.h"

static struct rdzv_settings automatic(void)
{
    struct rdzv_settings settings = story_settings(1);
    settings.max_loss = 1800 * RM_S;
    settings.lost_after = 60 * RM_S;
    settings.max_restarts = 100;
    return settings;
}

static void step(struct story *s, int64_t number, rm_time took, bool saves)
{
    struct message m;
    s->now += took;
    message_init(&m, MSG_PROGRESS);
    m.progress.step = number;
    m.progress.saves = saves;
    m.progress.loss = 2.5;
    m.progress.loss_known = true;
    m.progress.numbers = msg_numbers_unknown();
    m.progress.tokens = 10;
    m.progress.step_time = took;
    hear(s, 0, &m);
    hear(s, 1, &m); /* each member tells it */
}

/* Steps of a second up to this one. */
static int64_t steps(struct story *s, int64_t from, int64_t to)
{
    while (from < to)
        step(s, ++from, RM_S, false);
    return from;
}

/* Step `at` is saved: it, and the next one, take so much longer than a second. */
static void save(struct story *s, int64_t at, rm_time longer)
{
    step(s, at, RM_S + longer / 2, true);
    step(s, at + 1, RM_S + longer - longer / 2, false);
    checkpointed(s, 0, at, 0, 2, false);
    checkpointed(s, 1, at, 1, 2, false);
    published(s, 0, at, false);
    step(s, at + 2, RM_S, false);
}

/* Both are gone, others come in their place, and go on from the checkpoint of that step. */
static void all_are_lost(struct story *s, int64_t saved)
{
    for (int w = 0; w < 2; w++) {
        s->attempt[w]++;
        s->trainer[w] += 10;
        closed(s, w);
    }
    expect_workers(s, 3);
    for (int w = 0; w < 2; w++)
        hello(s, w, -1);
    for (int w = 0; w < 2; w++)
        stopped(s, w, -1, -1);
    for (int w = 0; w < 2; w++)
        listed(s, w, saved, -1);
    cr_assert_eq(rdzv_state(s->st), RDZV_FORMING, "%s", rdzv_why(s->st));
    forget(s);
    for (int w = 0; w < 2; w++)
        ready(s, w, saved < 0 ? 0 : saved);
    cr_assert_eq(rdzv_state(s->st), RDZV_TRAINING, "%s", rdzv_why(s->st));
}

/* To whom, in which generation, how long. */
#define SENT(whom, generation, seconds) "send " whom " saveEvery g=1." generation " every=" seconds "s"

#define TOLD(seconds, why)                                                                                   \
    "tell {\"event\":\"checkpointInterval\",\"time\":0,\"everySeconds\":" seconds ",\"reason\":\"" why "\"}"

static void one_is_measured(struct story *s, struct rdzv_settings settings)
{
    story_begin(s, settings);
    train_with(s, 2);
    steps(s, 0, 20);
    save(s, 21, RM_S);
}

Test(save_every, before_a_save_was_measured_it_is_a_minute_and_then_what_the_save_costs_says)
{
    struct story s;
    story_begin(&s, automatic());
    expect_workers(&s, 3);
    first_come(&s, 2);
    for (int w = 0; w < 2; w++)
        listed(&s, w, -1, -1);
    for (int w = 0; w < 2; w++)
        ready(&s, w, 0);
    cr_assert(said(&s, SENT("0,1", "1", "60.0")), "%s", str_text(&s.log));
    cr_assert(said(&s, TOLD("60.0", "every 60 s: what a save costs is not known yet")), "%s",
              str_text(&s.log));
    steps(&s, 0, 20);
    forget(&s);
    save(&s, 21, RM_S);
    cr_assert(said(&s, SENT("0,1", "1", "415.0")), "%s", str_text(&s.log));
    cr_assert(said(&s, TOLD("415.0", "every 6.92 min: a save stalls training for 1.00 s, and all workers "
                                     "together were lost 0 times in 24 s")),
              "%s", str_text(&s.log));
    story_end(&s);
}

Test(save_every, each_loss_of_all_makes_it_shorter_and_is_in_the_reason)
{
    struct story s;
    one_is_measured(&s, automatic());
    all_are_lost(&s, 21);
    cr_assert(said(&s, SENT("0,1", "2", "293.0")), "%s", str_text(&s.log));
    cr_assert(said(&s, "all workers together were lost once in 24 s"), "%s", str_text(&s.log));
    steps(&s, 21, 30);
    all_are_lost(&s, 21);
    cr_assert(said(&s, SENT("0,1", "3", "240.0")), "%s", str_text(&s.log));
    cr_assert(said(&s, "all workers together were lost 2 times in 33 s"), "%s", str_text(&s.log));
    forget(&s);
    all_are_lost(&s, 21); /* again, before any step: nothing was lost */
    cr_assert(said(&s, SENT("0,1", "4", "240.0")));
    cr_assert_not(said(&s, "checkpointInterval"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(save_every, all_lost_before_the_first_checkpoint_is_a_loss_too)
{
    struct story s;
    story_begin(&s, automatic());
    train_with(&s, 2);
    steps(&s, 0, 5);
    all_are_lost(&s, -1);
    cr_assert_eq(s.st->interval.known.losses, 1);
    story_end(&s);
}

Test(save_every, the_loss_of_one_of_two_is_none)
{
    struct story s;
    one_is_measured(&s, automatic());
    s.attempt[1]++;
    closed(&s, 1);
    expect_workers(&s, 3);
    forget(&s);
    stopped(&s, 0, 23, 23);
    ready(&s, 0, 23);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", rdzv_why(s.st));
    cr_assert(said(&s, SENT("0", "2", "415.0")), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "checkpointInterval"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(save_every, all_lost_at_the_step_that_is_saved_is_none)
{
    struct story s;
    one_is_measured(&s, automatic());
    all_are_lost(&s, 23);
    cr_assert_not(said(&s, "checkpointInterval"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(save_every, what_a_save_costs_is_averaged_and_evaluations_are_not_its)
{
    struct story s;
    struct rdzv_settings settings = automatic();
    settings.evaluation_every = 5;
    story_begin(&s, settings);
    train_with(&s, 2);
    for (int64_t i = 1; i <= 20; i++) /* an evaluation takes 9 s, and delays the step behind it */
        step(&s, i, i > 1 && i % 5 == 1 ? 10 * RM_S : RM_S, false);
    step(&s, 21, 10 * RM_S, false);
    forget(&s);
    step(&s, 22, RM_S, false);
    step(&s, 23, RM_S, false);
    step(&s, 24, 2 * RM_S, true);
    step(&s, 25, 2 * RM_S, false);
    checkpointed(&s, 0, 24, 0, 2, false);
    checkpointed(&s, 1, 24, 1, 2, false);
    published(&s, 0, 24, false);
    step(&s, 26, 10 * RM_S, false);
    cr_assert(said(&s, "a save stalls training for 2.00 s"), "%s", str_text(&s.log));
    forget(&s);
    save(&s, 27, 0);
    cr_assert(said(&s, "a save stalls training for 1.00 s"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(save_every, a_save_whose_beginning_nobody_saw_or_that_another_overtakes_measures_nothing)
{
    struct story s;
    story_begin(&s, automatic());
    train_with(&s, 2);
    steps(&s, 0, 20);
    forget(&s);
    save(&s, 22, RM_S); /* step 21 was not told */
    cr_assert_not(said(&s, "checkpointInterval"), "%s", str_text(&s.log));
    step(&s, 25, 5 * RM_S, true);
    step(&s, 26, 5 * RM_S, true);
    checkpointed(&s, 0, 25, 0, 2, false);
    checkpointed(&s, 1, 25, 1, 2, false);
    published(&s, 0, 25, false);
    step(&s, 27, RM_S, false);
    cr_assert_not(said(&s, "checkpointInterval"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(save_every, a_member_that_says_hello_again_is_told_again)
{
    struct story s;
    struct message m;
    one_is_measured(&s, automatic());
    closed(&s, 1);
    forget(&s);
    hello_message(&s, 1, 23, &m);
    m.hello.ring = (struct msg_generation){1, s.generation};
    m.hello.phase = PHASE_TRAINING;
    s.conn[1] = s.conns++;
    hear(&s, 1, &m);
    cr_assert(said(&s, SENT("1", "1", "415.0")), "%s", str_text(&s.log));
    story_end(&s);
}

Test(save_every, a_job_that_says_itself_when_to_save_hears_nothing)
{
    struct story s;
    struct rdzv_settings settings = automatic();
    settings.max_loss = 0;
    one_is_measured(&s, settings);
    all_are_lost(&s, 21);
    cr_assert_not(said(&s, "saveEvery"));
    cr_assert_not(said(&s, "checkpointInterval"));
    story_end(&s);
}

Test(save_every, a_successor_goes_on_with_what_its_predecessor_knew_and_counts_the_loss_of_all)
{
    struct story s;
    struct rdzv_settings settings = automatic();
    settings.term = 2;
    settings.predecessor = (struct rdzv_predecessor){
        .given = true,
        .told = 40,
        .evaluated = -1,
        .saved = 21,
        .saves = {.losses = 1, .reached = 35, .observed = 3600 * RM_S, .stall = RM_S, .safe = 3 * RM_S}};
    story_begin(&s, settings);
    expect_workers(&s, 3);
    first_come(&s, 2);
    for (int w = 0; w < 2; w++)
        stopped(&s, w, -1, -1);
    for (int w = 0; w < 2; w++)
        listed(&s, w, 21, -1);
    for (int w = 0; w < 2; w++) {
        struct message m;
        message_init(&m, MSG_READY);
        m.generation = (struct msg_generation){2, 1};
        m.ready.state = state_of(21);
        m.ready.trainer_pid = s.trainer[w];
        hear(&s, w, &m);
    }
    cr_assert(
        said(&s, "a save stalls training for 1.00 s, and all workers together were lost 2 times in 60 min"),
        "%s", str_text(&s.log));
    story_end(&s);
}
