/* One worker whose write does not return, while others come who are enough: nobody waits for its store. */
#include "tests/unit/coordinator/core/trouble_story.h"

static void write_hangs(struct story *s, int w, int64_t step, rm_time lasted)
{
    struct msg_fault f = {
        .kind = FAULT_STORAGE, .class = CLASS_MACHINE, .step = step, .detail = "the write does not return"};
    f.lasted = lasted;
    fault_says(s, w, &f);
}

static void comes(struct story *s, int w)
{
    hello(s, w, -1);
    stopped(s, w, -1, -1);
}

/* Worker 0 is the only one here of the two that are needed, and saves first what it holds. */
static void save_alone(struct story *s, struct rdzv_settings settings)
{
    story_begin(s, settings);
    if (!settings.unsupervised)
        expect_workers(s, 7);
    hello(s, 0, 45);
    stopped(s, 0, 45, 45);
    cr_assert_eq(rdzv_state(s->st), RDZV_SAVING, "%s", rdzv_why(s->st));
    write_hangs(s, 0, 45, 120 * RM_S);
    comes(s, 1);
    cr_assert_eq(rdzv_state(s->st), RDZV_SAVING, "one more is too few: %s", rdzv_why(s->st));
}

/* They get from it what it holds. */
static void go_on_without_it(struct story *s)
{
    comes(s, 2);
    for (int w = 0; w < 3; w++)
        stopped(s, w, w ? -1 : 45, w ? -1 : 45);
    they_live_on(s, 3, 1);
    cr_assert_eq(rdzv_state(s->st), RDZV_FORMING, "%s\n%s", rdzv_why(s->st), str_text(&s->log));
    cr_assert(!is_in(s, 0) && is_in(s, 1) && is_in(s, 2), "%s", str_text(&s->log));
    cr_assert(s->form.form.resume.held && s->form.form.resume.step == 45, "%s", str_text(&s->log));
    cr_assert(s->form.form.sources_count == 1 && s->form.form.source[0].worker == 0, "%s", str_text(&s->log));
    story_end(s);
}

Test(stuck, one_that_saves_what_it_holds_is_not_waited_for_once_enough_others_have_come)
{
    struct story s;
    save_alone(&s, patient(2));
    go_on_without_it(&s);
}

Test(stuck, nor_is_it_in_pods)
{
    struct story s;
    struct rdzv_settings settings = patient(2);
    settings.unsupervised = true;
    save_alone(&s, settings);
    go_on_without_it(&s);
}

static void save_waits(struct story *s, int w, int64_t step)
{
    struct message m;
    message_init(&m, MSG_SAVE_WAITS);
    m.save_waits.step = step;
    text_copy(m.save_waits.why, sizeof m.save_waits.why, "the store does not answer");
    hear(s, w, &m);
}

/* That one's call may not return either, and nobody has said so yet. */
Test(stuck, nor_does_a_run_end_as_its_store_is_away_for_long_when_enough_have_come)
{
    struct story s;
    struct rdzv_settings settings = patient(2);
    settings.join_window = 2 * RM_S;
    story_begin(&s, settings);
    expect_workers(&s, 7);
    hello(&s, 0, 45);
    stopped(&s, 0, 45, 45);
    save_waits(&s, 0, 45);
    comes(&s, 1);
    comes(&s, 2);
    they_live_on(&s, 3, 590);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", rdzv_why(s.st));
    for (int i = 0; i < 40 && rdzv_state(s.st) == RDZV_SAVING; i++)
        they_live_on(&s, 3, 1);
    cr_assert_eq(s.ended, -1, "%s", rdzv_why(s.st));
    for (int w = 0; w < 3; w++)
        stopped(&s, w, w ? -1 : 45, w ? -1 : 45);
    they_live_on(&s, 3, 1);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s\n%s", rdzv_why(s.st), str_text(&s.log));
    story_end(&s);
}

/* Its call returns each time, and it says that it waits. */
Test(stuck, nor_is_one_waited_for_whose_store_has_taken_nothing_for_30_s)
{
    for (int pods = 0; pods < 2; pods++) {
        struct story s;
        struct rdzv_settings settings = patient(2);
        settings.unsupervised = pods;
        story_begin(&s, settings);
        if (!pods)
            expect_workers(&s, 7);
        hello(&s, 0, 45);
        stopped(&s, 0, 45, 45);
        cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", rdzv_why(s.st));
        save_waits(&s, 0, 45);
        comes(&s, 1);
        comes(&s, 2);
        they_live_on(&s, 3, 25);
        save_waits(&s, 0, 45);
        cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "it may be over: %s", rdzv_why(s.st));
        they_live_on(&s, 3, 6);
        save_waits(&s, 0, 45);
        for (int w = 0; w < 3; w++)
            stopped(&s, w, w ? -1 : 45, w ? -1 : 45);
        they_live_on(&s, 3, 1);
        cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s\n%s", rdzv_why(s.st), str_text(&s.log));
        cr_assert(s.form.form.resume.held && s.form.form.resume.step == 45, "%s", str_text(&s.log));
        story_end(&s);
    }
}

Test(stuck, what_a_job_ends_with_is_waited_for_whoever_comes)
{
    struct story s;
    struct rdzv_event interrupt = {.kind = RDZV_INTERRUPT};
    save_alone(&s, patient(2));
    play(&s, &interrupt);
    comes(&s, 2);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", rdzv_why(s.st));
    story_end(&s);
}

/* For so long worker 0 waits for its own store in the midst of a step, so that no boundary comes at which
 * worker 1 could join. */
static void hold_up(struct story *s, int seconds)
{
    int64_t ring = s->generation;
    for (int i = 0; i < seconds && s->generation == ring && s->ended < 0; i++) {
        if (i % 10 == 0)
            write_hangs(s, 0, 18, (120 + i) * RM_S);
        for (int w = 0; w < 2; w++) {
            struct message m;
            message_init(&m, MSG_HEARTBEAT);
            m.heartbeat.waiting_for = -1;
            m.heartbeat.counter = w ? i + 1 : 0;
            hear(s, w, &m);
        }
        after(s, RM_S);
        if (rdzv_state(s->st) == RDZV_QUIESCING && said(s, "round=3 at=now")) {
            stopped(s, 0, 18, 18);
            stopped(s, 1, -1, -1);
        }
    }
}

static void begin_alone(struct story *s, bool pods, int most)
{
    struct rdzv_settings settings = patient(1);
    settings.workers_max = most;
    settings.step_timeout = 10 * RM_S;
    settings.unsupervised = pods;
    settings.workers_target = 1;
    settings.join_window = 2 * RM_S;
    story_begin(s, settings);
    train_with(s, 1);
    progress(s, 0, 18);
    expect_workers(s, 3);
    comes(s, 1);
    they_live_on(s, 2, 3); /* in pods another one may yet come */
    stopped(s, 1, -1, -1);
    cr_assert_eq(rdzv_state(s->st), most > 1 ? RDZV_QUIESCING : RDZV_TRAINING, "%s", rdzv_why(s->st));
}

Test(stuck, alone_in_its_ring_gives_its_state_to_those_who_wait_outside_before_its_run_ends)
{
    struct story s;
    begin_alone(&s, false, 4);
    hold_up(&s, 470);
    cr_assert_not(said(&s, "round=3 at=now"), "its patience is not over: %s", str_text(&s.log));
    hold_up(&s, 60);
    cr_assert_eq(s.ended, -1, "%s", rdzv_why(s.st));
    cr_assert(is_in(&s, 0) && is_in(&s, 1) && s.form.form.sources_count == 1, "%s", str_text(&s.log));
    story_end(&s);
}

Test(stuck, alone_in_pods_gives_it_at_once)
{
    struct story s;
    begin_alone(&s, true, 4);
    hold_up(&s, 60);
    cr_assert(is_in(&s, 0) && is_in(&s, 1) && s.form.form.sources_count == 1, "%s", str_text(&s.log));
    story_end(&s);
}

/* Nobody tells those to stop who listen, as a ring stops: it is for their sake that this one does. */
Test(stuck, who_listens_to_it_in_vain_is_told_to_stop_with_it)
{
    struct story s;
    struct rdzv_settings settings = patient(1);
    settings.step_timeout = 10 * RM_S;
    settings.unsupervised = settings.listens = true;
    settings.workers_target = 1;
    story_begin(&s, settings);
    s.listening = true;
    train_with(&s, 1);
    progress(&s, 0, 18);
    expect_workers(&s, 3);
    hello(&s, 1, -1);
    cr_assert(said(&s, "send 1 listen"), "%s", str_text(&s.log));
    for (int i = 0; i < 30 && !said(&s, "send 1 stop"); i++)
        hold_up(&s, 1);
    cr_assert(said(&s, "send 1 stop"), "%s", str_text(&s.log));
    stopped(&s, 0, 18, 18);
    stopped(&s, 1, -1, -1);
    they_live_on(&s, 2, 3);
    cr_assert(is_in(&s, 0) && is_in(&s, 1) && s.form.form.sources_count == 1, "%s", str_text(&s.log));
    story_end(&s);
}

/* Who waits outside would get no place in the ring that is formed for it. */
Test(stuck, where_all_places_are_taken_nothing_is_formed_anew_for_who_waits_outside)
{
    struct story s;
    begin_alone(&s, true, 1);
    hold_up(&s, 60);
    cr_assert_eq(s.generation, 1, "%s", str_text(&s.log));
    cr_assert_not(said(&s, "others are well"), "%s", str_text(&s.log));
    story_end(&s);
}

/* It gets nothing from who is alone in the ring, as the two can't reach each other. */
Test(stuck, nor_for_one_that_cant_reach_the_one_in_the_ring)
{
    struct story s;
    struct rdzv_settings settings = patient(1);
    settings.unsupervised = true;
    settings.workers_target = 2;
    settings.step_timeout = 10 * RM_S;
    story_begin(&s, settings);
    train_with(&s, 2);
    for (int ring = 0; ring < 3 && s.form.form.count != 1; ring++) {
        for (int w = 0; w < 2; w++)
            fault_of(&s, w, FAULT_RING, 1 - w, 0);
        for (int w = 0; w < 2; w++)
            stopped(&s, w, 0, 0);
        for (int w = 0; w < 2; w++)
            ready(&s, w, 0);
    }
    cr_assert(s.form.form.count == 1 && is_in(&s, 0), "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", rdzv_why(s.st));
    progress(&s, 0, 18);
    forget(&s);
    hold_up(&s, 60);
    cr_assert_not(said(&s, "others are well") || said(&s, " stop "), "%s", str_text(&s.log));
    cr_assert(said(&s, "does not return"), "the reason is told: %s", str_text(&s.log));
    story_end(&s);
}

/* ---- the last step, which one alone does not write ---- */

static void make_the_last_step(struct story *s, bool pods)
{
    struct rdzv_settings settings = patient(2);
    settings.steps = 100;
    settings.unsupervised = pods;
    story_begin(s, settings);
    train_with(s, 3);
    for (int w = 0; w < 3; w++)
        progress(s, w, 100);
    for (int w = 0; w < 3; w++)
        finished(s, w);
    cr_assert_eq(rdzv_state(s->st), RDZV_SAVING, "%s", rdzv_why(s->st));
}

/* At first the store takes nothing from anybody. */
static void finish_three(struct story *s, bool pods)
{
    make_the_last_step(s, pods);
    for (int w = 0; w < 3; w++)
        save_waits(s, w, 100);
}

/* All but that one (-1: all), in as many parts. */
static void others_write(struct story *s, int broken, int parts)
{
    for (int w = 0, part = 0; w < 3; w++) {
        if (w != broken)
            checkpointed(s, w, 100, parts < 3 ? part++ : w, parts, true);
    }
}

/* It says so each 10 s; silent: its call does not return. */
static void one_waits(struct story *s, int broken, int seconds, bool silent)
{
    for (int i = 0; i < seconds && s->ended < 0; i++) {
        they_live_on(s, 3, 1);
        if (i % 10 == 9 && !silent)
            save_waits(s, broken, 100);
    }
}

/* What they write takes a while, in which the pause of the one that can't is over. */
static void they_save_it(struct story *s, int broken, bool silent)
{
    int publisher = broken == 0;
    cr_assert(said(s, broken ? "send 0,1 save" : "send 1,2 save"), "%s", str_text(&s->log));
    one_waits(s, broken, 40, silent);
    others_write(s, broken, 2);
    cr_assert(said(s, publisher ? "send 1 publish" : "send 0 publish"), "%s", str_text(&s->log));
    published(s, publisher, 100, true);
    cr_assert_eq(s->ended, 0, "%s", str_text(&s->log));
    story_end(s);
}

Test(stuck, the_part_of_one_whose_store_alone_takes_nothing_for_30_s_goes_to_the_others)
{
    for (int i = 0; i < 4; i++) {
        struct story s;
        int broken = i / 2 * 2;
        finish_three(&s, i % 2);
        one_waits(&s, broken, 100, false);
        others_write(&s, broken, 3);
        forget(&s);
        one_waits(&s, broken, 25, false);
        cr_assert_not(said(&s, " save"), "it may be over for this one, too: %s", str_text(&s.log));
        one_waits(&s, broken, 6, false);
        save_waits(&s, broken, 100);
        they_save_it(&s, broken, false);
    }
}

/* All parts that are written would be void if the step were cut anew. */
Test(stuck, what_others_wrote_long_ago_is_no_reason_to_hand_on_what_fails_once)
{
    for (int pods = 0; pods < 2; pods++) {
        struct story s;
        make_the_last_step(&s, pods);
        others_write(&s, 2, 3);
        forget(&s);
        they_live_on(&s, 3, 300);
        save_waits(&s, 2, 100);
        they_live_on(&s, 3, 10);
        save_waits(&s, 2, 100);
        cr_assert_not(said(&s, " save"), "%s", str_text(&s.log));
        checkpointed(&s, 2, 100, 2, 3, true);
        cr_assert(said(&s, "send 0 publish"), "%s", str_text(&s.log));
        they_live_on(&s, 3, 10);
        save_waits(&s, 0, 100);
        cr_assert_eq(times_said(&s, " publish"), 1, "%s", str_text(&s.log));
        published(&s, 0, 100, true);
        cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
        story_end(&s);
    }
}

/* All parts that are missing in the newest cut are those of 0 and 1, whichever of them is in it. */
static void two_writes_whatever_it_is_told(struct story *s)
{
    if (said(s, "send 0,2 save") || said(s, "send 1,2 save"))
        checkpointed(s, 2, 100, 1, 2, true);
    if (said(s, "send 2 save"))
        checkpointed(s, 2, 100, 0, 1, true);
}

Test(stuck, two_whose_stores_take_nothing_do_not_hand_it_to_each_other)
{
    for (int pods = 0; pods < 2; pods++) {
        struct story s;
        finish_three(&s, pods);
        checkpointed(&s, 2, 100, 2, 3, true);
        for (int i = 0; i < 12 && !said(&s, " publish"); i++) {
            they_live_on(&s, 3, 10);
            for (int w = 0; w < 2; w++)
                save_waits(&s, w, 100);
            two_writes_whatever_it_is_told(&s);
        }
        cr_assert_eq(times_said(&s, " save "), 3, "%s", str_text(&s.log));
        cr_assert(said(&s, "send 2 publish"), "%s", str_text(&s.log));
        published(&s, 2, 100, true);
        cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
        story_end(&s);
    }
}

Test(stuck, what_it_said_of_its_part_says_nothing_of_what_it_publishes)
{
    struct story s;
    make_the_last_step(&s, false);
    others_write(&s, 0, 3);
    they_live_on(&s, 3, 300);
    save_waits(&s, 0, 100);
    they_live_on(&s, 3, 25);
    others_write(&s, -1, 3);
    cr_assert(said(&s, "send 0 publish"), "%s", str_text(&s.log));
    one_waits(&s, 0, 20, false);
    cr_assert_eq(times_said(&s, " publish"), 1, "%s", str_text(&s.log));
    one_waits(&s, 0, 20, false);
    cr_assert(said(&s, "send 1 publish"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Neither before it said so first, nor after it. */
Test(stuck, a_pause_of_the_coordinator_itself_is_none_of_those_30_s)
{
    for (int said_before = 0; said_before < 2; said_before++) {
        struct story s;
        make_the_last_step(&s, true);
        one_waits(&s, 2, 100, !said_before);
        others_write(&s, 2, 3);
        forget(&s);
        if (!said_before) {
            they_live_on(&s, 3, 100);
            save_waits(&s, 2, 100);
        }
        sleep_through(&s, 40 * RM_S);
        save_waits(&s, 2, 100);
        cr_assert_not(said(&s, " save"), "%s", str_text(&s.log));
        one_waits(&s, 2, 40, false);
        cr_assert(said(&s, "send 0,1 save"), "%s", str_text(&s.log));
        story_end(&s);
    }
}

Test(stuck, nor_does_a_publisher_whose_store_alone_takes_nothing_hold_it_up)
{
    for (int pods = 0; pods < 2; pods++) {
        struct story s;
        finish_three(&s, pods);
        others_write(&s, -1, 3);
        cr_assert(said(&s, "send 0 publish"), "%s", str_text(&s.log));
        one_waits(&s, 0, 25, false);
        cr_assert_eq(times_said(&s, " publish"), 1, "it may be over: %s", str_text(&s.log));
        one_waits(&s, 0, 20, false);
        cr_assert(said(&s, "send 1 publish"), "%s", str_text(&s.log));
        published(&s, 1, 100, true);
        cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
        story_end(&s);
    }
}

/* It is what it holds up that is not saved, and what comes after. */
Test(stuck, nor_while_training_goes_on)
{
    struct story s;
    story_begin(&s, patient(2));
    train_with(&s, 3);
    for (int w = 0; w < 3; w++)
        checkpointed(&s, w, 21, w, 3, false);
    for (int w = 0; w < 3; w++)
        progress(&s, w, 22);
    cr_assert(said(&s, "send 0 publish"), "%s", str_text(&s.log));
    for (int i = 0; i < 3; i++) {
        save_waits(&s, 0, 21);
        they_live_on(&s, 3, 9);
    }
    cr_assert_eq(times_said(&s, " publish"), 1, "it may be over: %s", str_text(&s.log));
    they_live_on(&s, 3, 4);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", rdzv_why(s.st));
    cr_assert(said(&s, "send 1 publish"), "%s", str_text(&s.log));
    published(&s, 1, 21, false);
    cr_assert(said(&s, "checkpointSaved"), "%s", str_text(&s.log));
    story_end(&s);
}

/* To publish it nobody has to hold it: of those who do one is here, and is to be gone soon. */
Test(stuck, nor_where_who_wrote_it_leaves)
{
    for (int pods = 0; pods < 2; pods++) {
        struct story s;
        make_the_last_step(&s, pods);
        others_write(&s, -1, 3);
        cr_assert(said(&s, "send 0 publish"), "%s", str_text(&s.log));
        save_waits(&s, 0, 100);
        for (int w = 1; w < 3; w++)
            leaving(&s, w);
        one_waits(&s, 0, 45, false);
        cr_assert(said(&s, "send 1 publish"), "%s", str_text(&s.log));
        published(&s, 1, 100, true);
        cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
        story_end(&s);
    }
}

/* Each of them keeps what it was to publish, and tries on. */
Test(stuck, where_no_publisher_can_each_is_asked_once)
{
    for (int pods = 0; pods < 2; pods++) {
        struct story s;
        finish_three(&s, pods);
        others_write(&s, -1, 3);
        for (int i = 0; i < 70 && s.ended < 0; i++) {
            they_live_on(&s, 3, 10);
            for (int w = 0; w < 3 && s.ended < 0; w++)
                save_waits(&s, w, 100);
        }
        for (int w = 0; w < 3; w++)
            cr_assert(said(&s, (const char *[]){"send 0 publish", "send 1 publish", "send 2 publish"}[w]));
        cr_assert_eq(times_said(&s, " publish"), 3, "%s", str_text(&s.log));
        cr_assert_eq(s.ended, pods ? -1 : 4, "%s", str_text(&s.log));
        story_end(&s);
    }
}

/* It was named just before the patience with the store was over. */
Test(stuck, nor_does_a_run_end_for_a_publisher_that_waits_where_another_one_may_publish)
{
    struct story s;
    finish_three(&s, false);
    one_waits(&s, 0, 580, false);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    others_write(&s, -1, 3);
    cr_assert(said(&s, "send 0 publish"), "%s", str_text(&s.log));
    one_waits(&s, 0, 25, false);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    cr_assert(said(&s, "send 1 publish"), "%s", str_text(&s.log));
    published(&s, 1, 100, true);
    cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
    story_end(&s);
}

Test(stuck, while_the_store_takes_nothing_from_anybody_all_wait)
{
    for (int pods = 0; pods < 2; pods++) {
        struct story s;
        finish_three(&s, pods);
        forget(&s);
        for (int i = 0; i < 50; i++) {
            one_waits(&s, 2, 10, false);
            save_waits(&s, 0, 100);
            save_waits(&s, 1, 100);
        }
        cr_assert_not(said(&s, " save"), "%s", str_text(&s.log));
        cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", rdzv_why(s.st));
        story_end(&s);
    }
}

Test(stuck, a_run_whose_store_is_back_for_others_does_not_end_for_one_whose_call_does_not_return)
{
    struct story s;
    finish_three(&s, false);
    one_waits(&s, 2, 100, true);
    others_write(&s, 2, 3);
    forget(&s);
    one_waits(&s, 2, 490, true);
    cr_assert_not(said(&s, " save"), "its patience is not over: %s", str_text(&s.log));
    one_waits(&s, 2, 15, true);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    they_save_it(&s, 2, true);
}

Test(stuck, nor_for_a_publisher_whose_call_does_not_return)
{
    struct story s;
    finish_three(&s, false);
    others_write(&s, -1, 3);
    cr_assert(said(&s, "send 0 publish"), "%s", str_text(&s.log));
    one_waits(&s, 2, 605, true);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    cr_assert(said(&s, "send 1 publish"), "%s", str_text(&s.log));
    published(&s, 1, 100, true);
    cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
    story_end(&s);
}

/* Its patience was over when they began. */
Test(stuck, but_it_ends_as_the_store_does_not_take_what_the_others_write_then)
{
    struct story s;
    finish_three(&s, false);
    others_write(&s, 2, 3);
    one_waits(&s, 2, 605, true);
    cr_assert(said(&s, "send 0,1 save"), "%s", str_text(&s.log));
    save_waits(&s, 2, 100);
    cr_assert_eq(s.ended, -1, "nobody waits for this one: %s", str_text(&s.log));
    checkpointed(&s, 0, 100, 0, 2, true);
    save_waits(&s, 1, 100);
    cr_assert_eq(s.ended, 4, "%s", str_text(&s.log));
    cr_assert(said(&s, "given up after checkpoint.endTimeout; the store does not answer"), "%s",
              str_text(&s.log));
    story_end(&s);
}
