/* A store that is away: what the coordinator makes of it. */
#include <stdio.h>

#include "coordinator/status/history.h"
#include "tests/unit/coordinator/core/story.h"

static void save_waits(struct story *s, int w, int64_t number, rm_time age)
{
    struct message m;
    message_init(&m, MSG_SAVE_WAITS);
    m.save_waits.step = number;
    m.save_waits.age = age;
    text_copy(m.save_waits.why, sizeof m.save_waits.why, "the store does not answer");
    hear(s, w, &m);
}

static struct rdzv_settings remote(void)
{
    struct rdzv_settings settings = story_settings(1);
    settings.save_patience = 600 * RM_S;
    return settings;
}

static bool metric_is(const struct story *s, const char *line)
{
    struct str text = str_init(65536);
    struct history *c = calloc(1, sizeof *c);
    struct exposition page = exposition_begin(&text, "ringmaster_", NULL);
    history_print_metrics(c, s->st, s->now, &page);
    bool found = strstr(str_text(&text), line);
    free(c);
    str_clear(&text);
    return found;
}

/* For so long the two go on training, one step a second. */
static void train_on(struct story *s, int64_t first, int64_t last)
{
    for (int64_t number = first; number <= last; number++) {
        after(s, RM_S);
        progress(s, 0, number);
        progress(s, 1, number);
    }
}

static void train_to_20(struct story *s)
{
    story_begin(s, remote());
    train_with(s, 2);
    train_on(s, 1, 20);
}

Test(outage, is_told_once_and_training_goes_on)
{
    struct story s;
    train_to_20(&s);
    save_waits(&s, 0, 20, 3 * RM_S);
    cr_assert(
        said(&s,
             "{\"event\":\"checkpointWaiting\",\"time\":0,\"step\":20,\"uri\":\"file:///c/step-00000020\","
             "\"reason\":\"the store does not answer\",\"ageSeconds\":3.0}"),
        "%s", str_text(&s.log));
    save_waits(&s, 1, 20, 4 * RM_S);
    train_on(&s, 21, 30);
    save_waits(&s, 0, 30, 0);
    save_waits(&s, 1, 30, 0);
    cr_assert_eq(times_said(&s, "checkpointWaiting"), 1);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    cr_assert_eq(s.ended, -1);
    story_end(&s);
}

Test(outage, the_age_of_the_newest_state_that_waits_is_a_metric_and_in_the_status)
{
    struct story s;
    struct str status = str_init(65536);
    story_begin(&s, remote());
    train_with(&s, 2);
    cr_assert(metric_is(&s, "ringmaster_checkpoint_waiting_seconds 0\n"));
    train_on(&s, 1, 20);
    save_waits(&s, 0, 20, 3 * RM_S);
    save_waits(&s, 1, 20, RM_S);
    train_on(&s, 21, 24);
    cr_assert(metric_is(&s, "ringmaster_checkpoint_waiting_seconds 7\n"));
    save_waits(&s, 0, 24, 0);
    train_on(&s, 25, 26);
    cr_assert(metric_is(&s, "ringmaster_checkpoint_waiting_seconds 2\n"), "a newer one took its place");
    struct history *c = calloc(1, sizeof *c);
    struct history_terms terms = {.job = "j", .checkpoint_uri = "file:///c"};
    history_print_status(c, s.st, &terms, s.now, &status);
    free(c);
    cr_assert(strstr(str_text(&status), "\"checkpointWaiting\":{\"step\":24,\"ageSeconds\":2.0,"), "%s",
              str_text(&status));
    str_clear(&status);
    story_end(&s);
}

Test(outage, ends_with_the_checkpoint_that_goes_through_which_says_how_long_it_was)
{
    struct story s;
    train_to_20(&s);
    checkpointed(&s, 0, 20, 0, 2, false);
    save_waits(&s, 1, 20, 2 * RM_S);
    train_on(&s, 21, 25);
    checkpointed(&s, 1, 20, 1, 2, false);
    cr_assert(said(&s, "publish"), "the part that was taken is not forgotten: %s", str_text(&s.log));
    published(&s, 0, 20, false);
    cr_assert(said(&s, "\"waitedSeconds\":7.0"), "%s", str_text(&s.log));
    cr_assert(metric_is(&s, "ringmaster_checkpoint_waiting_seconds 0\n"));
    forget(&s);
    train_on(&s, 26, 30);
    checkpointed(&s, 0, 30, 0, 1, false);
    published(&s, 0, 30, false);
    cr_assert(said(&s, "checkpointSaved") && !said(&s, "waitedSeconds"));
    save_waits(&s, 1, 25, 0);
    cr_assert_not(said(&s, "checkpointWaiting"), "an older one that waits is of no use any more");
    story_end(&s);
}

/* ---- of one worker alone ---- */

static void begin_three_of(struct story *s, int min, int64_t steps)
{
    struct rdzv_settings settings = remote();
    settings.steps = steps;
    settings.workers_min = min;
    settings.max_restarts = 0;
    story_begin(s, settings);
    expect_workers(s, 7);
    train_with(s, 3);
}

static void begin_three(struct story *s, int min)
{
    begin_three_of(s, min, 100);
}

/* All three make these steps, one every 4 s. */
static void three_train(struct story *s, int64_t from, int64_t before)
{
    for (int64_t step = from; step < before; step++) {
        after(s, 4 * RM_S);
        for (int w = 0; w < 3; w++)
            progress(s, w, step);
    }
}

/* For so many seconds all three make steps; worker 2's store fails, and what the others write every ten steps
 * is as told. */
static void two_writes_nothing(struct story *s, int64_t first, int64_t last, bool others_write)
{
    for (int64_t number = first; number <= last && s->ended < 0; number++) {
        after(s, RM_S);
        for (int w = 0; w < 3; w++) {
            if (s->conn[w] >= 0)
                progress(s, w, number);
        }
        for (int w = 0; w < 2 && others_write && number % 10 == 0; w++)
            checkpointed(s, w, number, w, 3, false);
        if (s->conn[2] >= 0 && number >= 10)
            save_waits(s, 2, number / 10 * 10, 0);
        for (int w = 0; w < 2 && !others_write && number >= 10; w++)
            save_waits(s, w, number / 10 * 10, 0);
    }
}

Test(outage, of_one_worker_while_others_write_costs_it_its_place_after_30_s_and_not_the_checkpoints_of_all)
{
    struct story s;
    begin_three(&s, 2);
    two_writes_nothing(&s, 1, 39, true);
    cr_assert_not(said(&s, "is left out"), "%s", str_text(&s.log));
    two_writes_nothing(&s, 40, 45, true);
    cr_assert(said(&s, "worker 2 is left out: the store does not answer"), "%s", str_text(&s.log));
    cr_assert_eq(s.ended, -1);
    story_end(&s);
}

Test(outage, of_all_costs_nobody_a_place_however_long_it_lasts)
{
    struct story s;
    begin_three_of(&s, 1, 1000);
    two_writes_nothing(&s, 1, 300, false);
    cr_assert_not(said(&s, "is left out"), "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    story_end(&s);
}

Test(outage, of_all_is_over_for_each_in_its_own_time)
{
    struct story s;
    begin_three_of(&s, 1, 1000);
    two_writes_nothing(&s, 1, 299, false);
    two_writes_nothing(&s, 300, 328, true);
    cr_assert_not(said(&s, "is left out"), "it is alone since step 300: %s", str_text(&s.log));
    two_writes_nothing(&s, 329, 335, true);
    cr_assert(said(&s, "worker 2 is left out"), "%s", str_text(&s.log));
    story_end(&s);
}

static void hangs_for(struct story *s, int w, int64_t step, rm_time lasted)
{
    struct msg_fault f = {
        .kind = FAULT_STORAGE, .class = CLASS_MACHINE, .step = step, .detail = "the write does not return"};
    f.lasted = lasted;
    fault_says(s, w, &f);
}

static void hangs_in_a_write(struct story *s, int w, int64_t step)
{
    hangs_for(s, w, step, 120 * RM_S);
}

/* Its trainer waits for the memory that the slice lies in, and the ring for its trainer. */
Test(outage, of_one_worker_whose_write_does_not_return_costs_it_its_place_though_nobody_writes_any_more)
{
    struct story s;
    begin_three(&s, 2);
    for (int w = 0; w < 2; w++) {
        progress(&s, w, 20);
        checkpointed(&s, w, 20, w, 3, false);
    }
    hangs_in_a_write(&s, 2, 20);
    cr_assert(said(&s, "worker 2 is left out"), "%s", str_text(&s.log));
    for (int w = 0; w < 2; w++)
        stopped(&s, w, 20, 20);
    cr_assert_eq(s.form.form.count, 2, "%s", str_text(&s.log));
    story_end(&s);
}

Test(outage, of_all_whose_writes_do_not_return_costs_nobody_a_place)
{
    struct story s;
    begin_three(&s, 2);
    two_writes_nothing(&s, 1, 9, true);
    for (int w = 0; w < 3; w++)
        hangs_in_a_write(&s, w, 10);
    cr_assert_not(said(&s, "is left out"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Each says so again and again, for how long as well. */
Test(outage, of_several_whose_writes_do_not_return_is_one_event_for_each)
{
    struct story s;
    begin_three(&s, 3);
    for (int minutes = 2; minutes < 6; minutes++) {
        for (int w = 0; w < 2; w++) {
            struct msg_fault f = {.kind = FAULT_STORAGE, .class = CLASS_MACHINE, .step = 20};
            f.lasted = minutes * 60 * RM_S;
            snprintf(f.detail, sizeof f.detail, "at %d nothing returns for %d minutes", w, minutes);
            fault_says(&s, w, &f);
        }
        for (int w = 0; w < 3; w++)
            progress(&s, w, minutes);
        after(&s, 4 * RM_S);
    }
    cr_assert_eq(times_said(&s, "nothing returns for 2 minutes"), 2, "%s", str_text(&s.log));
    cr_assert_eq(times_said(&s, "nothing returns"), 2, "%s", str_text(&s.log));
    story_end(&s);
}

/* For so long all but the one that waits for its memory wait for that one, and nobody makes a step. */
static void stand_still(struct story *s, int seconds, unsigned stuck)
{
    for (int i = 0; i < seconds && rdzv_state(s->st) == RDZV_TRAINING; i++) {
        for (int w = 0; w < 3 && i % 10 == 0; w++) {
            if (stuck >> w & 1 && s->conn[w] >= 0)
                hangs_in_a_write(s, w, 20);
        }
        for (int w = 0; w < 3; w++) {
            struct message m;
            message_init(&m, MSG_HEARTBEAT);
            m.heartbeat.waiting_for = w == 2 ? -1 : 2;
            m.heartbeat.counter = w == 2 ? 0 : i + 1;
            if (s->conn[w] >= 0)
                hear(s, w, &m);
        }
        after(s, RM_S);
    }
}

Test(outage, of_one_that_holds_up_a_ring_of_no_more_than_min_costs_a_pod_its_place_and_kills_no_trainer)
{
    for (int pods = 0; pods < 2; pods++) {
        struct story s;
        struct rdzv_settings settings = remote();
        settings.workers_min = settings.workers_target = 3;
        settings.max_restarts = 0;
        settings.unsupervised = pods;
        settings.end_timeout = 600 * RM_S;
        story_begin(&s, settings);
        if (!pods)
            expect_workers(&s, 7);
        train_with(&s, 3);
        for (int w = 0; w < 3; w++)
            progress(&s, w, 20);
        stand_still(&s, 20, 0);
        stand_still(&s, 100, 4);
        cr_assert_not(said(&s, "its trainer hangs"), "%s", str_text(&s.log));
        cr_assert_eq(said(&s, "send 2 abandon"), pods, "%s", str_text(&s.log));
        stand_still(&s, 600, 4);
        cr_assert(said(&s, "send 2 abandon") && said(&s, "does not return"), "%s", str_text(&s.log));
        cr_assert_eq(s.ended, -1, "what the others hold is saved first");
        story_end(&s);
    }
}

Test(outage, of_all_that_holds_up_a_ring_costs_no_pod_its_place)
{
    struct story s;
    struct rdzv_settings settings = remote();
    settings.workers_min = settings.workers_target = 3;
    settings.unsupervised = true;
    story_begin(&s, settings);
    train_with(&s, 3);
    for (int w = 0; w < 3; w++)
        progress(&s, w, 20);
    stand_still(&s, 400, 7);
    cr_assert_not(said(&s, "abandon") || said(&s, "its trainer hangs"), "%s", str_text(&s.log));
    cr_assert(said(&s, "does not return"), "the reason is told");
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    story_end(&s);
}

/* It is told to leave, and never gets to the boundary: its trainer waits for the memory that the write is
 * about. */
Test(outage, of_the_only_one_that_is_told_to_leave_ends_the_run_after_end_timeout)
{
    struct story s;
    struct rdzv_settings settings = remote();
    settings.end_timeout = 600 * RM_S;
    settings.lost_after = 3600 * RM_S;
    story_begin(&s, settings);
    expect_workers(&s, 1);
    train_with(&s, 1);
    progress(&s, 0, 20);
    leaving(&s, 0);
    after(&s, RM_S);
    cr_assert(said(&s, "at=boundary"), "%s", str_text(&s.log));
    forget(&s);
    for (int i = 0; i < 150 && s.ended < 0; i++) {
        if (s.conn[0] >= 0)
            hangs_for(&s, 0, 20, (120 + 10 * i) * RM_S);
        if (rdzv_state(s.st) == RDZV_QUIESCING && said(&s, "at=now"))
            stopped(&s, 0, 20, -1);
        after(&s, 10 * RM_S);
    }
    cr_assert_eq(s.ended, 4, "%s", str_text(&s.log));
    cr_assert(said(&s, "does not return"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(outage, while_one_publishes_blames_nobody_for_what_the_others_had_written_before)
{
    struct story s;
    begin_three(&s, 1);
    for (int w = 0; w < 3; w++) {
        progress(&s, w, 20);
        checkpointed(&s, w, 20, w, 3, false);
    }
    cr_assert(said(&s, "publish"), "%s", str_text(&s.log));
    three_train(&s, 21, 60);
    hangs_in_a_write(&s, 0, 20);
    cr_assert_not(said(&s, "left out"), "%s", str_text(&s.log));
    published(&s, 0, 20, false);
    cr_assert(said(&s, "checkpointSaved"), "late, and not for nothing: %s", str_text(&s.log));
    story_end(&s);
}

Test(outage, of_one_whose_write_comes_back_late_costs_no_checkpoint)
{
    struct story s;
    begin_three(&s, 3); /* it can't be spared */
    for (int w = 0; w < 3; w++) {
        progress(&s, w, 20);
        if (w < 2)
            checkpointed(&s, w, 20, w, 3, false);
    }
    hangs_in_a_write(&s, 2, 20);
    checkpointed(&s, 2, 20, 2, 3, false);
    cr_assert(said(&s, "publish"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(outage, of_one_whose_call_stands_still_is_heard_once_and_not_each_time_that_it_says_so)
{
    struct story s;
    begin_three(&s, 3);
    progress(&s, 0, 100);
    for (int w = 0; w < 3; w++)
        finished(&s, w);
    hangs_in_a_write(&s, 2, 100);
    for (int part = 0; part < 2; part++)
        checkpointed(&s, part, 100, part, 2, true);
    cr_assert(said(&s, "publish"), "%s", str_text(&s.log));
    forget(&s);
    hangs_in_a_write(&s, 2, 100); /* still */
    cr_assert_not(said(&s, " save"), "others have written it: %s", str_text(&s.log));
    published(&s, 0, 100, true);
    cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
    story_end(&s);
}

Test(outage, of_a_writer_whose_older_slice_does_not_return_leaves_its_part_of_the_last_one_to_others)
{
    struct story s;
    begin_three(&s, 3);
    progress(&s, 0, 100);
    for (int w = 0; w < 3; w++)
        finished(&s, w);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING);
    forget(&s);
    hangs_in_a_write(&s, 2, 90);
    cr_assert(said(&s, "send 0,1 save"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(outage, of_one_whose_write_does_not_return_leaves_publishing_to_another)
{
    struct story s;
    begin_three(&s, 3);
    progress(&s, 0, 99);
    hangs_in_a_write(&s, 0, 90);
    progress(&s, 0, 100);
    for (int w = 0; w < 3; w++)
        finished(&s, w);
    forget(&s);
    for (int part = 0; part < 2; part++)
        checkpointed(&s, 1 + part, 100, part, 2, true);
    cr_assert(said(&s, "send 1 publish"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(outage, of_a_publishers_older_write_takes_publishing_from_it)
{
    struct story s;
    begin_three(&s, 3);
    progress(&s, 0, 100);
    for (int w = 0; w < 3; w++)
        finished(&s, w);
    for (int part = 0; part < 3; part++)
        checkpointed(&s, part, 100, part, 3, true);
    cr_assert(said(&s, "send 0 publish"), "%s", str_text(&s.log));
    forget(&s);
    hangs_in_a_write(&s, 0, 90);
    cr_assert(said(&s, "send 1 publish"), "its thread is in a call that does not return: %s",
              str_text(&s.log));
    story_end(&s);
}

Test(outage, that_began_when_all_had_written_blames_nobody)
{
    struct story s;
    begin_three(&s, 1);
    for (int w = 0; w < 3; w++)
        checkpointed(&s, w, 10, w, 3, false);
    for (int i = 0; i < 60; i++) {
        after(&s, RM_S);
        for (int w = 0; w < 3; w++)
            progress(&s, w, 11 + i);
        save_waits(&s, 2, 20, 0);
    }
    cr_assert_not(said(&s, "is left out"), "the others have not tried since: %s", str_text(&s.log));
    story_end(&s);
}

Test(outage, of_one_that_the_job_needs_costs_it_nothing)
{
    struct story s;
    begin_three(&s, 3);
    two_writes_nothing(&s, 1, 100, true);
    cr_assert_not(said(&s, "is left out"), "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    story_end(&s);
}

/* Both finish, the final checkpoint is being saved. */
static void finish(struct story *s, struct rdzv_settings settings)
{
    story_begin(s, settings);
    train_with(s, 2);
    progress(s, 0, 100);
    finished(s, 0);
    finished(s, 1);
    cr_assert_eq(rdzv_state(s->st), RDZV_SAVING);
}

/* For a second; an agent whose trainer waits for the store counts on. */
static void try_on(struct story *s, int second, int64_t step)
{
    after(s, RM_S);
    for (int w = 0; w < 2; w++) {
        struct message m;
        message_init(&m, MSG_HEARTBEAT);
        m.heartbeat.counter = second;
        m.heartbeat.waiting_for = -1;
        hear(s, w, &m);
    }
    save_waits(s, second % 2, step, 0);
}

/* Another one may come elsewhere; and those who stay save what they hold as soon as it is gone. */
Test(outage, of_one_pod_that_the_job_needs_costs_it_its_place_after_end_timeout)
{
    struct story s;
    struct rdzv_settings settings = remote();
    settings.workers_min = settings.workers_target = 3;
    settings.unsupervised = true;
    settings.steps = 1000;
    settings.end_timeout = 120 * RM_S;
    story_begin(&s, settings);
    train_with(&s, 3);
    two_writes_nothing(&s, 1, 60, false);
    two_writes_nothing(&s, 61, 189, true);
    cr_assert_not(said(&s, "is left out"), "it is alone since step 70: %s", str_text(&s.log));
    two_writes_nothing(&s, 190, 195, true);
    cr_assert(said(&s, "worker 2 is left out: the store does not answer"), "%s", str_text(&s.log));
    stopped(&s, 0, 195, -1);
    stopped(&s, 1, 195, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", str_text(&s.log));
    cr_assert_eq(s.ended, -1);
    story_end(&s);
}

Test(outage, the_end_waits_for_as_long_as_the_job_says_and_then_names_the_reason)
{
    struct story s;
    finish(&s, remote());
    save_waits(&s, 0, 100, 0);
    for (int second = 1; second < 590; second++)
        try_on(&s, second, 100);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    for (int second = 590; second < 610 && s.ended < 0; second++)
        try_on(&s, second, 100);
    cr_assert_eq(s.ended, 4);
    cr_assert(
        said(&s,
             "the checkpoint of step 100 can't be written: given up after checkpoint.endTimeout; the store "
             "does not answer"),
        "%s", str_text(&s.log));
    story_end(&s);
}

/* The slices of step 20 are in, and its manifest finds no room. */
static void wait_with_a_manifest(struct story *s)
{
    train_to_20(s);
    checkpointed(s, 0, 20, 0, 2, false);
    checkpointed(s, 1, 20, 1, 2, false);
    save_waits(s, 0, 20, 0);
}

/* The store has room for pieces, and for no manifest: the older checkpoint can't be published, the last one
 * is whole. */
static void finish_behind_a_manifest_that_waits(struct story *s)
{
    wait_with_a_manifest(s);
    progress(s, 0, 100);
    finished(s, 0);
    finished(s, 1);
    forget(s);
    checkpointed(s, 0, 100, 0, 2, true);
    checkpointed(s, 1, 100, 1, 2, true);
}

Test(outage, a_manifest_that_waits_makes_way_for_that_of_the_end)
{
    struct story s;
    finish_behind_a_manifest_that_waits(&s);
    cr_assert(s.publish.publish.step == 100 && s.publish.publish.final, "%s", str_text(&s.log));
    published(&s, 0, 100, true);
    cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
    story_end(&s);
}

Test(outage, a_manifest_that_waits_does_not_keep_the_end_from_giving_up)
{
    struct story s;
    finish_behind_a_manifest_that_waits(&s);
    for (int second = 1; second < 610 && s.ended < 0; second++)
        try_on(&s, second, s.publish.publish.step);
    cr_assert_eq(s.ended, 4, "%s", str_text(&s.log));
    story_end(&s);
}

Test(outage, whoever_takes_the_place_of_a_publisher_that_waited_is_told_to_publish)
{
    struct story s;
    wait_with_a_manifest(&s);
    forget(&s);
    closed(&s, 0);
    hello(&s, 0, 20);
    cr_assert(said(&s, "publish"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(outage, a_manifest_makes_way_for_the_newest_and_for_none_of_its_own_step)
{
    struct story s;
    train_to_20(&s);
    checkpointed(&s, 0, 20, 0, 1, false);
    save_waits(&s, 0, 20, 0);
    forget(&s);
    checkpointed(&s, 0, 20, 0, 2, false); /* of the next ring, which began there */
    checkpointed(&s, 1, 20, 1, 2, false);
    cr_assert_not(said(&s, "publish"), "%s", str_text(&s.log));
    train_on(&s, 21, 30);
    checkpointed(&s, 0, 30, 0, 1, false);
    cr_assert_eq(s.publish.publish.step, 30, "%s", str_text(&s.log));
    story_end(&s);
}

Test(outage, what_the_run_ends_with_goes_before_a_manifest_of_a_step_that_was_taken_back)
{
    struct story s;
    story_begin(&s, remote());
    train_with(&s, 1);
    progress(&s, 0, 1);
    checkpointed(&s, 0, 20, 0, 1, false); /* of the ring before, which nobody survived */
    save_waits(&s, 0, 20, 0);
    struct rdzv_event stop = {.kind = RDZV_INTERRUPT};
    play(&s, &stop);
    stopped(&s, 0, 12, 12);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", str_text(&s.log));
    checkpointed(&s, 0, 12, 0, 1, false);
    cr_assert_eq(s.publish.publish.step, 12, "%s", str_text(&s.log));
    for (int second = 1; second < 610 && s.ended < 0; second++) {
        after(&s, RM_S);
        save_waits(&s, 0, 12, 0);
    }
    cr_assert_eq(s.ended, 4, "%s", str_text(&s.log));
    story_end(&s);
}

Test(outage, the_end_goes_through_when_the_store_comes_back)
{
    struct story s;
    finish(&s, remote());
    save_waits(&s, 0, 100, 0);
    after(&s, 4 * RM_S);
    checkpointed(&s, 0, 100, 0, 2, true);
    checkpointed(&s, 1, 100, 1, 2, true);
    published(&s, 0, 100, true);
    cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
    story_end(&s);
}

Test(outage, a_folder_that_takes_nothing_ends_the_run_at_once)
{
    struct story s;
    finish(&s, story_settings(1));
    save_waits(&s, 0, 100, 0);
    cr_assert_eq(s.ended, 4);
    cr_assert(said(&s, "can't be written: the store does not answer"), "%s", str_text(&s.log));
    story_end(&s);
}

/* ---- pieces that vanish ---- */

/* Who was told to publish. */
static int publisher(struct story *s)
{
    return said(s, "send 2 publish") ? 2 : said(s, "send 1 publish") ? 1 : 0;
}

static void finds_a_piece_missing(struct story *s, int w, int64_t step)
{
    fault_says(
        s, w,
        &(struct msg_fault){
            .kind = FAULT_STORAGE, .class = CLASS_OBJECT, .step = step, .detail = "p-1-of-3: it is missing"});
}

Test(outage, of_pieces_that_vanish_costs_nobody_a_place_who_finds_them_missing)
{
    struct story s;
    begin_three(&s, 1);
    for (int64_t step = 10; step < 100; step += 10) {
        after(&s, 4 * RM_S);
        for (int w = 0; w < 3; w++) {
            progress(&s, w, step);
            checkpointed(&s, w, step, w, 3, false);
        }
        if (said(&s, "publish"))
            finds_a_piece_missing(&s, 0, step);
    }
    cr_assert(said(&s, "the checkpoint of step 90 can't be written; training goes on"));
    cr_assert_not(said(&s, "left out"), "%s", str_text(&s.log));
    story_end(&s);
}

static void finish_all(struct story *s, struct rdzv_settings settings)
{
    story_begin(s, settings);
    if (!settings.unsupervised)
        expect_workers(s, 7);
    train_with(s, 3);
    progress(s, 0, 100);
    for (int w = 0; w < 3; w++)
        finished(s, w);
}

static void write_the_last(struct story *s)
{
    for (int part = 0; part < 3; part++)
        checkpointed(s, part, 100, part, 3, true);
}

Test(outage, of_pieces_of_the_last_checkpoint_is_mended_by_writing_them_anew)
{
    struct story s;
    finish_all(&s, remote());
    write_the_last(&s);
    finds_a_piece_missing(&s, 0, 100);
    forget(&s);
    cr_assert_eq(rdzv_deadline(s.st), s.now + RM_S);
    after(&s, RM_S);
    cr_assert(said(&s, "send 0,1,2 save"), "%s", str_text(&s.log));
    write_the_last(&s);
    cr_assert(said(&s, "publish"), "%s", str_text(&s.log));
    published(&s, 0, 100, true);
    cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
    story_end(&s);
}

static void all_beat(struct story *s, int workers)
{
    for (int w = 0; w < workers; w++) {
        struct message beat;
        message_init(&beat, MSG_HEARTBEAT);
        beat.heartbeat.counter = s->now;
        hear(s, w, &beat);
    }
}

/* The patience with the last one begins with it. */
Test(outage, of_pieces_that_vanished_long_ago_costs_the_last_checkpoint_nothing)
{
    struct story s;
    struct rdzv_settings settings = remote();
    settings.save_patience = 60 * RM_S;
    story_begin(&s, settings);
    expect_workers(&s, 7);
    train_with(&s, 3);
    for (int w = 0; w < 3; w++) {
        progress(&s, w, 40);
        checkpointed(&s, w, 40, w, 3, false);
    }
    finds_a_piece_missing(&s, 0, 40);
    cr_assert(said(&s, "the checkpoint of step 40 can't be written; training goes on"), "%s",
              str_text(&s.log));
    three_train(&s, 41, 100);
    progress(&s, 0, 100);
    for (int w = 0; w < 3; w++)
        finished(&s, w);
    forget(&s);
    write_the_last(&s);
    finds_a_piece_missing(&s, publisher(&s), 100);
    cr_assert_lt(s.ended, 0, "%s", rdzv_why(s.st));
    forget(&s);
    after(&s, RM_S);
    cr_assert(said(&s, "send 0,1,2 save"), "%s", str_text(&s.log));
    write_the_last(&s);
    published(&s, publisher(&s), 100, true);
    cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
    story_end(&s);
}

Test(outage, of_pieces_that_vanish_each_time_ends_a_run_with_4_after_its_patience)
{
    struct story s;
    struct rdzv_settings settings = remote();
    settings.save_patience = 60 * RM_S;
    finish_all(&s, settings);
    rm_time began = s.now;
    while (s.ended < 0 && s.now < began + 1000 * RM_S) {
        write_the_last(&s);
        if (said(&s, "publish"))
            finds_a_piece_missing(&s, publisher(&s), 100);
        forget(&s);
        all_beat(&s, 3);
        after(&s, RM_S);
    }
    cr_assert_eq(s.ended, 4, "%s", rdzv_why(s.st));
    cr_assert(strstr(rdzv_why(s.st), "p-1-of-3: it is missing"), "%s", rdzv_why(s.st));
    cr_assert_geq(s.now - began, 60 * RM_S);
    story_end(&s);
}
