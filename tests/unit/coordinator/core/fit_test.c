/* Machines of two kinds, cpu-a and cpu-b, on which the same sums have other bits. Nobody says who is
 * expected, as in a cluster. */
#include "coordinator/core/rdzv_fit.h"

#include <stdio.h>

#include "tests/unit/coordinator/core/story.h"

static void begin(struct story *s, bool mixed)
{
    struct rdzv_settings settings = story_settings(1);
    settings.unsupervised = true;
    settings.allow_mixed_hardware = mixed;
    story_begin(s, settings);
}

static void come_on(struct story *s, int w, const char *machine, int64_t step)
{
    s->machine[w] = machine;
    hello(s, w, step);
}

/* Worker 0 trains alone on a cpu-a. */
static void train_alone(struct story *s)
{
    hello(s, 0, -1);
    stopped(s, 0, -1, -1);
    listed(s, 0, -1, -1);
    after(s, 100 * RM_MS);
    ready(s, 0, 0);
    progress_in(s, 0, 1, 10 * RM_S);
    cr_assert_eq(rdzv_state(s->st), RDZV_TRAINING, "%s", str_text(&s->log));
    forget(s);
}

Test(fit, who_computes_other_bits_may_take_part_on_another_machine)
{
    struct story s;
    begin(&s, false);
    train_alone(&s);
    come_on(&s, 1, "cpu-b", -1);
    cr_assert(said(&s, "elsewhere why=\"worker 1 computes other bits"), "%s", str_text(&s.log));
    cr_assert(said(&s, "\"event\":\"workerRefused\",\"time\":0,\"worker\":1"), "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    story_end(&s);
}

Test(fit, who_is_of_another_job_fits_nowhere_and_who_sees_other_data_may_on_another_machine)
{
    struct story s;
    struct message m;
    begin(&s, false);
    train_alone(&s);
    for (int w = 1; w <= 2; w++) {
        hello_message(&s, w, -1, &m);
        text_copy(w == 1 ? m.hello.job : m.hello.data_sha256, 8, "other");
        s.conn[w] = s.conns++;
        hear(&s, w, &m);
    }
    cr_assert(said(&s, "1.1 why=\"worker 1 belongs to job other"), "%s", str_text(&s.log));
    cr_assert(said(&s, "elsewhere why=\"worker 2 sees other training data"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(fit, where_it_is_allowed_they_train_together)
{
    struct story s;
    begin(&s, true);
    train_alone(&s);
    come_on(&s, 1, "cpu-b", -1);
    cr_assert_not(said(&s, "abandon"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(fit, one_that_runs_other_software_is_told_so_and_its_machine_is_not_blamed)
{
    struct story s;
    begin(&s, false);
    s.machine[0] = "numerics 1f, fp32, avx2, a cpu (6/1/2), oneDNN 3.1";
    train_alone(&s);
    come_on(&s, 1, "numerics 2e, fp32, avx2, a cpu (6/1/2), oneDNN 3.1", -1);
    cr_assert(
        said(&s,
             "worker 1 computes other bits: it runs other software than the job, 'numerics 2e, oneDNN 3.1' "
             "instead of 'numerics 1f, oneDNN 3.1'; give all"),
        "%s", str_text(&s.log));
    come_on(&s, 2, "numerics 1f, fp32, avx2, a cpu (6/1/2), oneDNN 3.2", -1);
    cr_assert(said(&s, "worker 2 computes other bits: it runs other software"), "%s", str_text(&s.log));
    come_on(&s, 3, "numerics 1f, fp32, avx512f, b cpu (6/1/2), oneDNN 3.1", -1);
    cr_assert(said(&s, "worker 3 computes other bits: its fingerprint is"), "%s", str_text(&s.log));
    come_on(&s, 4, "numerics 2e, bf16, sm_90, 132 processors, cuBLASLt 13.1", -1);
    cr_assert(said(&s, "worker 4 computes other bits: its fingerprint is"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(fit, what_runs_a_program_is_of_one_build_in_the_whole_job)
{
    struct story s;
    begin(&s, false);
    s.machine[0] = "launch, bundle 1f00aa11bb22cc33";
    train_alone(&s);
    come_on(&s, 1, "launch, bundle 1f00aa11bb22cc33", -1);
    cr_assert_not(said(&s, "abandon"), "%s", str_text(&s.log));
    come_on(&s, 2, "launch, bundle 2e00aa11bb22cc33", -1);
    cr_assert(said(&s, "elsewhere why=\"worker 2 runs other software than the job: it is 'launch, bundle "
                       "2e00aa11bb22cc33', the job's is 'launch, bundle 1f00aa11bb22cc33'; give all"),
              "%s", str_text(&s.log));
    story_end(&s);
}

Test(fit, who_runs_other_software_than_made_the_checkpoint_hears_what_can_be_done)
{
    struct story s;
    begin(&s, false);
    s.made_by = "numerics 1f00aa11bb22cc33, fp32, avx2, a cpu (6/1/2), oneDNN 3.1.5";
    come_on(&s, 0, "numerics 2e00aa11bb22cc33, fp32, avx2, a cpu (6/1/2), oneDNN 3.1.5", -1);
    stopped(&s, 0, -1, -1);
    listed(&s, 0, 7, -1);
    cr_assert(
        said(&s,
             "worker 0 computes other bits than the checkpoint: 'numerics 2e00aa11bb22cc33, oneDNN 3.1.5', "
             "not 'numerics 1f00aa11bb22cc33, oneDNN 3.1.5'; use its image, or set "
             "trainer.allowMixedHardware (the result is then not exact)"),
        "%s", str_text(&s.log));
    story_end(&s);
}

static void come_measured(struct story *s, int w, const char *probe, int64_t step)
{
    s->probe[w] = probe;
    hello(s, w, step);
}

Test(fit, a_machine_of_the_jobs_kind_that_computes_otherwise_is_refused_by_its_probe)
{
    struct story s;
    begin(&s, false);
    s.probe[0] = "00112233aabbccdd";
    train_alone(&s);
    come_measured(&s, 1, "00112233aabbccde", -1);
    cr_assert(said(&s,
                   "elsewhere why=\"worker 1 computes other bits although its machine is of the job's kind: "
                   "its probe is 00112233aabbccde, the job's is 00112233aabbccdd; one of the machines is "
                   "faulty"),
              "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    forget(&s);
    come_measured(&s, 2, "00112233aabbccdd", -1);
    come_measured(&s, 3, NULL, -1);
    cr_assert_not(said(&s, "abandon"), "the same, and who was not measured: %s", str_text(&s.log));
    story_end(&s);
}

Test(fit, where_other_bits_are_allowed_another_probe_is_no_reason_but_the_run_is_not_exact)
{
    struct story s;
    begin(&s, true);
    s.probe[0] = "00112233aabbccdd";
    train_alone(&s);
    cr_assert_not(rdzv_is_mixed(s.st));
    come_measured(&s, 1, "00112233aabbccde", -1);
    cr_assert_not(said(&s, "abandon"), "%s", str_text(&s.log));
    cr_assert(rdzv_is_mixed(s.st));
    story_end(&s);
}

/* The first one is the faulty one: what holds against it is that two agree. */
Test(fit, before_there_is_a_state_the_majority_of_three_probes_decides)
{
    struct story s;
    begin(&s, false);
    come_measured(&s, 0, "bad", -1);
    come_measured(&s, 1, "good", -1);
    cr_assert(said(&s, "why=\"worker 1 computes other bits although"), "%s", str_text(&s.log));
    forget(&s);
    come_measured(&s, 1, "good", -1);
    cr_assert(said(&s, "why=\"worker 1 computes other bits although"), "once more is no other machine: %s",
              str_text(&s.log));
    forget(&s);
    come_measured(&s, 2, "good", -1);
    cr_assert(said(&s, "why=\"worker 0 computes other bits although"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "why=\"worker 2"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(fit, who_holds_the_jobs_bits_is_not_outvoted)
{
    struct story s;
    begin(&s, false);
    s.probe[0] = "first";
    train_alone(&s);
    for (int w = 1; w <= 3; w++)
        come_measured(&s, w, "others", -1);
    cr_assert(said(&s, "why=\"worker 3 computes other bits although"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "why=\"worker 0"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(fit, one_of_another_protocol_fits_with_the_coordinators_image)
{
    struct story s;
    struct message m;
    begin(&s, false);
    train_alone(&s);
    hello_message(&s, 1, -1, &m);
    m.hello.protocol = MSG_PROTOCOL + 1;
    s.conn[1] = s.conns++;
    hear(&s, 1, &m);
    cr_assert(
        said(&s, "elsewhere why=\"worker 1 runs other software than the coordinator: it speaks protocol"),
        "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    story_end(&s);
}

/* All machines went, and the first one of the new ones is of another kind than those were. */
Test(fit, a_job_goes_on_from_a_checkpoint_on_machines_of_the_kind_that_made_it)
{
    struct story s;
    begin(&s, false);
    come_on(&s, 0, "cpu-b", -1);
    stopped(&s, 0, -1, -1);
    listed(&s, 0, 7, -1);
    cr_assert(said(&s, "elsewhere why=\"worker 0 computes other bits"), "%s", str_text(&s.log));
    closed(&s, 0);
    after(&s, RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "it waits for one that fits");
    hello(&s, 1, -1);
    stopped(&s, 1, -1, -1);
    listed(&s, 1, 7, -1);
    after(&s, 100 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.resume.step, 7);
    story_end(&s);
}

/* The folder that one machine sees may be another job's. */
Test(fit, what_one_worker_alone_lists_sends_nobody_away)
{
    struct story s;
    begin(&s, false);
    for (int w = 0; w < 2; w++) {
        come_on(&s, w, "cpu-b", -1);
        stopped(&s, w, -1, -1);
    }
    listed(&s, 0, 7, -1); /* made by a cpu-a */
    cr_assert_not(said(&s, "computes other bits"), "%s", str_text(&s.log));
    listed(&s, 1, -1, -1);
    cr_assert_not(said(&s, "computes other bits"), "%s", str_text(&s.log));
    story_end(&s);
}

/* They come one by one, and fewer than min of them never list what lies in the store. */
Test(fit, what_a_checkpoint_was_made_by_stands_when_those_who_were_refused_have_gone)
{
    struct story s;
    begin(&s, false);
    come_on(&s, 0, "cpu-b", -1);
    stopped(&s, 0, -1, -1);
    listed(&s, 0, 7, -1);
    closed(&s, 0);
    after(&s, RM_S);
    come_on(&s, 2, "cpu-b", -1);
    cr_assert(said(&s, "worker 2 computes other bits"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(fit, of_a_machine_that_went_away_before_the_first_step_nothing_is_left_to_fit)
{
    struct story s;
    begin(&s, false);
    come_on(&s, 0, "cpu-b", -1);
    closed(&s, 0);
    hello(&s, 1, -1);
    cr_assert_not(said(&s, "abandon"), "%s", str_text(&s.log));
    come_on(&s, 2, "cpu-b", -1);
    cr_assert(said(&s, "worker 2 computes other bits"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(fit, whose_trainer_died_still_holds_what_the_others_have_to_fit)
{
    struct story s;
    struct message m;
    begin(&s, false);
    train_alone(&s);
    fault_of(&s, 0, FAULT_TRAINER_EXIT, -1, -1);
    hello_message(&s, 0, -1,
                  &m); /* its connection broke, too, and it has no trainer that could say what it holds */
    m.hello.trainer_pid = 0;
    s.conn[0] = s.conns++;
    hear(&s, 0, &m);
    come_on(&s, 1, "cpu-b", -1);
    cr_assert(said(&s, "worker 1 computes other bits"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(fit, a_checkpoint_names_the_machine_that_made_it_whoever_publishes_it)
{
    struct story s;
    begin(&s, false);
    train_alone(&s);
    checkpointed(&s, 0, 1, 0, 1, false);
    s.attempt[0] = 1;
    come_on(&s, 0, "cpu-b", -1); /* the first attempt's machine is gone, and this one is told to publish */
    cr_assert(said(&s, "send 0 publish"), "%s", str_text(&s.log));
    cr_assert_str_eq(s.publish.publish.fingerprint, "cpu-a");
    story_end(&s);
}

/* ---- what machines see of the training data ---- */

static void begin_with_files(struct story *s, int min, int max)
{
    struct rdzv_settings settings = story_settings(min);
    settings.unsupervised = settings.reads_files = true;
    settings.workers_max = settings.workers_target = max;
    settings.allow_mixed_hardware = false;
    story_begin(s, settings);
}

static void come_seeing(struct story *s, int w, const char *data)
{
    s->data[w] = data;
    s->attempt[w]++;
    hello(s, w, -1);
}

static bool is_sent_away(const struct story *s, int w)
{
    char text[64];
    snprintf(text, sizeof text, "elsewhere why=\"worker %d sees other training data", w);
    return said(s, text);
}

/* On its node lies last week's copy. */
Test(fit, the_first_that_comes_may_be_the_one_that_sees_other_data)
{
    struct story s;
    begin_with_files(&s, 1, 3);
    come_seeing(&s, 0, "last week");
    come_seeing(&s, 1, "today");
    cr_assert(is_sent_away(&s, 1), "one against one: %s", str_text(&s.log));
    closed(&s, 1);
    forget(&s);
    come_seeing(&s, 2, "today");
    cr_assert(is_sent_away(&s, 0) && !is_sent_away(&s, 2), "%s", str_text(&s.log));
    closed(&s, 0);
    forget(&s);
    come_seeing(&s, 1, "today");
    cr_assert(said(&s, "send 1 welcome"), "%s", str_text(&s.log));
    cr_assert_eq(s.ended, -1, "%s", rdzv_why(s.st));
    story_end(&s);
}

Test(fit, one_and_the_same_worker_outvotes_nobody_however_often_it_comes)
{
    struct story s;
    begin_with_files(&s, 1, 3);
    come_seeing(&s, 0, "today");
    for (int i = 0; i < 5; i++) {
        forget(&s);
        come_seeing(&s, 1, "last week");
        cr_assert(is_sent_away(&s, 1) && !is_sent_away(&s, 0), "%s", str_text(&s.log));
        closed(&s, 1);
    }
    story_end(&s);
}

Test(fit, whoever_holds_a_state_is_outvoted_by_nobody)
{
    struct story s;
    begin_with_files(&s, 1, 4);
    train_alone(&s);
    for (int w = 1; w < 4; w++) {
        come_seeing(&s, w, "last week");
        cr_assert(is_sent_away(&s, w), "%s", str_text(&s.log));
        closed(&s, w);
    }
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", rdzv_why(s.st));
    story_end(&s);
}

/* After a suspension one comes first that sees other data, alone: its word is not the job's. */
Test(fit, what_a_checkpoint_was_trained_on_is_the_jobs_whoever_comes_first)
{
    struct story s;
    begin_with_files(&s, 1, 3);
    s.trained_on = "today";
    come_seeing(&s, 0, "last week");
    stopped(&s, 0, -1, -1);
    listed(&s, 0, 7, -1);
    cr_assert(said(&s, "worker 0 sees other training data (sha256 last week) than the checkpoint was trained "
                       "on (today)"),
              "%s", str_text(&s.log));
    closed(&s, 0);
    forget(&s);
    come_seeing(&s, 1, "today");
    stopped(&s, 1, -1, -1);
    listed(&s, 1, 7, -1);
    after(&s, RM_S);
    ready(&s, 1, 7);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    checkpointed(&s, 1, 8, 0, 1, false);
    story_end(&s);
}

Test(fit, data_that_have_changed_for_all_end_the_job_and_nothing_is_trained_on_them)
{
    struct story s;
    begin_with_files(&s, 2, 3);
    s.trained_on = "then";
    for (int w = 0; w < 2; w++) {
        come_seeing(&s, w, "now");
        stopped(&s, w, -1, -1);
    }
    for (int w = 0; w < 2; w++)
        listed(&s, w, 7, -1);
    cr_assert(is_sent_away(&s, 0) && is_sent_away(&s, 1), "%s", str_text(&s.log));
    for (int w = 0; w < 2; w++) {
        closed(&s, w);
        cr_assert_eq(s.ended, -1, "one may be wrong: %s", rdzv_why(s.st));
        come_seeing(&s, w, "now");
    }
    after(&s, RM_S);
    cr_assert_eq(s.ended, EXIT_DATA, "%s", rdzv_why(s.st));
    cr_assert(strstr(rdzv_why(s.st), "is not what the checkpoint was trained on"), "%s", rdzv_why(s.st));
    story_end(&s);
}

/* While they still load, so that nobody holds a state yet. */
Test(fit, machines_with_another_copy_end_no_job_that_others_are_about_to_go_on_with)
{
    struct story s;
    begin_with_files(&s, 2, 4);
    s.trained_on = "today";
    for (int w = 0; w < 2; w++) {
        come_seeing(&s, w, "today");
        stopped(&s, w, -1, -1);
    }
    for (int w = 0; w < 2; w++)
        listed(&s, w, 7, -1);
    for (int w = 2; w < 4; w++) {
        come_seeing(&s, w, "last week");
        cr_assert(is_sent_away(&s, w), "%s", str_text(&s.log));
        closed(&s, w);
    }
    after(&s, RM_S);
    cr_assert_eq(s.ended, -1, "%s", rdzv_why(s.st));
    story_end(&s);
}

/* Of a store all have one listing, and where a folder has become a store since, another name for the same. */
Test(fit, of_data_in_a_store_the_checkpoints_name_for_them_says_nothing)
{
    struct story s;
    begin(&s, false);
    s.trained_on = "as a folder";
    come_seeing(&s, 0, "as a listing");
    stopped(&s, 0, -1, -1);
    listed(&s, 0, 7, -1);
    cr_assert_not(is_sent_away(&s, 0), "%s", str_text(&s.log));
    story_end(&s);
}

/* Its trainer ended while the coordinator was away, and a successor hears of a slice that it wrote before. */
Test(fit, a_checkpoint_names_the_machine_that_made_it_although_its_trainer_is_gone)
{
    struct story s;
    struct rdzv_settings settings = story_settings(1);
    settings.unsupervised = true;
    story_begin(&s, settings);
    s.trainer[0] = 0;
    hello(&s, 0, -1);
    checkpointed(&s, 0, 1, 0, 1, false);
    cr_assert_eq(s.publish.publish.step, 1, "%s", str_text(&s.log));
    cr_assert_str_eq(s.publish.publish.fingerprint, "cpu-a");
    story_end(&s);
}
