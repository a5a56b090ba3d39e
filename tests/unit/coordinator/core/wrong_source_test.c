/* Who gives others something else than was agreed, and holds what nobody else has. */
#include "tests/unit/coordinator/core/trouble_story.h"

/* Of n the first `holders` stop with step 5, the others with nothing. */
static void some_hold(struct story *s, int n, int holders)
{
    for (int w = n - 1; w >= 0; w--)
        stopped(s, w, w < holders ? 5 : -1, -1);
}

/* So many come, of pods that nobody waits for, and stop. */
static void some_come(struct story *s, int n, int holders)
{
    struct rdzv_settings settings = patient(2);
    settings.unsupervised = true;
    settings.lost_after = 3600 * RM_S;
    story_begin(s, settings);
    for (int w = 0; w < n; w++)
        hello(s, w, w < holders ? 5 : -1);
    some_hold(s, n, holders);
}

static void one_holds(struct story *s)
{
    some_hold(s, 3, 1);
}

/* The others are enough, and would be given something else again and again, also by one outside their ring.
 * writes: between, it says of a part of a checkpoint that the store does not take it. */
static void one_gives_something_else(bool writes)
{
    struct story s;
    some_come(&s, 3, 1);
    after(&s, 100 * RM_MS);
    for (int i = 0; i < 2; i++) {
        cr_assert(rdzv_state(s.st) == RDZV_FORMING && is_in(&s, 0), "time %d: %s", i, str_text(&s.log));
        gives_something_else(&s, 2, 0);
        one_holds(&s);
    }
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "pause %d: %s", i, str_text(&s.log));
        for (int second = 0; second < 40 && rdzv_state(s.st) == RDZV_GATHERING; second++)
            after(&s, RM_S);
        cr_assert(rdzv_state(s.st) == RDZV_FORMING && is_in(&s, 0), "pause %d: %s", i, str_text(&s.log));
        gives_something_else(&s, 1, 0);
        if (writes)
            write_fails(&s, 0, 5, CLASS_PASSING);
        one_holds(&s);
    }
    cr_assert(said(&s, "send 0 abandon"), "after 30 s others go on without it: %s", str_text(&s.log));
    for (int w = 1; w < 3; w++)
        listed(&s, w, -1, -1);
    cr_assert(rdzv_state(s.st) == RDZV_FORMING && !s.form.form.resume.held, "%s", str_text(&s.log));
    story_end(&s);
}

Test(wrong_source, who_alone_holds_the_state_and_gives_something_else_is_asked_again_after_each_pause)
{
    one_gives_something_else(false);
}

Test(wrong_source,
     what_a_store_does_not_take_between_ends_no_pause_and_no_patience_with_who_gives_something_else)
{
    one_gives_something_else(true);
}

static void form_again(struct story *s)
{
    for (int second = 0; second < 40 && rdzv_state(s->st) != RDZV_FORMING; second++)
        after(s, RM_S);
    cr_assert_eq(rdzv_state(s->st), RDZV_FORMING, "%s", str_text(&s->log));
}

/* Of two that hold the state one gave something else and pauses; the other one, which one of those who are to
 * have it can't reach, is told to go. */
Test(wrong_source, who_gave_something_else_is_asked_all_the_same_where_nobody_else_can_be)
{
    struct story s;
    some_come(&s, 4, 2);
    form_again(&s);
    for (int i = 0; i < 2; i++) {
        fault_of(&s, 2, FAULT_RING, 0, -1);
        some_hold(&s, 4, 2);
        form_again(&s);
    }
    for (int i = 0; i < 2; i++) {
        gives_something_else(&s, is_in(&s, 2) ? 2 : 3, 1);
        some_hold(&s, 4, 2);
        form_again(&s);
    }
    leaving(&s, 0);
    some_hold(&s, 4, 2);
    form_again(&s);
    cr_assert(said(&s, "members=2/0:receive,3/0:receive sources=1"), "%s", str_text(&s.log));
    story_end(&s);
}

/* The last one's trainer ends behind step 5. */
static void one_of_three_begins_anew(struct story *s, int min)
{
    struct rdzv_settings settings = patient(min);
    settings.max_restarts = 9;
    begin(s, settings, 3, -1, -1);
    for (int w = 0; w < 3; w++)
        ready(s, w, 0);
    for (int w = 0; w < 3; w++)
        progress(s, w, 5);
    struct message m;
    fault_of(s, 2, FAULT_TRAINER_EXIT, -1, -1);
    s->trainer[2]++;
    hello_message(s, 2, -1, &m);
    hear(s, 2, &m);
    some_hold(s, 3, 2);
}

/* All three have to be in the ring. */
Test(wrong_source, who_gave_something_else_keeps_its_place_and_is_not_asked_where_others_give)
{
    struct story s;
    one_of_three_begins_anew(&s, 3);
    cr_assert(said(&s, "0/0:keep,1/0:keep,2/0:receive sources=0,1"), "%s", str_text(&s.log));
    gives_something_else(&s, 2, 0);
    forget(&s);
    some_hold(&s, 3, 2);
    cr_assert(said(&s, "members=0/0:keep,1/0:keep,2/0:receive sources=1\n"), "%s", str_text(&s.log));
    for (int w = 0; w < 3; w++)
        ready(&s, w, 5);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(wrong_source, one_who_goes_is_asked_before_a_member_that_gave_something_else)
{
    struct story s;
    one_of_three_begins_anew(&s, 2);
    gives_something_else(&s, 2, 0);
    leaving(&s, 1);
    forget(&s);
    some_hold(&s, 3, 2);
    cr_assert(said(&s, "members=0/0:keep,2/0:receive sources=1\n"), "%s", str_text(&s.log));
    story_end(&s);
}

/* All are needed. */
static void three_pods_begin(struct story *s)
{
    struct rdzv_settings settings = patient(3);
    settings.unsupervised = true;
    settings.lost_after = 3600 * RM_S;
    begin(s, settings, 3, -1, -1);
}

/* In pods it is waited for, as the table says, for as long as that takes. */
Test(wrong_source, pods_wait_for_who_gives_something_else_where_nobody_else_can_and_do_not_end)
{
    struct story s;
    three_pods_begin(&s);
    for (int ring = 0; ring < 40; ring++) {
        cr_assert_eq(s.ended, -1, "ring %d: %s", ring, rdzv_why(s.st));
        gives_something_else(&s, 2, 0);
        some_hold(&s, 3, 1);
        form_again(&s);
    }
    story_end(&s);
}

/* Whose memory fails sees something else in what anybody gives it. */
Test(wrong_source, one_who_names_one_source_after_the_other_is_not_waited_for_without_end)
{
    struct story s;
    three_pods_begin(&s);
    for (int ring = 0; ring < 40 && s.ended < 0; ring++) {
        gives_something_else(&s, 2, ring % 2);
        some_hold(&s, 3, 2);
        for (int w = 0; w < 2 && rdzv_state(s.st) == RDZV_SAVING; w++) {
            checkpointed(&s, w, 5, 0, 1, false);
            published(&s, w, 5, false);
        }
        for (int second = 0; second < 40 && rdzv_state(s.st) == RDZV_GATHERING; second++)
            after(&s, RM_S);
    }
    cr_assert_eq(s.ended, 4, "%s", str_text(&s.log));
    cr_assert(said(&s, "rings in a row came to nothing"), "%s", str_text(&s.log));
    story_end(&s);
}
