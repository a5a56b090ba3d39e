/* A program in pods that each change of members restarts: who comes in the place of a member whose machine
 * may go, and that member's leave, are one change. */
#include "coordinator/core/rdzv_state.h"
#include "program_story.h"

static void is_told(struct story *s, int w, enum msg_notice_word word)
{
    struct message m;
    message_init(&m, MSG_NOTICED);
    m.noticed.word = word;
    m.noticed.left = -1;
    text_copy(m.noticed.source, sizeof m.noticed.source, "aws-rebalance");
    text_copy(m.noticed.cause, sizeof m.noticed.cause, "reclaim");
    hear(s, w, &m);
}

/* Two run; the machine of worker 1 may go. */
static void two_run(struct story *s)
{
    struct rdzv_settings settings = program(2);
    settings.unsupervised = true;
    story_begin(s, settings);
    for (int w = 0; w < 2; w++) {
        hello(s, w, 0);
        answers(s, w);
    }
    after(s, 100 * RM_MS);
    all_run(s, 2);
    is_told(s, 1, NOTICED_MAY);
    forget(s);
}

static void comes(struct story *s, int w)
{
    hello(s, w, 0);
    answers(s, w);
    after(s, RM_S);
}

static void passes(struct story *s, int seconds)
{
    for (int i = 1; i <= seconds; i++) {
        beats(s, 2, i, PHASE_TRAINING);
        beats_of(s, 2, i, PHASE_IDLE);
        after(s, RM_S);
    }
}

/* Who has nothing to end answers before the others have ended theirs. */
Test(one_restart, who_comes_in_the_place_of_a_member_joins_when_that_one_leaves)
{
    struct story s;
    two_run(&s);
    int64_t ring = s.st->ring.n;
    comes(&s, 2);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    leaving(&s, 1);
    after(&s, RM_S);
    answers(&s, 2);
    answers(&s, 0);
    answers(&s, 1);
    after(&s, 100 * RM_MS);
    ready(&s, 0, 0);
    ready(&s, 2, 0);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    cr_assert_eq(s.st->world, 2);
    cr_assert_eq(s.st->ring.n, ring + 1, "one change for the two");
    story_end(&s);
}

/* Who makes workers has asked for it before: there is nothing to wait for. */
Test(one_restart, who_is_eased_and_who_comes_change_places_at_once)
{
    struct story s;
    struct rdzv_event e = {.kind = RDZV_RELIEVE, .relief = {.stay = 2, .count = 1}};
    two_run(&s);
    int64_t ring = s.st->ring.n;
    e.relief.one[0].worker = 1;
    play(&s, &e);
    hello(&s, 2, 0);
    answers(&s, 2);
    after(&s, 200 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", rdzv_why(s.st));
    for (int w = 2; w >= 0; w--)
        answers(&s, w);
    after(&s, 100 * RM_MS);
    ready(&s, 0, 0);
    ready(&s, 2, 0);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    cr_assert(s.st->world == 2 && s.st->worker[1].rank < 0);
    cr_assert_eq(s.st->ring.n, ring + 1, "one change for the two");
    cr_assert(said(&s, "send 1 release"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(one_restart, where_that_one_does_not_leave_the_other_joins_all_the_same)
{
    struct story s;
    two_run(&s);
    comes(&s, 2);
    passes(&s, 28);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    passes(&s, 2);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(one_restart, once_the_warning_is_taken_back_who_comes_joins_as_ever)
{
    struct story s;
    two_run(&s);
    is_told(&s, 1, NOTICED_GONE);
    comes(&s, 2);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    story_end(&s);
}
