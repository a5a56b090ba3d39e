/* Newcomers who listen to a ring before they are of it. */
#include "coordinator/core/rdzv_state.h"
#include "tests/unit/coordinator/core/story.h"

/* Workers 0 and 1 train, and worker 2 has come and was told to listen. */
static void let_one_listen(struct story *s, int min)
{
    struct rdzv_settings settings = story_settings(min);
    settings.listens = true;
    story_begin(s, settings);
    s->listening = true;
    train_with(s, 2);
    progress(s, 0, 5);
    progress(s, 1, 5);
    act_on(s, CAUSE_WORKER_JOINED, 2);
    expect_workers(s, 7);
    hello(s, 2, -1);
}

Test(listen, a_newcomer_listens_to_all_members_and_stops_nobody)
{
    struct story s;
    let_one_listen(&s, 2);
    cr_assert(said(&s, "send 2 listen g=1.1 sources=[0 1]"), "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    after(&s, RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "it is waited for by nobody");
    cr_assert_eq(times_said(&s, " listen "), 1);
    story_end(&s);
}

Test(listen, who_holds_what_the_others_do_is_told_to_stop_when_they_have_and_keeps_it)
{
    struct story s;
    let_one_listen(&s, 2);
    forget(&s);
    heard(&s, 2, 6);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING);
    cr_assert(said(&s, "send 0,1 stop g=1.1 round=2 at=boundary"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "send 2 stop"), "it has to hear the last step, too");
    stopped(&s, 0, 8, 8);
    stopped(&s, 1, 8, 8);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING);
    cr_assert(said(&s, "send 2 stop"), "%s", str_text(&s.log));
    stopped(&s, 2, 8, 8);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING);
    cr_assert_eq(s.form.form.count, 3);
    cr_assert_eq(s.form.form.member[2].role, ROLE_KEEP);
    cr_assert_eq(s.form.form.sources_count, 0);
    story_end(&s);
}

/* They compute lanes while it fetches the update, and their headers wait for its own. */
Test(listen, who_is_one_step_behind_follows_and_the_others_go_on_at_once_without_lanes_for_it)
{
    struct story s;
    let_one_listen(&s, 2);
    heard(&s, 2, 6);
    stopped(&s, 0, 8, 8);
    stopped(&s, 1, 8, 8);
    stopped(&s, 2, 7, 7);
    const struct msg_form *f = &s.form.form;
    cr_assert_eq(f->member[2].role, ROLE_FOLLOW);
    cr_assert_lt(f->source[0].worker, 2);
    cr_assert_eq(f->lanes_count, s.st->settings.lanes);
    for (int lane = 0; lane < f->lanes_count; lane++)
        cr_assert(f->lane_rank[lane] == 0 || f->lane_rank[lane] == 1, "lane %d is rank %d's", lane,
                  f->lane_rank[lane]);
    cr_assert_eq(s.st->lanes_dealt, 0, "nobody died");
    ready(&s, 0, 8);
    ready(&s, 1, 8);
    forget(&s);
    ready(&s, 2, 7);
    cr_assert(said(&s, "send 0,1,2 go g=1.2"), "%s", str_text(&s.log));
    story_end(&s);
}

/* A member would be ready at once, and who leaves is let go as soon as all are. */
Test(listen, who_is_one_step_behind_those_who_leave_has_the_update_before_they_go)
{
    struct story s;
    let_one_listen(&s, 1);
    heard(&s, 2, 6);
    for (int w = 0; w < 2; w++) {
        struct message m;
        message_init(&m, MSG_LEAVING);
        hear(&s, w, &m);
    }
    stopped(&s, 0, 8, 8);
    stopped(&s, 1, 8, 8);
    stopped(&s, 2, 7, 7);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.count, 1);
    cr_assert_eq(s.form.form.member[0].role, ROLE_CATCH_UP);
    story_end(&s);
}

/* Its word that it is ready says what it holds: another step than the one before is none to follow from. */
Test(listen, who_follows_and_is_ready_with_something_else_makes_the_ring_come_to_nothing)
{
    struct story s;
    let_one_listen(&s, 2);
    heard(&s, 2, 6);
    stopped(&s, 0, 8, 8);
    stopped(&s, 1, 8, 8);
    stopped(&s, 2, 7, 7);
    ready(&s, 0, 8);
    ready(&s, 1, 8);
    ready(&s, 2, 6);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING);
    story_end(&s);
}

Test(listen, who_is_further_behind_is_left_out_and_listens_anew)
{
    struct story s;
    let_one_listen(&s, 2);
    heard(&s, 2, 6);
    stopped(&s, 0, 8, 8);
    stopped(&s, 1, 8, 8);
    forget(&s);
    stopped(&s, 2, 6, 6);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING);
    cr_assert_eq(s.form.form.count, 2, "nobody waits until it has all of the state");
    ready(&s, 0, 8);
    ready(&s, 1, 8);
    cr_assert(said(&s, "send 2 listen g=1.2"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Steps are too short for it. */
Test(listen, who_is_left_out_twice_gets_the_state_as_a_ring_is_formed)
{
    struct story s;
    let_one_listen(&s, 2);
    for (int i = 0; i < 2; i++) {
        heard(&s, 2, 6);
        stopped(&s, 0, 8, 8);
        stopped(&s, 1, 8, 8);
        stopped(&s, 2, 6, 6);
        ready(&s, 0, 8);
        ready(&s, 1, 8);
    }
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "it joins");
    stopped(&s, 0, 8, 8);
    stopped(&s, 1, 8, 8);
    stopped(&s, 2, 6, 6);
    cr_assert_eq(s.form.form.count, 3);
    cr_assert_eq(s.form.form.member[2].role, ROLE_RECEIVE);
    story_end(&s);
}

Test(listen, a_ring_that_breaks_is_formed_without_it_and_it_goes_on)
{
    struct story s;
    let_one_listen(&s, 1);
    forget(&s);
    fault_of(&s, 0, FAULT_RING, 1, 5);
    closed(&s, 1);
    cr_assert_not(said(&s, "send 2 "), "%s", str_text(&s.log));
    stopped(&s, 0, 5, 5);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING);
    cr_assert_eq(s.form.form.count, 1);
    ready(&s, 0, 5);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    cr_assert_not(said(&s, "listen"), "it still does");
    heard(&s, 2, 7);
    after(&s, 200 * RM_MS); /* worker 1 is expected, too */
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING);
    story_end(&s);
}

/* What the members say of the steps before it is under way; or they are gone. */
Test(listen, what_it_has_heard_is_told_in_its_place_and_leaves_no_step_out)
{
    struct story s;
    let_one_listen(&s, 1);
    forget(&s);
    progress(&s, 2, 7);
    cr_assert_not(said(&s, "\"event\":\"step\""), "%s", str_text(&s.log));
    progress(&s, 0, 6);
    progress(&s, 2, 7);
    cr_assert_eq(times_said(&s, "\"event\":\"step\""), 2, "%s", str_text(&s.log));
    cr_assert_eq(times_said(&s, "\"loss\":2.5"), 2, "%s", str_text(&s.log));
    progress(&s, 2, 9);
    forget(&s);
    expect_workers(&s, 4);
    stopped(&s, 2, 9, 9);
    cr_assert_eq(times_said(&s, "\"event\":\"step\""), 2, "%s", str_text(&s.log));
    cr_assert_eq(times_said(&s, "\"loss\":2.5"), 1, "nobody knows that of step 8: %s", str_text(&s.log));
    story_end(&s);
}

Test(listen, an_evaluation_that_it_has_heard_of_is_told_unless_members_may_tell_an_earlier_one)
{
    struct story s;
    struct message m;
    let_one_listen(&s, 1);
    message_init(&m, MSG_EVALUATED);
    m.evaluated.step = 6;
    m.evaluated.loss = 1.5;
    hear(&s, 2, &m);
    cr_assert_not(said(&s, "\"event\":\"evaluated\""), "%s", str_text(&s.log));
    progress(&s, 2, 6);
    hear(&s, 2, &m);
    cr_assert(said(&s, "\"event\":\"evaluated\""), "%s", str_text(&s.log));
    story_end(&s);
}

/* It was asked to stop in a round that nobody counts any more. */
Test(listen, who_was_called_in_is_told_of_the_next_round_too)
{
    struct story s;
    let_one_listen(&s, 2);
    heard(&s, 2, 6);
    stopped(&s, 0, 8, 8);
    stopped(&s, 1, 8, 8);
    cr_assert(said(&s, "send 2 stop g=1.1 round=2"), "%s", str_text(&s.log));
    forget(&s);
    s.trainer[1]++;
    hello(&s, 1, -1);
    cr_assert(said(&s, "send 1,2 stop g=1.1 round=3"), "%s", str_text(&s.log));
    stopped(&s, 1, -1, -1);
    stopped(&s, 2, 8, 8);
    stopped(&s, 0, 8, 8);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING);
    cr_assert_eq(s.form.form.member[2].role, ROLE_KEEP);
    story_end(&s);
}

/* The ring would stop once more for nothing. */
Test(listen, who_holds_the_ring_up_is_left_out_and_listens_anew_when_it_answers)
{
    struct story s;
    let_one_listen(&s, 2);
    heard(&s, 2, 6);
    stopped(&s, 0, 8, 8);
    stopped(&s, 1, 8, 8);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING);
    after(&s, 100 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "joinWindow is over");
    cr_assert_eq(s.form.form.count, 2);
    ready(&s, 0, 8);
    ready(&s, 1, 8);
    progress(&s, 0, 9);
    forget(&s);
    stopped(&s, 2, 7, 7);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    cr_assert(said(&s, "send 2 listen"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Who made it and told it is gone, and who is left holds less. */
Test(listen, who_alone_holds_what_was_told_is_waited_for_though_others_are_enough)
{
    struct story s;
    let_one_listen(&s, 1);
    heard(&s, 2, 6);
    progress(&s, 1, 6);
    forget(&s);
    expect_workers(&s, 5);
    stopped(&s, 0, 5, 5);
    cr_assert(said(&s, "send 2 stop"), "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING);
    stopped(&s, 2, 6, 6);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING);
    cr_assert_eq(s.form.form.resume.step, 6);
    cr_assert_eq(s.form.form.count, 2);
    story_end(&s);
}

Test(listen, who_was_called_in_is_told_again_by_another_connection)
{
    struct story s;
    let_one_listen(&s, 2);
    fault_of(&s, 0, FAULT_RING, 1, 5);
    closed(&s, 1);
    stopped(&s, 0, 5, 5);
    cr_assert(said(&s, "send 2 stop"), "%s", str_text(&s.log));
    forget(&s);
    hello(&s, 2, -1);
    cr_assert(said(&s, "send 2 stop"), "what it was told may be lost: %s", str_text(&s.log));
    story_end(&s);
}

Test(listen, where_too_few_are_left_without_it_it_is_called_in_and_receives)
{
    struct story s;
    let_one_listen(&s, 2);
    forget(&s);
    fault_of(&s, 0, FAULT_RING, 1, 5);
    closed(&s, 1);
    stopped(&s, 0, 5, 5);
    cr_assert(said(&s, "send 2 stop"), "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING);
    stopped(&s, 2, -1, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING);
    cr_assert_eq(s.form.form.member[1].role, ROLE_RECEIVE);
    story_end(&s);
}

Test(listen, who_can_t_gets_the_state_as_the_ring_is_formed)
{
    struct story s;
    let_one_listen(&s, 2);
    heard(&s, 2, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING);
    stopped(&s, 0, 6, 6);
    stopped(&s, 1, 6, 6);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    stopped(&s, 2, -1, -1);
    cr_assert_eq(s.form.form.member[2].role, ROLE_RECEIVE);
    story_end(&s);
}

/* Its word crossed the order to stop, which nobody gave it. */
Test(listen, who_gives_up_while_the_others_stop_is_told_to_stop_too)
{
    struct story s;
    let_one_listen(&s, 2);
    fault_of(&s, 0, FAULT_RING, 1, 5);
    stopped(&s, 0, 5, 5);
    forget(&s);
    heard(&s, 2, -1);
    cr_assert(said(&s, "send 2 stop"), "%s", str_text(&s.log));
    stopped(&s, 2, -1, -1);
    stopped(&s, 1, 5, 5);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING);
    cr_assert_eq(s.form.form.count, 3);
    story_end(&s);
}

Test(listen, after_a_reconnect_it_is_asked_again)
{
    struct story s;
    let_one_listen(&s, 2);
    forget(&s);
    closed(&s, 2);
    hello(&s, 2, -1);
    cr_assert(said(&s, "send 2 listen"), "%s", str_text(&s.log));
    heard(&s, 2, 6);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING);
    story_end(&s);
}

Test(listen, the_end_of_the_run_waits_for_nobody_who_listens)
{
    struct story s;
    let_one_listen(&s, 2);
    progress(&s, 0, 100);
    progress(&s, 1, 100);
    finished(&s, 0);
    finished(&s, 1);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING);
    cr_assert_not(said(&s, "send 2 save"), "%s", str_text(&s.log));
    story_end(&s);
}

static void beat(struct story *s, int w, int64_t counter)
{
    struct message m;
    message_init(&m, MSG_HEARTBEAT);
    m.heartbeat.counter = counter;
    m.heartbeat.waiting_for = -1;
    hear(s, w, &m);
}

/* A second later members have turned on, and the newcomer is where it is. */
static void all_beat(struct story *s, int64_t members, int64_t newcomer)
{
    beat(s, 0, members);
    beat(s, 1, members);
    beat(s, 2, newcomer);
    after(s, RM_S);
}

/* As one whose trainer stands still. The others are asked to wait for it once, as for any newcomer. */
Test(listen, who_hears_nothing_for_long_is_taken_for_one_who_can_t)
{
    struct story s;
    let_one_listen(&s, 2);
    for (int i = 0; i < 100; i++) { /* something comes, now and then */
        all_beat(&s, i, i / 20);
    }
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    for (int i = 0; i < 61; i++) {
        all_beat(&s, 100 + i, 100);
    }
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    stopped(&s, 0, 6, 6);
    stopped(&s, 1, 6, 6);
    for (int i = 0; i < 20 && rdzv_state(s.st) != RDZV_FORMING; i++)
        all_beat(&s, 200 + i, 100);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "it is waited for no longer than joinWindow");
    cr_assert_eq(s.form.form.count, 2);
    story_end(&s);
}

/* ---- the last step ---- */

/* Workers 0 and 1 make it, and worker 2 has come too late to be in it, and has heard of it. */
static void finish_in(struct story *s, bool pods, rm_time patience, bool heard_all)
{
    struct rdzv_settings settings = story_settings(1);
    settings.listens = true;
    settings.unsupervised = pods;
    settings.workers_target = 2;
    settings.save_patience = settings.end_timeout = patience;
    settings.join_window = 2 * RM_S;
    story_begin(s, settings);
    s->listening = true;
    train_with(s, 2);
    for (int64_t step = 99; step <= 100; step++) {
        for (int w = 0; w < 2; w++)
            progress(s, w, step);
        if (step == 99) {
            act_on(s, CAUSE_WORKER_JOINED, 2);
            expect_workers(s, 15); /* worker 3 is to join with it, and is on its way */
            hello(s, 2, -1);
            cr_assert(said(s, "send 2 listen"), "%s", str_text(&s->log));
            if (heard_all)
                heard(s, 2, 99);
        }
    }
    for (int w = 0; w < 2; w++)
        finished(s, w);
    cr_assert_eq(rdzv_state(s->st), RDZV_SAVING, "%s", rdzv_why(s->st));
    forget(s);
}

static void finish_with_a_listener(struct story *s, bool heard_all)
{
    finish_in(s, false, 600 * RM_S, heard_all);
}

Test(listen, who_has_heard_of_the_last_step_saves_it_where_the_members_cant)
{
    struct story s;
    finish_with_a_listener(&s, true);
    write_fails(&s, 0, 100, CLASS_MACHINE);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "the other member may be able to: %s", rdzv_why(s.st));
    write_fails(&s, 1, 100, CLASS_MACHINE);
    cr_assert(said(&s, "send 2 stop"), "%s", str_text(&s.log));
    for (int w = 0; w < 3; w++)
        stopped(&s, w, 100, 100);
    cr_assert(s.form.form.count == 1 && s.form.form.member[0].worker == 2, "%s", str_text(&s.log));
    ready(&s, 2, 100);
    finished(&s, 2);
    checkpointed(&s, 2, 100, 0, 1, true);
    cr_assert(said(&s, "send 2 publish"), "%s", str_text(&s.log));
    published(&s, 2, 100, true);
    cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
    story_end(&s);
}

Test(listen, who_has_not_heard_all_of_it_is_not_asked_to)
{
    struct story s;
    finish_with_a_listener(&s, false);
    write_fails(&s, 0, 100, CLASS_MACHINE);
    write_fails(&s, 1, 100, CLASS_MACHINE);
    cr_assert_not(said(&s, " stop "), "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", rdzv_why(s.st));
    story_end(&s);
}

/* The first n say each 10 s that their store takes nothing, as of a disk that is full. */
static void they_wait(struct story *s, int n, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        they_live_on(s, 3, 1);
        for (int w = 0; w < n && i % 10 == 9; w++) {
            struct message m;
            message_init(&m, MSG_SAVE_WAITS);
            m.save_waits.step = 100;
            text_copy(m.save_waits.why, sizeof m.save_waits.why, "no space left on the disk");
            hear(s, w, &m);
        }
    }
}

/* They keep what they hold, and are in the ring that is formed for it. */
static void the_newcomer_saves_it(struct story *s)
{
    for (int i = 0; i < 10 && !said(s, "send 2 stop"); i++)
        they_live_on(s, 3, 1);
    cr_assert(said(s, "send 2 stop"), "%s", str_text(&s->log));
    for (int w = 0; w < 3; w++)
        stopped(s, w, 100, 100);
    cr_assert_eq(s->form.form.count, 3, "%s", str_text(&s->log));
    for (int w = 0; w < 3; w++)
        ready(s, w, 100);
    for (int w = 0; w < 3; w++)
        finished(s, w);
    cr_assert_eq(rdzv_state(s->st), RDZV_SAVING, "%s", str_text(&s->log));
    checkpointed(s, 2, 100, 2, 3, true);
    for (int i = 0; i < 9 && !said(s, "send 2 save"); i++) {
        they_wait(s, 2, 10);
        if (said(s, "send 1,2 save"))
            checkpointed(s, 2, 100, 1, 2, true);
    }
    cr_assert(said(s, "send 2 save"), "%s", str_text(&s->log));
    checkpointed(s, 2, 100, 0, 1, true);
    cr_assert(said(s, "send 2 publish"), "%s", str_text(&s->log));
    published(s, 2, 100, true);
    cr_assert_eq(s->ended, 0, "%s", str_text(&s->log));
    story_end(s);
}

Test(listen, who_has_heard_of_the_last_step_saves_it_where_the_members_store_takes_nothing_for_30_s)
{
    for (int pods = 0; pods < 2; pods++) {
        struct story s;
        finish_in(&s, pods, 600 * RM_S, true);
        they_wait(&s, 2, 35);
        cr_assert_not(said(&s, " stop "), "it may be over: %s", str_text(&s.log));
        the_newcomer_saves_it(&s);
    }
}

Test(listen, it_does_so_before_a_run_ends_whose_patience_is_shorter)
{
    struct story s;
    finish_in(&s, false, 20 * RM_S, true);
    they_wait(&s, 1, 15);
    the_newcomer_saves_it(&s);
}

Test(listen, while_a_member_has_not_said_that_it_cant_nobody_is_stopped_for_who_listens)
{
    struct story s;
    finish_with_a_listener(&s, true);
    they_wait(&s, 1, 90);
    cr_assert_not(said(&s, " stop "), "%s", str_text(&s.log));
    checkpointed(&s, 1, 100, 1, 2, true);
    they_wait(&s, 1, 45);
    cr_assert(said(&s, "send 1 save"), "its part goes to the other member: %s", str_text(&s.log));
    cr_assert_not(said(&s, " stop "), "%s", str_text(&s.log));
    story_end(&s);
}

/* Its part stands, and who wrote it writes no other one. */
Test(listen, the_part_of_one_that_has_gone_since_shows_nobody_who_could_write_another)
{
    struct story s;
    finish_in(&s, true, 600 * RM_S, true);
    checkpointed(&s, 1, 100, 1, 2, true);
    closed(&s, 1);
    they_wait(&s, 1, 35);
    for (int i = 0; i < 10 && !said(&s, "send 2 stop"); i++)
        they_live_on(&s, 3, 1);
    cr_assert(said(&s, "send 2 stop"), "%s", str_text(&s.log));
    story_end(&s);
}

/* The run would end by it. */
Test(listen, a_fault_that_nobody_waits_for_is_none_where_who_listens_holds_it)
{
    struct story s;
    finish_in(&s, false, 0, true);
    write_fails(&s, 0, 100, CLASS_MACHINE);
    write_fails(&s, 1, 100, CLASS_MACHINE);
    cr_assert(said(&s, "send 2 stop"), "%s", str_text(&s.log));
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    story_end(&s);
}
