/* One of the machines sees another folder of checkpoints under the same name. */
#include <stdio.h>

#include "tests/unit/coordinator/core/story.h"

static struct rdzv_settings patient(int min, bool pods)
{
    struct rdzv_settings settings = story_settings(min);
    settings.steps = 1000;
    settings.end_timeout = settings.save_patience = 600 * RM_S;
    settings.lost_after = settings.step_timeout = 3600 * RM_S;
    settings.max_restarts = 0;
    settings.unsupervised = pods;
    return settings;
}

/* newest: -1 where it is empty. folder: "" where it can't say which one it is. */
static void lists_of(struct story *s, int w, const char *folder, int64_t newest)
{
    struct message m;
    message_init(&m, MSG_CHECKPOINTS);
    text_copy(m.checkpoints.folder, sizeof m.checkpoints.folder, folder);
    if (newest >= 0) {
        struct msg_checkpoint *c = &m.checkpoints.checkpoint[m.checkpoints.count++];
        c->step = newest;
        memcpy(c->lineage, state_of(newest).lineage, RM_HASH_BYTES);
        text_copy(c->fingerprint, sizeof c->fingerprint, "cpu-a");
    }
    hear(s, w, &m);
}

/* What each of three machines sees; whoever is asked says it. */
struct machines {
    const char *folder[3];
    int64_t newest[3];
    int answered[3];
};

static int asked(const struct story *s, int w)
{
    char text[32];
    int times = 0;
    snprintf(text, sizeof text, "send %d list", w);
    for (const char *at = str_text(&s->log); (at = strstr(at, text)); at++)
        times++;
    return times;
}

static void answer(struct story *s, struct machines *see)
{
    for (int w = 0; w < 3; w++) {
        while (s->conn[w] >= 0 && see->answered[w] < asked(s, w)) {
            see->answered[w]++;
            lists_of(s, w, see->folder[w], see->newest[w]);
        }
    }
}

static void begin(struct story *s, struct rdzv_settings settings, struct machines *see)
{
    story_begin(s, settings);
    if (!settings.unsupervised)
        expect_workers(s, 7);
    first_come(s, 3);
    answer(s, see);
}

static bool forms_with(const struct story *s, int count, const int *workers)
{
    bool same = rdzv_state(s->st) == RDZV_FORMING && s->form.form.count == count;
    for (int r = 0; same && r < count; r++)
        same = s->form.form.member[r].worker == workers[r];
    return same;
}

/* Members that are there go on; whoever is asked for a list answers within the second. */
static void train_for(struct story *s, int seconds, int64_t from, struct machines *see)
{
    for (int i = 0; i < seconds && s->ended < 0; i++) {
        after(s, RM_S);
        for (int w = 0; w < 2; w++)
            progress(s, w, from + i + 1);
        answer(s, see);
    }
}

static const char sentence[] =
    "the folder of checkpoints on its machine is another one than the job's, which worker 0 "
    "sees: is the volume that all share mounted there?";

Test(folders, one_that_sees_another_folder_is_left_out_and_the_others_train)
{
    for (int pods = 0; pods < 2; pods++) {
        struct machines see = {{"shared", "shared", "own"}, {-1, -1, -1}, {0}};
        struct story s;
        begin(&s, patient(2, pods), &see);
        cr_assert_not(forms_with(&s, 3, (int[]){0, 1, 2}), "%s", str_text(&s.log));
        answer(&s, &see);
        after(&s, 100 * RM_MS);
        cr_assert(forms_with(&s, 2, (int[]){0, 1}), "%s", str_text(&s.log));
        for (int w = 0; w < 2; w++)
            ready(&s, w, 0);
        cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
        train_for(&s, 80, 0, &see);
        cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "nobody waits for it: %s", str_text(&s.log));
        cr_assert(said(&s, "send 2 abandon") && said(&s, sentence), "%s", str_text(&s.log));
        cr_assert_not(said(&s, "send 0 abandon") || said(&s, "send 1 abandon"), "%s", str_text(&s.log));
        story_end(&s);
    }
}

Test(folders, one_whose_volume_is_mounted_late_joins)
{
    struct machines see = {{"shared", "shared", "own"}, {-1, -1, -1}, {0}};
    struct story s;
    begin(&s, patient(2, true), &see);
    answer(&s, &see);
    after(&s, 100 * RM_MS);
    for (int w = 0; w < 2; w++)
        ready(&s, w, 0);
    train_for(&s, 5, 0, &see);
    cr_assert_not(said(&s, "abandon"), "%s", str_text(&s.log));
    see.folder[2] = "shared";
    train_for(&s, 10, 5, &see);
    cr_assert(said(&s, "at=boundary"), "it joins: %s", str_text(&s.log));
    story_end(&s);
}

Test(folders, one_that_alone_lists_a_newer_checkpoint_sends_nobody_else_away)
{
    struct machines see = {{"shared", "shared", "own"}, {200, 200, 300}, {0}};
    struct story s;
    begin(&s, patient(2, false), &see);
    answer(&s, &see);
    after(&s, 100 * RM_MS);
    cr_assert(forms_with(&s, 2, (int[]){0, 1}), "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.resume.step, 200);
    cr_assert_not(said(&s, "abandon"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Two volumes are not mounted, and the third is the one. */
Test(folders, checkpoints_that_one_alone_sees_are_worth_more_than_folders_that_are_empty)
{
    struct machines see = {{"own 0", "own 1", "shared"}, {-1, -1, 200}, {0}};
    struct story s;
    begin(&s, patient(1, false), &see);
    answer(&s, &see);
    after(&s, 100 * RM_MS);
    cr_assert(forms_with(&s, 1, (int[]){2}), "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.resume.step, 200);
    story_end(&s);
}

Test(folders, one_that_can_not_say_which_folder_it_sees_takes_part)
{
    struct machines see = {{"shared", "", "shared"}, {200, 200, 200}, {0}};
    struct story s;
    begin(&s, patient(2, false), &see);
    cr_assert(forms_with(&s, 3, (int[]){0, 1, 2}), "%s", str_text(&s.log));
    story_end(&s);
}

Test(folders, a_newcomer_is_asked_which_folder_it_sees_while_nobody_needs_a_list)
{
    struct machines see = {{"shared", "shared", "own"}, {-1, -1, -1}, {0}};
    struct rdzv_settings settings = patient(2, true);
    struct story s;
    settings.join_window = 5 * RM_S;
    settings.workers_target = 2;
    story_begin(&s, settings);
    first_come(&s, 2);
    answer(&s, &see);
    for (int w = 0; w < 2; w++)
        ready(&s, w, 0);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    hello(&s, 2, -1);
    cr_assert(said(&s, "send 2 list"), "%s", str_text(&s.log));
    answer(&s, &see);
    train_for(&s, 80, 0, &see);
    cr_assert_not(said(&s, "at=boundary"), "it joins no ring: %s", str_text(&s.log));
    cr_assert(said(&s, "send 2 abandon") && said(&s, sentence), "%s", str_text(&s.log));
    story_end(&s);
}

static void can_not_list(struct story *s, int w)
{
    struct msg_fault f = {.kind = FAULT_STORAGE, .class = CLASS_OBJECT, .step = -1, .exit_code = 3};
    f.reading = true;
    snprintf(f.detail, sizeof f.detail, "every checkpoint is damaged");
    fault_says(s, w, &f);
}

/* 0 and 1 train, and 2 and 3 come. */
static void let_two_come(struct story *s, struct machines *see)
{
    struct rdzv_settings settings = patient(2, true);
    settings.join_window = 5 * RM_S;
    settings.workers_target = 4;
    story_begin(s, settings);
    first_come(s, 2);
    answer(s, see);
    after(s, 5 * RM_S);
    for (int w = 0; w < 2; w++)
        ready(s, w, 0);
    cr_assert_eq(rdzv_state(s->st), RDZV_TRAINING, "%s", str_text(&s->log));
    for (int w = 2; w < 4; w++)
        hello(s, w, -1);
}

Test(folders, newcomers_that_can_not_list_end_no_job_that_needs_no_list)
{
    struct machines see = {{"shared", "shared", "shared"}, {-1, -1, -1}, {0}};
    struct story s;
    let_two_come(&s, &see);
    for (int w = 2; w < 4; w++)
        can_not_list(&s, w);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    cr_assert_eq(asked(&s, 2), 1, "once: %s", str_text(&s.log));
    see.answered[2] = 1; /* it did not */
    train_for(&s, 10, 0, &see);
    cr_assert(said(&s, "at=boundary"), "they join: %s", str_text(&s.log));
    story_end(&s);
}

/* It was asked before anybody trained, and is so again, for its folder's sake. */
Test(folders, one_that_hangs_in_a_list_can_have_the_state_from_the_others)
{
    struct machines see = {{"shared", "shared", "shared"}, {-1, -1, -1}, {0}};
    struct rdzv_settings settings = patient(2, false);
    struct msg_fault f = {
        .kind = FAULT_STORAGE, .class = CLASS_MACHINE, .step = -1, .detail = "nothing returns"};
    struct story s;
    f.reading = true;
    story_begin(&s, settings);
    expect_workers(&s, 7);
    first_come(&s, 3);
    see.answered[2] = 99;
    answer(&s, &see);
    f.lasted = 30 * RM_S;
    fault_says(&s, 2, &f);
    after(&s, RM_MS);
    answer(&s, &see); /* the others are asked anew */
    after(&s, 200 * RM_MS);
    cr_assert(forms_with(&s, 2, (int[]){0, 1}), "%s", str_text(&s.log));
    for (int w = 0; w < 2; w++)
        ready(&s, w, 0);
    for (int i = 0; i < 60; i++) {
        train_for(&s, 1, i, &see);
        f.lasted += RM_S;
        if (i % 10 == 1)
            fault_says(&s, 2, &f);
    }
    cr_assert_not(said(&s, "workerQuarantined"), "%s", str_text(&s.log));
    cr_assert(said(&s, "at=boundary"), "it joins: %s", str_text(&s.log));
    story_end(&s);
}

/* Its list came late. */
Test(folders, a_member_that_turns_out_to_see_another_folder_is_left_out_too)
{
    struct machines see = {{"shared", "shared", "own"}, {-1, -1, -1}, {0}};
    struct story s;
    begin(&s, patient(2, true), &(struct machines){{"shared", "shared", ""}, {-1, -1, -1}, {0}});
    for (int w = 0; w < 3; w++) {
        see.answered[w] = asked(&s, w);
        ready(&s, w, 0);
    }
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    lists_of(&s, 2, "own", -1);
    train_for(&s, 80, 0, &see);
    cr_assert(said(&s, "send 2 abandon") && said(&s, sentence), "%s", str_text(&s.log));
    story_end(&s);
}

Test(folders, where_nobody_can_do_without_it_a_run_ends_with_the_sentence)
{
    struct machines see = {{"shared", "shared", "own"}, {-1, -1, -1}, {0}};
    struct story s;
    begin(&s, patient(3, false), &see);
    for (int i = 0; i < 700 && s.ended < 0; i++) {
        after(&s, RM_S);
        answer(&s, &see);
    }
    cr_assert_eq(s.ended, 4, "%s", str_text(&s.log));
    cr_assert(said(&s, sentence), "%s", str_text(&s.log));
    story_end(&s);
}

/* It may hold the newest state, and gives it to whoever comes; but it trains with nobody. */
Test(folders, no_ring_is_made_of_who_sees_another_folder_or_of_fewer_than_min_without_it)
{
    for (int min = 1; min <= 2; min++) {
        struct rdzv_settings settings = patient(min, true);
        struct story s;
        settings.lost_after = 5 * RM_S;
        begin(&s, settings, &(struct machines){{"shared", "shared", ""}, {-1, -1, -1}, {0}});
        for (int w = 0; w < 3; w++)
            ready(&s, w, 0);
        for (int w = 0; w < 3; w++)
            progress(&s, w, 5);
        checkpointed(&s, 0, 4, 0, 1, false);
        published(&s, 0, 4, false);
        lists_of(&s, 2, "own", -1);
        for (int w = min == 1; w >= 0; w--)
            closed(&s, w);
        forget(&s);
        they_live_on(&s, 3, 8);
        for (int w = min == 2; w < 3; w++)
            if (s.conn[w] >= 0)
                stopped(&s, w, 5, 5);
        they_live_on(&s, 3, 8);
        cr_assert_not(said(&s, " form "), "min %d: %s", min, str_text(&s.log));
        if (min == 2) { /* too few, but one who sees the job's folder can save what they hold */
            checkpointed(&s, 1, 5, 0, 1, false);
            published(&s, 1, 5, false);
        }
        cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "min %d: %s", min, str_text(&s.log));
        s.attempt[0] = 1;
        hello(&s, 0, -1);
        stopped(&s, 0, -1, -1);
        lists_of(&s, 0, "shared", -1);
        they_live_on(&s, 3, 2);
        cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "min %d: %s", min, str_text(&s.log));
        cr_assert_eq(s.form.form.count, min, "%s", str_text(&s.log));
        cr_assert_eq(s.form.form.resume.step, 5, "the state that only others hold: %s", str_text(&s.log));
        story_end(&s);
    }
}
