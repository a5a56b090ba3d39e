/* Who holds what is saved nowhere, and was told to go. */
#include "coordinator/core/rdzv_leave.h"
#include "tests/unit/coordinator/core/story.h"

static const struct leave_facts all_go = {.wanted = true,
                                          .step = 57,
                                          .saved = 50,
                                          .going = 2,
                                          .left = 10 * RM_S,
                                          .bytes = 1000,
                                          .writer = 100,
                                          .publisher = 1000};

static struct leave_facts with(void (*change)(struct leave_facts *f))
{
    struct leave_facts f = all_go;
    change(&f);
    return f;
}

static void somebody_stays(struct leave_facts *f)
{
    f->staying = 1;
}
static void somebody_stays_and_time_is_short(struct leave_facts *f)
{
    f->staying = 1, f->left = RM_MS;
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
    f->left = 5 * RM_S;
}
static void time_is_just_not_enough(struct leave_facts *f)
{
    f->left = 7 * RM_S;
}
static void time_is_just_enough(struct leave_facts *f)
{
    f->left = 8 * RM_S;
}
static void one_writes_alone(struct leave_facts *f)
{
    f->going = 1;
}
static void nobody_said_how_long(struct leave_facts *f)
{
    f->left = RM_NEVER, f->writer = 1;
}
static void nothing_was_measured(struct leave_facts *f)
{
    f->left = RM_MS, f->writer = 0;
}
static void the_size_is_not_known(struct leave_facts *f)
{
    f->left = RM_MS, f->bytes = 0;
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
        {somebody_stays, LEAVE_HAND_OVER},
        {somebody_stays_and_time_is_short, LEAVE_HAND_OVER},
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
    cr_assert_eq(leave_takes(&all_go), 6 * RM_S, "two write 500 each, one reads all of it back");
}

Test(leave, a_state_that_is_left_behind_is_told_with_the_times_and_with_what_stands)
{
    char text[400];
    struct leave_facts f = with(time_is_short);
    leave_sentence(&f, LEAVE_TOO_LATE, text, sizeof text);
    cr_assert_str_eq(text, "all who hold step 57 leave within 5.0 s, and saving it takes about 6.0 s; the "
                           "checkpoint of step 50 stands");
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
