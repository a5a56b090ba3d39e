/* Newcomers who listen in pods, where machines go and several come at once. */
#include "tests/unit/coordinator/core/will_story.h"

/* Three train, of so many that the job wants. */
static void three_of(struct story *s, int target)
{
    struct rdzv_settings settings = pods();
    settings.listens = true;
    three_train(s, settings);
    s->st->settings.join_window = 10 * RM_S;
    s->st->settings.workers_target = target;
}

static void newcomer(struct story *s, int w)
{
    s->listening = true;
    hello(s, w, -1);
}

/* What is given in turns may take longer than they live. */
Test(listen_pods, where_all_members_will_go_who_comes_gets_the_state_while_all_wait)
{
    struct story s;
    three_of(&s, 3);
    for (int w = 0; w < 3; w++)
        goes_in(&s, w, 100 * RM_S);
    newcomer(&s, 3);
    passes(&s, 12 * RM_S); /* others may come with it */
    cr_assert_not(said(&s, " listen "), "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", rdzv_why(s.st));
    story_end(&s);
}

Test(listen_pods, who_listens_to_members_that_will_all_go_listens_no_more)
{
    struct story s;
    three_of(&s, 3);
    newcomer(&s, 3);
    passes(&s, RM_S);
    cr_assert(said(&s, "send 3 listen"), "%s", str_text(&s.log));
    for (int w = 0; w < 3; w++)
        goes_in(&s, w, 100 * RM_S);
    passes(&s, 12 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", rdzv_why(s.st));
    cr_assert(said(&s, "send 3 stop"), "%s", str_text(&s.log));
    story_end(&s);
}

/* One of three goes, and the two others hold what is listened to. */
Test(listen_pods, where_one_of_the_members_stays_who_comes_listens)
{
    struct story s;
    three_of(&s, 3);
    for (int w = 0; w < 2; w++)
        goes_in(&s, w, 100 * RM_S);
    newcomer(&s, 3);
    passes(&s, RM_S);
    cr_assert(said(&s, "send 3 listen"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Each ring that is formed anew costs, and what they still hear comes slowly at its beginning. */
Test(listen_pods, who_has_heard_all_waits_the_join_window_for_others_who_listen)
{
    struct story s;
    three_of(&s, 5);
    newcomer(&s, 3);
    newcomer(&s, 4);
    passes(&s, 30 * RM_S); /* to hear it takes longer than the window */
    heard(&s, 3, 20);
    passes(&s, 5 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", rdzv_why(s.st));
    heard(&s, 4, 20);
    passes(&s, RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "both are here: %s", rdzv_why(s.st));
    story_end(&s);
}

Test(listen_pods, and_no_longer)
{
    struct story s;
    three_of(&s, 5);
    newcomer(&s, 3);
    newcomer(&s, 4);
    passes(&s, 30 * RM_S);
    heard(&s, 3, 20);
    passes(&s, 11 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", rdzv_why(s.st));
    story_end(&s);
}
