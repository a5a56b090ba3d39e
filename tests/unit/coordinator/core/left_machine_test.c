/* One leave a machine and minute, whatever is told in its name: who comes to a machine that somebody has just
 * left by a notice is let go by none before a minute is over. */
#include "will_story.h"

static const rm_time minute = 60 * RM_S;

static void loses(struct story *s, int w)
{
    closed(s, w);
    fault_of(s, 0, FAULT_RING, w, s->st->told);
}

static void goes_on(struct story *s, int w, const char *machine, rm_time left)
{
    word_of_one(s, w, "", machine, NOTICED_WILL, left);
    leaves_later(s, w, left);
}

/* Without a moment. */
static void goes_now(struct story *s, int w, const char *machine)
{
    struct message m;
    word_of_one(s, w, "", machine, NOTICED_WILL, -1);
    message_init(&m, MSG_LEAVING);
    text_copy(m.leaving.reason, sizeof m.leaving.reason, "aws-spot");
    hear(s, w, &m);
}

static bool is_let_go(const struct story *s, int w)
{
    return s->st->worker[w].leaving;
}

/* Worker 1 has left "here", as worker 3 came elsewhere, and worker 4 comes there; workers 0 and 2 to 4 train.
 */
static void one_has_left(struct story *s)
{
    three_train(s, pods());
    goes_on(s, 1, "here", 100 * RM_S);
    comes(s, 3);
    cr_assert(is_let_go(s, 1) && is_member(s, 3), "%s", str_text(&s->log));
    closed(s, 1);
    passes(s, RM_S);
    comes(s, 4);
    cr_assert(is_member(s, 4), "%s", str_text(&s->log));
    forget(s);
}

Test(left_machine, who_comes_there_stays_for_a_minute_though_its_place_is_taken)
{
    struct story s;
    one_has_left(&s);
    rm_time left = s.st->left_machine[0].at;
    goes_on(&s, 4, "here", 100 * RM_S);
    comes(&s, 5);
    cr_assert(is_member(&s, 4) && is_member(&s, 5), "%s", str_text(&s.log));
    passes(&s, left + minute - 2 * RM_S - s.now);
    comes(&s, 6);
    cr_assert(is_member(&s, 4) && !is_let_go(&s, 4), "%s", str_text(&s.log));
    passes(&s, 3 * RM_S);
    cr_assert_not(is_let_go(&s, 4), "it trains on: %s", str_text(&s.log));
    comes(&s, 7);
    cr_assert(is_let_go(&s, 4) && is_member(&s, 7), "%s", str_text(&s.log));
    story_end(&s);
}

Test(left_machine, in_a_ring_that_takes_no_more_who_waits_has_its_place_once_the_minute_is_over)
{
    struct story s;
    struct rdzv_settings settings = pods();
    settings.workers_max = 3;
    three_train(&s, settings);
    goes_on(&s, 1, "here", 100 * RM_S);
    comes(&s, 3);
    rm_time left = s.st->left_machine[0].at;
    closed(&s, 1);
    loses(&s, 2);
    passes(&s, RM_S);
    changes(&s);
    comes(&s, 4);
    goes_on(&s, 4, "here", 100 * RM_S);
    hello(&s, 5, -1);
    answer(&s, 5);
    passes(&s, left + minute - RM_S - s.now);
    cr_assert(rdzv_state(s.st) == RDZV_TRAINING && is_member(&s, 4), "%s", str_text(&s.log));
    cr_assert_eq(rdzv_deadline(s.st) <= left + minute, true, "it wakes by itself");
    passes(&s, 2 * RM_S);
    changes(&s);
    cr_assert(is_let_go(&s, 4) && is_member(&s, 5), "%s", str_text(&s.log));
    story_end(&s);
}

Test(left_machine, its_moment_may_be_over_before_that)
{
    struct story s;
    one_has_left(&s);
    rm_time left = s.st->left_machine[0].at;
    goes_on(&s, 4, "here", 15 * RM_S);
    passes(&s, left + minute - RM_S - s.now);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", rdzv_why(s.st));
    cr_assert_not(is_let_go(&s, 4), "%s", str_text(&s.log));
    passes(&s, 2 * RM_S);
    cr_assert(is_let_go(&s, 4), "%s", str_text(&s.log));
    story_end(&s);
}

/* As a stranger there might say it. */
Test(left_machine, no_word_without_a_moment_is_quicker)
{
    struct story s;
    one_has_left(&s);
    rm_time left = s.st->left_machine[0].at;
    goes_now(&s, 4, "here");
    passes(&s, left + minute - RM_S - s.now);
    cr_assert_not(is_let_go(&s, 4), "%s", str_text(&s.log));
    passes(&s, 30 * RM_S);
    cr_assert(is_let_go(&s, 4), "%s", str_text(&s.log));
    goes_now(&s, 0, "there");
    cr_assert(is_let_go(&s, 0), "nobody has left that one");
    story_end(&s);
}

Test(left_machine, what_is_withdrawn_once_the_leave_has_begun_is_a_leave_all_the_same)
{
    struct story s;
    three_train(&s, pods());
    goes_now(&s, 1, "here");
    cr_assert(is_let_go(&s, 1), "%s", str_text(&s.log));
    word(&s, 1, NOTICED_GONE, -1);
    cr_assert(is_let_go(&s, 1), "%s", str_text(&s.log));
    passes(&s, RM_S);
    changes(&s);
    closed(&s, 1);
    comes(&s, 3);
    goes_now(&s, 3, "here");
    cr_assert_not(is_let_go(&s, 3), "%s", str_text(&s.log));
    story_end(&s);
}

/* Two are there. One goes when the first newcomer has its place, then another one comes to that machine, and
 * the second goes: that is one leave of the machine, and its minute is that of the first. */
Test(left_machine, who_was_there_with_it_goes_with_it_and_who_came_between_them_does_not)
{
    struct story s;
    three_train(&s, pods());
    goes_on(&s, 1, "here", 100 * RM_S);
    goes_on(&s, 2, "here", 100 * RM_S);
    comes(&s, 3);
    cr_assert(is_let_go(&s, 1) && !is_let_go(&s, 2), "%s", str_text(&s.log));
    rm_time left = s.st->left_machine[0].at;
    passes(&s, 10 * RM_S);
    goes_now(&s, 2, "here");
    hello(&s, 4, -1);
    passes(&s, RM_S);
    changes(&s);
    cr_assert(is_let_go(&s, 2), "it was there before: %s", str_text(&s.log));
    cr_assert_eq(s.st->left_machine[0].at, left);
    goes_now(&s, 4, "here");
    cr_assert_not(is_let_go(&s, 4), "%s", str_text(&s.log));
    story_end(&s);
}

Test(left_machine, a_signal_and_another_machine_are_none_of_it)
{
    struct story s;
    one_has_left(&s);
    goes_on(&s, 3, "there", 100 * RM_S);
    comes(&s, 5);
    cr_assert(is_let_go(&s, 3), "%s", str_text(&s.log));
    goes_on(&s, 4, "here", 100 * RM_S);
    cr_assert_not(is_let_go(&s, 4), "%s", str_text(&s.log));
    struct message m;
    message_init(&m, MSG_LEAVING);
    text_copy(m.leaving.reason, sizeof m.leaving.reason, "SIGTERM");
    m.leaving.deadline = 30 * RM_S;
    hear(&s, 4, &m);
    cr_assert(is_let_go(&s, 4), "%s", str_text(&s.log));
    story_end(&s);
}

Test(left_machine, who_may_have_to_go_from_there_is_not_eased_before)
{
    struct story s;
    one_has_left(&s);
    rm_time left = s.st->left_machine[0].at;
    struct rdzv_event ease = {.kind = RDZV_RELIEVE, .relief = {.stay = 3, .count = 1}};
    ease.relief.one[0].worker = 4;
    ease.relief.one[0].attempt = s.attempt[4];
    word_of_one(&s, 4, "", "here", NOTICED_MAY, -1);
    play(&s, &ease);
    comes(&s, 5);
    passes(&s, left + minute - RM_S - s.now);
    play(&s, &ease);
    comes(&s, 6);
    cr_assert_not(is_let_go(&s, 4), "%s", str_text(&s.log));
    passes(&s, 2 * RM_S);
    play(&s, &ease);
    comes(&s, 7);
    cr_assert(is_let_go(&s, 4), "%s", str_text(&s.log));
    story_end(&s);
}

/* Its SIGTERM came before it could hear one: nobody's word of a machine is needed to know that it ends. */
Test(left_machine, whose_pod_is_deleted_goes_at_once_when_its_place_is_taken)
{
    struct story s;
    one_has_left(&s);
    word_of_one(&s, 4, "", "here", NOTICED_MAY, -1);
    struct rdzv_event e = {.kind = RDZV_RELIEVE, .relief = {.stay = 4, .count = 1, .one = {{.worker = 4}}}};
    e.relief.one[0].attempt = s.attempt[4];
    play(&s, &e);
    comes(&s, 5);
    cr_assert(is_member(&s, 4) && is_member(&s, 5), "its machine alone is said to go: %s", str_text(&s.log));
    e.relief.one[0].by = EASED_BY_DELETION;
    play(&s, &e);
    comes(&s, 6);
    cr_assert(is_let_go(&s, 4) && is_member(&s, 6), "%s", str_text(&s.log));
    cr_assert_str_eq(s.st->worker[4].leaving_reason, "its pod is deleted");
    story_end(&s);
}
