/* Who holds what is saved nowhere, and was told to go. */
#include "coordinator/core/rdzv_leave.h"
#include "tests/unit/coordinator/core/story.h"

static const struct leave_facts all_go = {.wanted = true,
                                          .step = 57,
                                          .saved = 50,
                                          .going = 2,
                                          .left = {10 * RM_S, 10 * RM_S},
                                          .under_way = -1,
                                          .speed = {.bytes = 1000, .writer = 100, .publisher = 1000}};

static struct leave_facts with(void (*change)(struct leave_facts *f))
{
    struct leave_facts f = all_go;
    change(&f);
    return f;
}

static void all_have(struct leave_facts *f, rm_time left)
{
    for (int i = 0; i < f->going; i++)
        f->left[i] = left;
}
static void enough_stay(struct leave_facts *f)
{
    f->staying = 1, f->enough = true;
}
static void enough_stay_and_time_is_short(struct leave_facts *f)
{
    enough_stay(f), all_have(f, RM_MS);
}
static void who_has_come_is_given_it_in_time(struct leave_facts *f)
{
    f->enough = f->given_in_time = true;
}
static void who_has_come_can_not_be_given_it(struct leave_facts *f)
{
    f->enough = true;
}
static void nor_is_there_time_to_save_it(struct leave_facts *f)
{
    f->enough = true, all_have(f, 5 * RM_S);
}
static void nor_that_but_a_save_is_under_way(struct leave_facts *f)
{
    nor_is_there_time_to_save_it(f), f->under_way = 55;
}
static void too_few_have_come(struct leave_facts *f)
{
    f->given_in_time = true;
}
static void too_few_stay(struct leave_facts *f)
{
    f->staying = 1;
}
static void too_few_stay_and_time_is_short(struct leave_facts *f)
{
    f->staying = 1, all_have(f, RM_MS);
}
static void one_has_no_time(struct leave_facts *f)
{
    f->left[0] = RM_MS, f->left[1] = 14 * RM_S;
}
static void one_has_no_time_and_the_other_too_little(struct leave_facts *f)
{
    f->left[0] = RM_MS, f->left[1] = 13 * RM_S;
}
static void both_write_and_one_publishes(struct leave_facts *f)
{
    f->left[0] = 7 * RM_S, f->left[1] = 8 * RM_S;
}
static void a_save_is_under_way(struct leave_facts *f)
{
    all_have(f, 5 * RM_S), f->under_way = 55;
}
static void a_save_is_under_way_and_nobody_can_end_it(struct leave_facts *f)
{
    all_have(f, RM_S), f->under_way = 55;
}
static void what_is_under_way_is_older_than_what_stands(struct leave_facts *f)
{
    all_have(f, 5 * RM_S), f->under_way = 49;
}
static void a_save_is_under_way_and_there_is_time_for_more(struct leave_facts *f)
{
    f->under_way = 55;
}
static void it_is_saved(struct leave_facts *f)
{
    f->saved = 57;
}
static void it_is_not_wanted(struct leave_facts *f)
{
    f->wanted = false;
}
static void time_is_short(struct leave_facts *f)
{
    all_have(f, 5 * RM_S);
}
static void time_is_just_not_enough(struct leave_facts *f)
{
    all_have(f, 7 * RM_S);
}
static void time_is_just_enough(struct leave_facts *f)
{
    all_have(f, 8 * RM_S);
}
static void one_writes_alone(struct leave_facts *f)
{
    f->going = 1;
}
static void nobody_said_how_long(struct leave_facts *f)
{
    all_have(f, RM_NEVER), f->speed.writer = 1;
}
static void nothing_was_measured(struct leave_facts *f)
{
    all_have(f, RM_MS), f->speed.writer = 0;
}
static void the_size_is_not_known(struct leave_facts *f)
{
    all_have(f, RM_MS), f->speed.bytes = 0;
}
static void nothing_changes(struct leave_facts *f)
{
    (void)f;
}

Test(leave, what_is_done_follows_from_who_holds_it_and_from_the_time_that_is_left)
{
    static const struct {
        void (*change)(struct leave_facts *f);
        enum leave_choice choice;
    } cases[] = {
        {nothing_changes, LEAVE_SAVE},
        {enough_stay, LEAVE_HAND_OVER},
        {enough_stay_and_time_is_short, LEAVE_HAND_OVER},
        {who_has_come_is_given_it_in_time, LEAVE_HAND_OVER},
        {who_has_come_can_not_be_given_it, LEAVE_SAVE},
        {nor_is_there_time_to_save_it, LEAVE_TOO_LATE},
        {nor_that_but_a_save_is_under_way, LEAVE_FINISH},
        {too_few_have_come, LEAVE_SAVE},
        {too_few_stay, LEAVE_SAVE},
        {too_few_stay_and_time_is_short, LEAVE_SAVE},
        {one_has_no_time, LEAVE_SAVE},
        {one_has_no_time_and_the_other_too_little, LEAVE_TOO_LATE},
        {both_write_and_one_publishes, LEAVE_SAVE},
        {a_save_is_under_way, LEAVE_FINISH},
        {a_save_is_under_way_and_nobody_can_end_it, LEAVE_TOO_LATE},
        {what_is_under_way_is_older_than_what_stands, LEAVE_TOO_LATE},
        {a_save_is_under_way_and_there_is_time_for_more, LEAVE_SAVE},
        {it_is_saved, LEAVE_IS_SAVED},
        {it_is_not_wanted, LEAVE_OFF},
        {time_is_short, LEAVE_TOO_LATE},
        {time_is_just_not_enough, LEAVE_TOO_LATE},
        {time_is_just_enough, LEAVE_SAVE},
        {one_writes_alone, LEAVE_TOO_LATE},
        {nobody_said_how_long, LEAVE_SAVE},
        {nothing_was_measured, LEAVE_SAVE},
        {the_size_is_not_known, LEAVE_SAVE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct leave_facts f = with(cases[i].change);
        cr_assert_eq(leave_decide(&f), cases[i].choice, "case %zu", i);
    }
    cr_assert_eq(leave_takes(&all_go.speed, 2), 6 * RM_S, "two write 500 each, one reads all of it back");
}

Test(leave, who_has_the_time_for_its_part_writes_it)
{
    static const struct {
        int staying, going, writers;
        rm_time left[3];
    } cases[] = {
        {0, 3, 3, {20 * RM_S, 20 * RM_S, 20 * RM_S}},
        {0, 3, 2, {RM_S, 20 * RM_S, 20 * RM_S}},
        {0, 3, 1, {RM_S, 2 * RM_S, 20 * RM_S}},
        {0, 3, 3, {5 * RM_S, 5 * RM_S, 20 * RM_S}}, /* each has 3.3 s to write */
        {0, 3, -1, {RM_S, 2 * RM_S, 3 * RM_S}},
        {1, 2, 2, {5 * RM_S, 5 * RM_S}},
        {1, 2, 0, {RM_S, RM_S}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct leave_facts f = all_go;
        f.staying = cases[i].staying;
        f.going = cases[i].going;
        memcpy(f.left, cases[i].left, sizeof cases[i].left);
        cr_assert_eq(leave_writers(&f), cases[i].writers, "case %zu", i);
    }
}

Test(leave, a_state_that_is_left_behind_is_told_with_the_times_and_with_what_stands)
{
    char text[400];
    struct leave_facts f = with(time_is_short);
    leave_sentence(&f, LEAVE_TOO_LATE, text, sizeof text);
    cr_assert_str_eq(text, "all who hold step 57 leave within 5.0 s, and saving it takes about 6.0 s; the "
                           "checkpoint of step 50 stands");
    f.under_way = 55;
    leave_sentence(&f, LEAVE_FINISH, text, sizeof text);
    cr_assert_str_eq(text, "all who hold step 57 leave within 5.0 s, and saving it takes about 6.0 s; the "
                           "save of step 55 that is under way goes on");
    f.saved = -1;
    leave_sentence(&f, LEAVE_OFF, text, sizeof text);
    cr_assert_str_eq(
        text, "all who hold step 57 leave, and checkpoint.onPreemption is false; there is no checkpoint");
}

/* A checkpoint of 1 MB that took a second to write and a second to publish. */
static void save_slowly(struct story *s, int64_t number)
{
    struct message m;
    message_init(&m, MSG_CHECKPOINTED);
    m.checkpointed.step = number;
    m.checkpointed.exact = true;
    memcpy(m.checkpointed.lineage, state_of(number).lineage, RM_HASH_BYTES);
    m.checkpointed.parts = m.checkpointed.count = 1;
    m.checkpointed.piece[0].bytes = 1000000;
    m.checkpointed.took = RM_S;
    hear(s, 0, &m);
    message_init(&m, MSG_PUBLISHED);
    m.published.step = number;
    m.published.bytes = 1000000;
    m.published.took = RM_S;
    hear(s, 0, &m);
}

static void leaving_within(struct story *s, int w, rm_time time)
{
    struct message m;
    message_init(&m, MSG_LEAVING);
    text_copy(m.leaving.reason, sizeof m.leaving.reason, "SIGTERM");
    m.leaving.deadline = time;
    hear(s, w, &m);
}

/* All of two train at step 9, and are told to go. */
static void all_leave_within(struct story *s, struct rdzv_settings settings, rm_time time)
{
    story_begin(s, settings);
    train_with(s, 2);
    progress(s, 0, 8);
    save_slowly(s, 8);
    progress(s, 0, 9);
    leaving_within(s, 0, time);
    leaving_within(s, 1, time);
    after(s, 600 * RM_MS);
    stopped(s, 0, 9, 9);
    stopped(s, 1, 9, 9);
}

Test(leave, all_who_go_with_time_enough_save_what_they_hold)
{
    struct story s;
    all_leave_within(&s, story_settings(1), 30 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", str_text(&s.log));
    checkpointed(&s, 0, 9, 0, 2, false);
    checkpointed(&s, 1, 9, 1, 2, false);
    published(&s, 0, 9, false);
    cr_assert_eq(s.ended, 6);
    cr_assert(said(&s, "the newest checkpoint is of step 9"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(leave, all_who_go_at_once_say_that_the_older_checkpoint_stands)
{
    struct story s;
    all_leave_within(&s, story_settings(1), RM_S);
    cr_assert(said(&s, "checkpointSkipped"), "%s", str_text(&s.log));
    cr_assert(said(&s, "the checkpoint of step 8 stands"));
    cr_assert_not(said(&s, "save step=9"));
    cr_assert_eq(s.ended, 6);
    story_end(&s);
}

Test(leave, a_job_that_does_not_want_it_saves_nothing_when_its_workers_are_taken_away)
{
    struct story s;
    struct rdzv_settings settings = story_settings(1);
    settings.leave_unsaved = true;
    all_leave_within(&s, settings, 30 * RM_S);
    cr_assert(said(&s, "checkpoint.onPreemption is false"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "save step=9"));
    story_end(&s);
}

Test(leave, who_can_not_save_in_time_still_hands_over_to_one_that_comes_in_time)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 1);
    save_slowly(&s, 8);
    progress(&s, 0, 9);
    expect_workers(&s, 3);
    leaving_within(&s, 0, RM_S);
    after(&s, 600 * RM_MS);
    stopped(&s, 0, 9, 9);
    cr_assert(said(&s, "checkpointSkipped"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "release"), "%s", str_text(&s.log));
    hello(&s, 1, -1);
    stopped(&s, 1, -1, -1);
    cr_assert_eq(s.form.form.member[0].role, ROLE_RECEIVE, "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.resume.step, 9);
    story_end(&s);
}

Test(leave, who_stays_holds_it_and_nothing_is_saved)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 2);
    progress(&s, 0, 9);
    leaving_within(&s, 1, RM_MS);
    after(&s, 600 * RM_MS);
    stopped(&s, 0, 9, 9);
    stopped(&s, 1, 9, 9);
    cr_assert_eq(s.form.form.count, 1, "%s", str_text(&s.log));
    cr_assert_not(said(&s, "save"));
    story_end(&s);
}

Test(leave, pods_that_can_not_save_in_time_are_let_go_and_the_coordinator_waits_for_others)
{
    struct story s;
    struct rdzv_settings settings = story_settings(1);
    settings.unsupervised = true;
    settings.workers_target = 2;
    all_leave_within(&s, settings, RM_S);
    cr_assert(said(&s, "the checkpoint of step 8 stands"), "%s", str_text(&s.log));
    cr_assert(said(&s, "send 0 release") && said(&s, "send 1 release"), "%s", str_text(&s.log));
    cr_assert_eq(s.ended, -1);
    story_end(&s);
}

/* Else nobody would be there to publish what all have written, and be told it. */
Test(leave, where_a_save_is_under_way_and_more_would_be_too_late_that_one_is_finished)
{
    struct story s;
    struct rdzv_settings settings = story_settings(1);
    settings.unsupervised = true;
    settings.workers_target = 2;
    story_begin(&s, settings);
    first_come(&s, 2);
    for (int w = 0; w < 2; w++)
        listed(&s, w, -1, -1);
    after(&s, settings.join_window);
    for (int w = 0; w < 2; w++)
        ready(&s, w, 0);
    progress(&s, 0, 8);
    save_slowly(&s, 8);
    progress(&s, 0, 10);
    s.st->save_speed.bytes = 4000000; /* 2 s to write, 4 to read back */
    checkpointed(&s, 0, 9, 0, 2, false);
    leaving_within(&s, 0, 6 * RM_S);
    leaving_within(&s, 1, 6 * RM_S);
    after(&s, 100 * RM_MS);
    forget(&s);
    stopped(&s, 0, 10, 10);
    stopped(&s, 1, 10, 10);
    cr_assert(said(&s, "the save of step 9 that is under way goes on"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "release"), "%s", str_text(&s.log));
    checkpointed(&s, 1, 9, 1, 2, false);
    cr_assert(said(&s, "publish"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "release"), "%s", str_text(&s.log));
    published(&s, s.st->collection[0].publisher >= 0 ? s.st->collection[0].publisher : 0, 9, false);
    cr_assert_not(said(&s, "release"), "step 10 may still be handed over: %s", str_text(&s.log));
    after(&s, 4 * RM_S);
    cr_assert(said(&s, "send 0 release") && said(&s, "send 1 release"), "%s", str_text(&s.log));
    cr_assert_eq(s.st->saved, 9);
    story_end(&s);
}

Test(leave, who_goes_before_its_part_would_be_written_writes_none)
{
    struct story s;
    story_begin(&s, story_settings(1));
    train_with(&s, 2);
    progress(&s, 0, 8);
    save_slowly(&s, 8);
    progress(&s, 0, 9);
    leaving_within(&s, 0, 650 * RM_MS);
    leaving_within(&s, 1, 30 * RM_S);
    after(&s, 600 * RM_MS);
    stopped(&s, 0, 9, 9);
    stopped(&s, 1, 9, 9);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", str_text(&s.log));
    cr_assert(s.st->save.count == 1 && s.st->save.worker[0] == 1, "%d write", s.st->save.count);
    story_end(&s);
}

/* ---- who has come, or comes, in the place of the last who hold it ---- */

/* Of a whole one the part takes writer_s, and reading it back publisher_s. */
static void saving_takes(struct story *s, int writer_s, int publisher_s)
{
    s->st->save_speed = (struct rdzv_save_speed){
        .bytes = 1000, .writer = 1000.0 / writer_s, .publisher = 1000.0 / publisher_s};
}

/* One worker in a pod, at step 9, is told to go within that time, and has stopped. */
static void the_last_one_goes(struct story *s, int writer_s, rm_time time)
{
    struct rdzv_settings settings = story_settings(1);
    settings.unsupervised = true;
    settings.workers_target = 1;
    story_begin(s, settings);
    first_come(s, 1);
    listed(s, 0, -1, -1);
    after(s, settings.join_window);
    ready(s, 0, 0);
    progress(s, 0, 9);
    saving_takes(s, writer_s, 1);
    forget(s);
    leaving_within(s, 0, time);
    stopped(s, 0, 9, 9);
}

static void another_one_comes(struct story *s)
{
    hello(s, 1, -1);
    stopped(s, 1, -1, -1);
    after(s, 200 * RM_MS);
}

/* And whoever is here moves. */
static void passes(struct story *s, rm_time time)
{
    for (rm_time end = s->now + time; s->now < end;) {
        for (int w = 0; w < 2; w++) {
            struct message m;
            message_init(&m, MSG_HEARTBEAT);
            m.heartbeat.counter = s->now / RM_MS;
            m.heartbeat.waiting_for = -1;
            if (s->conn[w] >= 0)
                hear(s, w, &m);
        }
        after(s, rm_earlier(RM_S, end - s->now));
    }
}

Test(leave, the_last_who_can_not_save_it_stays_for_one_that_may_come_as_long_as_it_could_hand_it_over)
{
    struct story s;
    the_last_one_goes(&s, 60, 20 * RM_S);
    cr_assert(said(&s, "checkpointSkipped"), "%s", str_text(&s.log));
    passes(&s, 10 * RM_S);
    cr_assert_not(said(&s, "release"), "%s", str_text(&s.log));
    another_one_comes(&s);
    cr_assert_eq(s.form.form.count, 1, "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.member[0].role, ROLE_RECEIVE);
    cr_assert_eq(s.form.form.resume.step, 9);
    story_end(&s);
}

Test(leave, where_nobody_comes_it_is_let_go_when_it_could_hand_nothing_over_any_more)
{
    struct story s;
    the_last_one_goes(&s, 60, 20 * RM_S);
    s.st->handing = 8 * RM_S; /* and a quarter more */
    passes(&s, 9 * RM_S);
    cr_assert_not(said(&s, "release"), "%s", str_text(&s.log));
    passes(&s, 2 * RM_S);
    cr_assert(said(&s, "send 0 release"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(leave, who_has_come_and_can_not_be_given_it_in_time_reads_what_is_saved_first)
{
    struct story s;
    the_last_one_goes(&s, 60, 20 * RM_S);
    hello(&s, 1, -1);
    saving_takes(&s, 3, 1);
    s.st->handing = 30 * RM_S;
    stopped(&s, 1, -1, -1);
    after(&s, 200 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", str_text(&s.log));
    cr_assert(s.st->save.count == 1 && s.st->save.worker[0] == 0);
    checkpointed(&s, 0, 9, 0, 1, false);
    published(&s, 0, 9, false);
    cr_assert(said(&s, "send 0 release"), "%s", str_text(&s.log));
    listed(&s, 1, 9, -1);
    after(&s, 200 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.member[0].role, ROLE_LOAD);
    cr_assert_eq(s.form.form.resume.step, 9);
    story_end(&s);
}

Test(leave, a_save_that_is_under_way_is_finished_before_a_ring_that_could_not_be_given_more)
{
    struct story s;
    the_last_one_goes(&s, 60, 20 * RM_S);
    hello(&s, 1, -1);
    s.st->handing = 30 * RM_S;
    checkpointed(&s, 0, 8, 0, 2, false);
    stopped(&s, 1, -1, -1);
    after(&s, RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "%s", str_text(&s.log));
    cr_assert_gt(rdzv_deadline(s.st), s.now, "nothing is due before its end");
    checkpointed(&s, 0, 8, 1, 2, false);
    published(&s, 0, 8, false);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "as small as that one was there is time: %s",
                 str_text(&s.log));
    story_end(&s);
}

/* Worker 1 receives from worker 0, which is killed in 20 s; saving takes 4 s, and a quarter. */
static void one_receives(struct story *s, rm_time handing)
{
    the_last_one_goes(s, 60, 20 * RM_S);
    s->st->handing = handing;
    another_one_comes(s);
    saving_takes(s, 3, 1);
    cr_assert_eq(s->form.form.member[0].role, ROLE_RECEIVE, "%s", str_text(&s->log));
    forget(s);
}

Test(leave, a_handing_over_that_takes_until_there_is_only_the_time_to_save_it_gives_way_to_that)
{
    struct story s;
    one_receives(&s, 0);
    passes(&s, 12 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", rdzv_why(s.st));
    passes(&s, RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", rdzv_why(s.st));
    stopped(&s, 1, -1, -1);
    stopped(&s, 0, 9, 9);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(leave, one_that_will_be_through_before_its_source_is_killed_goes_on)
{
    struct story s;
    one_receives(&s, 15 * RM_S);
    passes(&s, 17 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", rdzv_why(s.st));
    ready(&s, 1, 9);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", rdzv_why(s.st));
    story_end(&s);
}

Test(leave, with_those_who_give_the_state_about_to_go_no_more_are_waited_for_than_there_is_time)
{
    struct story s;
    struct rdzv_settings settings = story_settings(1);
    the_last_one_goes(&s, 60, 20 * RM_S);
    s.st->settings.join_window = 60 * RM_S;
    s.st->settings.workers_target = settings.workers_max;
    s.st->handing = 4 * RM_S;
    another_one_comes(&s);
    passes(&s, 7 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "%s", rdzv_why(s.st));
    passes(&s, RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", rdzv_why(s.st));
    story_end(&s);
}

Test(leave, how_long_a_handing_over_takes_is_measured_by_who_waited_longest)
{
    struct story s;
    struct message m;
    the_last_one_goes(&s, 60, 20 * RM_S);
    another_one_comes(&s);
    message_init(&m, MSG_READY);
    m.ready.state = state_of(9);
    m.ready.trainer_pid = s.trainer[1];
    m.ready.state_time = 3 * RM_S;
    hear(&s, 1, &m);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    cr_assert_eq(s.st->handing, 3 * RM_S);
    story_end(&s);
}

Test(leave, a_save_whose_bytes_and_times_are_any_numbers_takes_a_year_at_most)
{
    struct story s;
    struct message m;
    story_begin(&s, story_settings(1));
    train_with(&s, 1);
    message_init(&m, MSG_CHECKPOINTED);
    m.checkpointed.parts = m.checkpointed.count = 1;
    m.checkpointed.piece[0].bytes = 1;
    m.checkpointed.took = MSG_NUMBER_MOST;
    rdzv_measure_slice(s.st, &m.checkpointed);
    message_init(&m, MSG_PUBLISHED);
    m.published.bytes = 1;
    m.published.took = MSG_NUMBER_MOST;
    rdzv_measure_publishing(s.st, &m.published);
    m.published.bytes = MSG_NUMBER_MOST;
    m.published.took = 0;
    rdzv_measure_publishing(s.st, &m.published);
    rm_time year = 365 * 86400 * RM_S;
    cr_assert_eq(leave_takes(&s.st->save_speed, 1), 2 * year);
    story_end(&s);
}
