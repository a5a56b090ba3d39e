/* Faults of one worker, of all, and of a checkpoint: what the coordinator makes of them. */
#include <stdio.h>

#include "coordinator/core/rdzv_trouble.h"
#include "tests/unit/coordinator/core/trouble_story.h"

/* ---- who gives another one the state ---- */

/* Workers 0 and 1 hold step 5, and 2 is to get it. */
static void let_receive(struct story *s, bool pods)
{
    struct rdzv_settings settings = patient(1);
    settings.unsupervised = pods;
    story_begin(s, settings);
    if (!pods)
        expect_workers(s, 7);
    for (int w = 0; w < 3; w++)
        hello(s, w, w < 2 ? 5 : -1);
    for (int w = 0; w < 3; w++)
        stopped(s, w, w < 2 ? 5 : -1, -1);
    after(s, 100 * RM_MS);
    cr_assert_eq(rdzv_state(s->st), RDZV_FORMING, "%s", str_text(&s->log));
}

Test(trouble, a_source_that_holds_something_else_is_left_out_and_not_taken_for_one_that_is_not_reached)
{
    for (int pods = 0; pods < 2; pods++) {
        struct story s;
        let_receive(&s, pods);
        gives_something_else(&s, 2, 0);
        for (int w = 0; w < 3; w++)
            stopped(&s, w, w < 2 ? 5 : -1, -1);
        cr_assert(rdzv_state(s.st) == RDZV_FORMING && is_in(&s, 0), "once is nothing: %s", str_text(&s.log));
        gives_something_else(&s, 2, 0);
        for (int w = 0; w < 3; w++)
            stopped(&s, w, w < 2 ? 5 : -1, -1);
        cr_assert(rdzv_state(s.st) == RDZV_FORMING && !is_in(&s, 0) && is_in(&s, 2), "%s", str_text(&s.log));
        for (int w = 1; w < 3; w++)
            ready(&s, w, 5);
        cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
        cr_assert_not(said(&s, "can't reach") || said(&s, "workerLeftOut"), "%s", str_text(&s.log));
        story_end(&s);
    }
}

/* ---- loads ---- */

Test(trouble, a_read_error_of_one_agent_throws_no_checkpoint_away)
{
    struct story s;
    begin(&s, patient(2), 2, 231, 200);
    cr_assert_eq(s.form.form.resume.step, 231);
    load_fails(&s, 1, 231, CLASS_UNKNOWN);
    all_stop(&s, 2);
    cr_assert_not(said(&s, "checkpointRefused"), "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "it waits a second: %s", str_text(&s.log));
    forget(&s);
    list_again(&s, 2);
    cr_assert(said(&s, "form "), "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.resume.step, 231, "the same once more");
    for (int w = 0; w < 2; w++)
        ready(&s, w, 231);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    story_end(&s);
}

Test(trouble, others_go_on_from_the_same_checkpoint_without_the_one_that_can_not_read_it)
{
    struct story s;
    begin(&s, patient(1), 2, 231, 200);
    load_fails(&s, 1, 231, CLASS_MACHINE);
    all_stop(&s, 2);
    listed(&s, 0, 231, 200);
    they_live_on(&s, 2, 1);
    cr_assert_eq(s.form.form.resume.step, 231);
    cr_assert_eq(s.form.form.count, 1, "%s", str_text(&s.log));
    ready(&s, 0, 231);
    progress(&s, 0, 232);
    cr_assert_eq(s.ended, -1);
    story_end(&s);
}

Test(trouble, a_store_that_nobody_can_read_ends_a_run_with_4_after_its_patience_and_nothing_is_refused)
{
    struct story s;
    begin(&s, patient(2), 2, 231, 200);
    rm_time began = s.now;
    while (s.ended < 0 && s.now < began + 1000 * RM_S) {
        if (rdzv_state(s.st) == RDZV_FORMING) {
            for (int w = 0; w < 2; w++)
                load_fails(&s, w, 231, CLASS_PASSING);
            all_stop(&s, 2);
        }
        list_again(&s, 2);
    }
    cr_assert_eq(s.ended, 4, "%s", rdzv_why(s.st));
    cr_assert_geq(s.now - began, 600 * RM_S);
    cr_assert_leq(s.now - began, 640 * RM_S);
    cr_assert_not(said(&s, "checkpointRefused"));
    cr_assert(said(&s, "can't load the checkpoint"), "the reason is told: %s", str_text(&s.log));
    story_end(&s);
}

Test(trouble, in_pods_a_store_that_nobody_can_read_is_waited_for_without_end)
{
    struct story s;
    struct rdzv_settings settings = patient(2);
    settings.unsupervised = true;
    settings.workers_target = 2;
    begin(&s, settings, 2, 231, 200);
    for (int i = 0; i < 3000 && s.ended < 0; i++) {
        if (rdzv_state(s.st) == RDZV_FORMING) {
            for (int w = 0; w < 2; w++)
                load_fails(&s, w, 231, CLASS_PASSING);
            all_stop(&s, 2);
        }
        list_again(&s, 2);
        str_reset(&s.log);
    }
    cr_assert_eq(s.ended, -1, "%s", rdzv_why(s.st));
    for (int i = 0; i < 40 && rdzv_state(s.st) != RDZV_FORMING; i++)
        list_again(&s, 2);
    for (int w = 0; w < 2; w++)
        ready(&s, w, 231);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", rdzv_why(s.st));
    story_end(&s);
}

/* A role's right to read was taken away after the coordinator began. */
Test(trouble, a_store_that_nobody_can_read_is_told_after_half_a_minute_until_somebody_can)
{
    struct story s;
    struct rdzv_settings settings = patient(2);
    settings.unsupervised = true;
    settings.workers_target = 2;
    story_begin(&s, settings);
    first_come(&s, 2);
    for (int i = 0; i < 31; i++) {
        for (int w = 0; w < 2; w++)
            list_fails(&s, w,
                       (struct msg_fault){.class = CLASS_PASSING, .person = true, .detail = "access denied"});
        cr_assert_eq(!rdzv_store_trouble(s.st, s.now), i < 30, "after %d s", i);
        they_live_on(&s, 2, 1);
    }
    const struct rdzv_trouble *told = rdzv_store_trouble(s.st, s.now);
    cr_assert(told->person, "access denied is for somebody to mend");
    cr_assert_str_eq(told->why, "access denied");
    for (int w = 0; w < 2; w++)
        listed(&s, w, 231, -1);
    cr_assert_null(rdzv_store_trouble(s.st, s.now));
    story_end(&s);
}

Test(trouble, what_one_worker_can_not_read_while_others_can_is_no_matter_of_the_store)
{
    struct story s;
    struct rdzv_settings settings = patient(1);
    settings.unsupervised = true;
    settings.workers_target = 3;
    begin(&s, settings, 3, 231, -1);
    load_fails(&s, 2, 231, CLASS_PASSING);
    cr_assert_null(rdzv_store_trouble(s.st, s.now + 60 * RM_S));
    story_end(&s);
}

Test(trouble, all_checkpoints_damaged_ends_with_3_and_their_names_and_never_begins_anew)
{
    struct story s;
    begin(&s, patient(2), 2, 231, 200);
    for (int i = 0; i < 2; i++) {
        int64_t step = s.form.form.resume.step;
        for (int w = 0; w < 2; w++)
            load_fails(&s, w, step, CLASS_OBJECT);
        all_stop(&s, 2);
    }
    for (int w = 0; w < 2; w++)
        listed(&s, w, 231, 200);
    cr_assert_eq(s.ended, 3, "%s", str_text(&s.log));
    cr_assert(strstr(rdzv_why(s.st), "step-00000231, step-00000200") && strstr(rdzv_why(s.st), "--overwrite"),
              "%s", rdzv_why(s.st));
    cr_assert_not(said(&s, ":init"));
    story_end(&s);
}

/* n workers have saved step 231 and written all of 240, which worker 0 is to publish; then their trainers
 * die, and the new ones hold nothing. */
static void write_and_die(struct story *s, int n)
{
    struct rdzv_settings settings = patient(n);
    settings.max_restarts = 9;
    settings.steps = 1000;
    begin(s, settings, n, -1, -1);
    for (int w = 0; w < n; w++)
        ready(s, w, 0);
    for (int w = 0; w < n; w++)
        progress(s, w, 240);
    for (int w = 0; w < n; w++)
        checkpointed(s, w, 231, w, n, false);
    published(s, 0, 231, false);
    for (int w = 0; w < n; w++)
        checkpointed(s, w, 240, w, n, false);
    for (int w = 0; w < n; w++) {
        struct message m;
        fault_of(s, w, FAULT_TRAINER_EXIT, -1, -1);
        s->trainer[w]++;
        hello_message(s, w, -1, &m);
        hear(s, w, &m);
    }
    all_stop(s, n);
    forget(s);
}

/* Its publisher wrote the manifest, and the answer was lost; what it says next is another fault. */
Test(trouble, before_all_checkpoints_are_said_to_be_damaged_all_list_once_more_what_the_store_holds)
{
    for (int there = 0; there < 2; there++) {
        struct story s;
        write_and_die(&s, 1);
        listed(&s, 0, 231, -1);
        load_fails(&s, 0, 231, CLASS_OBJECT);
        all_stop(&s, 1);
        they_live_on(&s, 1, 10);
        forget(&s);
        write_fails(&s, 0, 240, CLASS_OBJECT);
        cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
        cr_assert(said(&s, "send 0 list"), "%s", str_text(&s.log));
        listed(&s, 0, there ? 240 : 231, there ? 231 : -1);
        if (there)
            cr_assert_eq(s.form.form.resume.step, 240, "%s", str_text(&s.log));
        else
            cr_assert_eq(s.ended, 3, "%s", str_text(&s.log));
        story_end(&s);
    }
}

Test(trouble, a_checkpoint_that_lacks_its_manifest_alone_is_waited_for_where_all_before_it_are_damaged)
{
    for (int comes = 0; comes < 2; comes++) {
        struct story s;
        write_and_die(&s, 1);
        listed(&s, 0, 231, -1);
        cr_assert_eq(s.form.form.resume.step, 231, "%s", str_text(&s.log));
        load_fails(&s, 0, 231, CLASS_OBJECT);
        all_stop(&s, 1);
        cr_assert(said(&s, "that of step 240 waits for its manifest"), "%s", str_text(&s.log));
        they_live_on(&s, 1, 50);
        cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
        if (comes) {
            published(&s, 0, 240, false);
            listed(&s, 0, 240, 231);
            cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
            cr_assert_eq(s.form.form.resume.step, 240, "%s", str_text(&s.log));
        } else {
            they_live_on(&s, 1, 15);
            listed(&s, 0, 231, -1);
            cr_assert_eq(s.ended, 3, "not longer than startTimeout: %s", str_text(&s.log));
        }
        story_end(&s);
    }
}

/* ---- lists ---- */

Test(trouble, a_list_made_before_a_checkpoint_and_told_after_it_is_made_again)
{
    struct story s;
    write_and_die(&s, 2);
    published(&s, 0, 240, false);
    for (int w = 0; w < 2; w++)
        listed(&s, w, 231, -1);
    they_live_on(&s, 2, 1);
    cr_assert_neq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    for (int w = 0; w < 2; w++)
        listed(&s, w, 240, 231);
    they_live_on(&s, 2, 1);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.resume.step, 240, "%s", str_text(&s.log));
    story_end(&s);
}

Test(trouble, a_list_that_one_agent_can_not_have_ends_nothing)
{
    struct story s;
    story_begin(&s, patient(1));
    expect_workers(&s, 3);
    first_come(&s, 2);
    list_fails(&s, 1, (struct msg_fault){.class = CLASS_MACHINE});
    listed(&s, 0, 40, -1);
    they_live_on(&s, 2, 1);
    cr_assert_eq(s.form.form.count, 1, "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.resume.step, 40);
    ready(&s, 0, 40);
    progress_in(&s, 0, 41, RM_S);
    they_live_on(&s, 2, 5);
    cr_assert(said(&s, "at=boundary"), "it joins, and needs no list for that: %s", str_text(&s.log));
    cr_assert_eq(s.ended, -1);
    story_end(&s);
}

Test(trouble, what_a_person_must_set_right_ends_a_run_at_once_before_its_first_step)
{
    struct story s;
    story_begin(&s, patient(2));
    expect_workers(&s, 3);
    first_come(&s, 2);
    list_fails(&s, 1, (struct msg_fault){.class = CLASS_MACHINE, .person = true, .exit_code = 4});
    cr_assert_eq(s.ended, 4, "%s", str_text(&s.log));
    story_end(&s);
}

Test(trouble, who_does_not_see_the_newest_checkpoint_is_asked_again_and_rolls_nobody_back)
{
    struct story s;
    begin(&s, patient(1), 2, -1, -1);
    cr_assert_eq(s.form.form.resume.held, false, "nothing was ever there: from the seed");
    story_end(&s);
    story_begin(&s, patient(1));
    expect_workers(&s, 3);
    first_come(&s, 2);
    for (int i = 0; i < 2; i++) {
        listed(&s, 0, 40, 20);
        listed(&s, 1, -1, -1); /* another folder is mounted there */
    }
    listed(&s, 0, 40, 20);
    they_live_on(&s, 2, 1);
    cr_assert_eq(s.form.form.resume.step, 40, "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.count, 1);
    story_end(&s);
}

/* Both answer whenever they are asked, as agents do; worker 1's folder is another one. */
static void list_apart(struct story *s, int seconds)
{
    for (int i = 0; i < seconds && s->ended < 0 && !said(s, "left out"); i++) {
        listed(s, 0, 40, 20);
        listed(s, 1, -1, -1);
        they_live_on(s, 2, 1);
    }
}

Test(trouble, a_machine_that_sees_another_folder_is_left_out_when_others_have_listed_for_half_a_minute)
{
    struct story s;
    struct rdzv_settings settings = patient(1);
    settings.join_window = 100 * RM_S; /* they are waited for */
    story_begin(&s, settings);
    expect_workers(&s, 7);
    first_come(&s, 2);
    list_apart(&s, 25);
    cr_assert_not(said(&s, "left out"), "%s", str_text(&s.log));
    list_apart(&s, 25);
    cr_assert(said(&s, "worker 1 is left out: it does not see the checkpoint of step 40"), "%s",
              str_text(&s.log));
    story_end(&s);
}

Test(trouble, lists_that_differ_until_the_patience_is_over_end_a_run_with_4)
{
    struct story s;
    story_begin(&s, patient(2));
    expect_workers(&s, 3);
    first_come(&s, 2);
    list_apart(&s, 700);
    cr_assert_eq(s.ended, 4, "%s", rdzv_why(s.st));
    cr_assert(strstr(rdzv_why(s.st), "is its folder the same one?"), "%s", rdzv_why(s.st));
    story_end(&s);
}

/* Agent 1 says every 10 s that its call has not returned, and at once when it is asked again. */
static void says_that_it_hangs(struct story *s, int64_t step, rm_time lasted)
{
    struct msg_fault f = {.kind = FAULT_STORAGE, .class = CLASS_MACHINE, .step = step, .reading = true};
    f.lasted = lasted;
    text_copy(f.detail, sizeof f.detail, "it has not returned");
    fault_says(s, 1, &f);
}

Test(trouble, who_hangs_in_a_list_is_left_out_as_soon_as_others_show_that_they_can)
{
    struct story s;
    struct rdzv_settings settings = patient(1);
    settings.join_window = 1000 * RM_S;
    story_begin(&s, settings);
    expect_workers(&s, 7);
    first_come(&s, 2);
    listed(&s, 0, 40, -1);
    they_live_on(&s, 2, 30);
    says_that_it_hangs(&s, -1, 30 * RM_S);
    cr_assert_not(said(&s, "left out"), "%s", str_text(&s.log));
    they_live_on(&s, 2, 1);
    listed(&s, 0, 40, -1);
    they_live_on(&s, 2, 1);
    says_that_it_hangs(&s, -1, 32 * RM_S);
    cr_assert(said(&s, "worker 1 is left out: it has not returned"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(trouble, who_hangs_in_a_load_holds_up_a_ring_once_and_is_left_out_when_that_has_formed_without_it)
{
    struct story s;
    begin(&s, patient(1), 2, 40, -1);
    cr_assert_eq(s.form.form.count, 2);
    they_live_on(&s, 2, 5);
    says_that_it_hangs(&s, 40, 30 * RM_S);
    all_stop(&s, 2);
    listed(&s, 0, 40, -1);
    they_live_on(&s, 2, 1);
    cr_assert_eq(s.form.form.count, 1, "%s", str_text(&s.log));
    ready(&s, 0, 40);
    says_that_it_hangs(&s, 40, 40 * RM_S);
    cr_assert(said(&s, "worker 1 is left out"), "%s", str_text(&s.log));
    progress(&s, 0, 41);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    story_end(&s);
}

Test(trouble, a_write_that_hangs_is_not_taken_for_the_load_of_the_same_step)
{
    struct story s;
    begin(&s, patient(2), 2, 40, -1);
    struct msg_fault f = {.kind = FAULT_STORAGE, .class = CLASS_MACHINE, .step = 40};
    f.lasted = 120 * RM_S;
    fault_says(&s, 1, &f);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(trouble, a_list_that_fails_while_nobody_has_shown_that_it_can_costs_nobody_a_place)
{
    struct story s;
    struct rdzv_settings settings = patient(1);
    settings.join_window = 1000 * RM_S;
    story_begin(&s, settings);
    expect_workers(&s, 7);
    hello(&s, 0, -1);
    stopped(&s, 0, -1, -1);
    for (int i = 0; i < 60; i++) {
        if (i == 20) { /* it comes while the store is away, and waits for it */
            hello(&s, 1, -1);
            stopped(&s, 1, -1, -1);
        }
        if (said(&s, "send 0 list"))
            list_fails(&s, 0, (struct msg_fault){.class = CLASS_PASSING});
        they_live_on(&s, i < 20 ? 1 : 2, 1);
    }
    cr_assert_not(said(&s, "left out"), "%s", str_text(&s.log));
    cr_assert_eq(s.ended, -1);
    story_end(&s);
}

Test(trouble, a_load_that_failed_once_does_not_make_a_list_that_fails_the_proof_that_all_is_damaged)
{
    struct story s;
    struct rdzv_settings settings = patient(1);
    settings.unsupervised = true;
    settings.workers_target = 1;
    begin(&s, settings, 1, 40, -1);
    load_fails(&s, 0, 40, CLASS_PASSING);
    all_stop(&s, 1);
    they_live_on(&s, 1, 40);
    list_fails(&s, 0, (struct msg_fault){.class = CLASS_OBJECT, .exit_code = 3});
    cr_assert_eq(s.ended, -1, "the first list that finds nothing sound: %s", rdzv_why(s.st));
    story_end(&s);
}

/* ---- one machine's own trouble ---- */

Test(trouble, a_newcomer_whose_machine_will_not_do_harms_no_healthy_run)
{
    struct story s;
    story_begin(&s, patient(2));
    train_with(&s, 2);
    progress(&s, 0, 46);
    expect_workers(&s, 7);
    hello(&s, 2, -1);
    forget(&s);
    fault_says(&s, 2,
               &(struct msg_fault){.kind = FAULT_MACHINE, .step = -1, .detail = "its memory can't be sized"});
    cr_assert(said(&s, "workerQuarantined") && said(&s, "can't be sized"), "%s", str_text(&s.log));
    cr_assert(said(&s, "send 2 abandon"), "%s", str_text(&s.log));
    for (int w = 0; w < 2; w++)
        stopped(&s, w, 46, 46);
    cr_assert_eq(s.form.form.count, 2, "%s", str_text(&s.log));
    cr_assert_eq(s.ended, -1);
    story_end(&s);
}

Test(trouble, a_members_data_that_can_not_be_read_cost_that_member_alone)
{
    struct story s;
    story_begin(&s, patient(1));
    train_with(&s, 2);
    progress(&s, 0, 46);
    fault_says(&s, 1,
               &(struct msg_fault){.kind = FAULT_DATA, .class = CLASS_MACHINE, .step = 46, .exit_code = 3});
    stopped(&s, 0, 46, 46);
    cr_assert_eq(s.form.form.count, 1, "%s", str_text(&s.log));
    cr_assert_eq(s.ended, -1);
    story_end(&s);
}

Test(trouble, the_same_from_all_workers_is_the_jobs)
{
    struct story s;
    story_begin(&s, patient(2));
    train_with(&s, 3);
    progress(&s, 0, 46);
    struct msg_fault gone = {.kind = FAULT_DATA, .class = CLASS_MACHINE, .step = 46, .exit_code = 3};
    text_copy(gone.detail, sizeof gone.detail, "data.txt was there, and is empty now");
    fault_says(&s, 1, &gone);
    cr_assert_eq(s.ended, -1);
    fault_says(&s, 2, &gone);
    fault_of(&s, 2, FAULT_TRAINER_EXIT, -1, -1);
    stopped(&s, 0, 46, 46);
    checkpointed(&s, 0, 46, 0, 1, false);
    published(&s, 0, 46, false);
    cr_assert_eq(s.ended, 3, "%s", str_text(&s.log));
    cr_assert(strstr(rdzv_why(s.st), "is empty now"), "%s", rdzv_why(s.st));
    story_end(&s);
}

Test(trouble, two_processes_of_one_worker_are_not_all_while_others_are_well)
{
    struct story s;
    struct rdzv_settings settings = patient(1);
    settings.unsupervised = true;
    settings.workers_target = 3;
    story_begin(&s, settings);
    train_with(&s, 3);
    progress(&s, 0, 46);
    struct msg_fault bad = {.kind = FAULT_MACHINE, .step = -1, .exit_code = 4, .detail = "its disk is gone"};
    fault_says(&s, 2, &bad);
    closed(&s, 2);
    s.attempt[2]++; /* on the same node */
    hello(&s, 2, -1);
    fault_says(&s, 2, &bad);
    for (int w = 0; w < 2; w++)
        stopped(&s, w, 46, 46);
    cr_assert_eq(s.ended, -1, "%s", rdzv_why(s.st));
    cr_assert_not(said(&s, " save"), "nothing ends: %s", str_text(&s.log));
    story_end(&s);
}

Test(trouble, in_pods_another_machine_may_come_in_the_place_of_one_that_will_not_do)
{
    struct story s;
    struct rdzv_settings settings = patient(1);
    settings.unsupervised = true;
    settings.workers_target = 2;
    begin(&s, settings, 2, -1, -1);
    for (int w = 0; w < 2; w++)
        ready(&s, w, 0);
    progress(&s, 0, 1);
    fault_says(&s, 1, &(struct msg_fault){.kind = FAULT_MACHINE, .step = -1, .detail = "its disk is gone"});
    cr_assert(said(&s, "workerRefused") && said(&s, "workerLost"), "%s", str_text(&s.log));
    closed(&s, 1);
    s.attempt[1]++;
    forget(&s);
    hello(&s, 1, -1);
    cr_assert(said(&s, "send 1 welcome"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Its node has an older image; the others are still being scheduled. */
Test(trouble, the_first_pod_that_comes_with_other_software_does_not_end_what_others_could_do)
{
    struct story s;
    struct rdzv_settings settings = patient(1);
    settings.unsupervised = true;
    settings.workers_target = 3;
    struct msg_fault old = {.kind = FAULT_STORAGE,
                            .class = CLASS_SOFTWARE,
                            .step = -1,
                            .exit_code = 3,
                            .detail = "step-00000231 has a manifest of a newer version"};
    story_begin(&s, settings);
    hello(&s, 0, -1);
    stopped(&s, 0, -1, -1);
    fault_says(&s, 0, &old);
    cr_assert(said(&s, "send 0 abandon") && said(&s, "elsewhere why="), "%s", str_text(&s.log));
    cr_assert_eq(s.ended, -1, "%s", rdzv_why(s.st));
    closed(&s, 0);
    hello(&s, 1, -1);
    stopped(&s, 1, -1, -1);
    listed(&s, 1, 231, -1);
    after(&s, RM_S);
    ready(&s, 1, 231);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(trouble, data_that_a_trainer_can_not_read_for_a_moment_cost_a_pause_and_no_failure)
{
    struct story s;
    story_begin(&s, patient(1));
    train_with(&s, 2);
    progress(&s, 0, 46);
    fault_says(&s, 1, &(struct msg_fault){.kind = FAULT_DATA, .class = CLASS_PASSING, .step = 46});
    fault_of(&s, 1, FAULT_TRAINER_EXIT, -1, -1);
    cr_assert_not(said(&s, "workerFailed") || said(&s, "workerQuarantined"), "%s", str_text(&s.log));
    cr_assert_eq(s.ended, -1);
    story_end(&s);
}

/* ---- what the run ends with ---- */

static void finish_with(struct story *s, struct rdzv_settings settings, int n)
{
    settings.steps = 100;
    story_begin(s, settings);
    train_with(s, n);
    progress(s, 0, 100);
    for (int w = 0; w < n; w++)
        finished(s, w);
    cr_assert_eq(rdzv_state(s->st), RDZV_SAVING, "%s", str_text(&s->log));
}

static void publishes_and_ends(struct story *s)
{
    cr_assert(said(s, "send 0 publish"), "%s", str_text(&s->log));
    published(s, 0, 100, true);
    cr_assert_eq(s->ended, 0, "%s", str_text(&s->log));
    story_end(s);
}

Test(trouble, a_final_slice_that_one_can_not_write_goes_to_another_holder)
{
    struct story s;
    struct rdzv_settings settings = patient(2);
    settings.save_patience = 0; /* a folder */
    finish_with(&s, settings, 2);
    forget(&s);
    write_fails(&s, 1, 100, CLASS_MACHINE);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    cr_assert(said(&s, "send 0 save"), "%s", str_text(&s.log));
    checkpointed(&s, 0, 100, 0, 1, true);
    publishes_and_ends(&s);
}

/* Five cuts of one step, of seven, six .. three parts, and each has a piece in: there is room for four. */
Test(trouble, a_late_piece_of_an_old_cut_never_takes_the_room_of_the_newest)
{
    struct story s;
    finish_with(&s, patient(2), 7);
    for (int parts = 7; parts > 3; parts--) {
        checkpointed(&s, 0, 100, 0, parts, true);
        write_fails(&s, parts - 1, 100, CLASS_MACHINE);
    }
    forget(&s);
    checkpointed(&s, 0, 100, 0, 3, true);
    checkpointed(&s, 1, 100, 1, 7, true);
    checkpointed(&s, 1, 100, 1, 3, true);
    checkpointed(&s, 2, 100, 2, 6, true);
    cr_assert_not(said(&s, "publish"), "%s", str_text(&s.log));
    checkpointed(&s, 2, 100, 2, 3, true);
    publishes_and_ends(&s);
}

Test(trouble, a_final_slice_that_nobody_can_write_is_tried_again_until_the_patience_is_over)
{
    struct story s;
    finish_with(&s, patient(2), 2);
    rm_time began = s.now;
    while (s.ended < 0 && s.now < began + 1000 * RM_S) {
        if (said(&s, " save")) {
            forget(&s);
            for (int w = 0; w < 2; w++)
                write_fails(&s, w, 100, CLASS_MACHINE);
        }
        they_live_on(&s, 2, 1);
        if (s.now == began + 10 * RM_S)
            cr_assert_eq(s.ended, -1);
    }
    cr_assert_eq(s.ended, 4, "%s", rdzv_why(s.st));
    cr_assert_geq(s.now - began, 590 * RM_S);
    story_end(&s);
}

Test(trouble, a_ring_that_is_formed_anew_knows_when_the_newest_checkpoint_was_published)
{
    struct story s;
    story_begin(&s, patient(2));
    train_with(&s, 2);
    they_live_on(&s, 2, 40);
    for (int w = 0; w < 2; w++)
        checkpointed(&s, w, 8, w, 2, false);
    published(&s, 0, 8, false);
    they_live_on(&s, 2, 25);
    fault_of(&s, 0, FAULT_RING, 1, 9);
    for (int w = 0; w < 2; w++)
        stopped(&s, w, 9, 9);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.saved_ago, 25 * RM_S);
    story_end(&s);
}

Test(trouble, a_newcomer_that_holds_nothing_is_nobody_who_could_write_it_instead)
{
    struct story s;
    struct rdzv_settings settings = patient(2);
    settings.save_patience = 0; /* a folder */
    story_begin(&s, settings);
    train_with(&s, 2);
    progress(&s, 0, 46);
    expect_workers(&s, 7);
    fault_of(&s, 1, FAULT_TRAINER_EXIT, -1, -1);
    play(&s, &(struct rdzv_event){.kind = RDZV_INTERRUPT});
    hello(&s, 2, -1);
    stopped(&s, 2, -1, -1);
    stopped(&s, 0, 46, 46);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", str_text(&s.log));
    write_fails(&s, 0, 46, CLASS_MACHINE);
    cr_assert_eq(s.ended, 4, "it does not wait for ever: %s", rdzv_why(s.st));
    story_end(&s);
}

/* Both that held what was newer are gone, and step 40 is the newest that was saved. */
static void both_go_back(struct story *s)
{
    for (int w = 0; w < 2; w++)
        fault_of(s, w, FAULT_TRAINER_EXIT, -1, -1);
    for (int w = 0; w < 2; w++) {
        s->trainer[w] += 10;
        hello(s, w, -1);
        stopped(s, w, -1, -1);
    }
    for (int w = 0; w < 2; w++)
        listed(s, w, 40, -1);
    for (int w = 0; w < 2; w++)
        ready(s, w, 40);
    cr_assert_eq(rdzv_state(s->st), RDZV_TRAINING, "%s", str_text(&s->log));
}

Test(trouble, a_job_that_went_back_has_written_what_it_writes_then_though_a_later_step_was_not_written)
{
    struct story s;
    struct rdzv_settings settings = patient(2);
    settings.max_restarts = 5;
    begin(&s, settings, 2, 40, -1);
    for (int w = 0; w < 2; w++)
        ready(&s, w, 40);
    progress(&s, 0, 80);
    write_fails(&s, 1, 80, CLASS_MACHINE);
    checkpointed(&s, 0, 80, 0, 2, false);
    both_go_back(&s);
    progress(&s, 0, 60);
    for (int w = 0; w < 2; w++)
        checkpointed(&s, w, 60, w, 2, false);
    published(&s, 0, 60, false);
    they_live_on(&s, 2, 40);
    char trouble[RM_WHY_MAX];
    cr_assert_eq(rdzv_describe_trouble(s.st, 1, trouble, sizeof trouble), 0, "%s", trouble);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    story_end(&s);
}
