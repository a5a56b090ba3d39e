/* Jobs whose program stays (launch.mode: Elastic): pods as of any program, and all else as of the built-in
 * trainer. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "cast.h"
#include "common/job/file.h"
#include "common/wire/json.h"
#include "operator/core/account.h"
#include "operator/core/pod.h"
#include "operator/core/pod_program.h"
#include "operator/core/read.h"

#define LAUNCH(more)                                                                                         \
    "\"trainer\":null,\"launch\":{\"command\":[\"python3\",\"train.py\"],\"mode\":\"Elastic\","              \
    "\"steps\":2000" more "}"
#define BATCH ",\"batch\":{\"lanes\":8,\"laneSequences\":2}"
#define JOB   "{" LAUNCH(BATCH) "}"

static const struct op_settings settings = {.worker_image = "ours:1", .operator_namespace = "rm"};

Test(operator_elastic, its_coordinator_gets_the_spec_that_a_run_makes_of_the_same_file)
{
    static const char file[] =
        "apiVersion: ringmaster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: tiny}\nspec:\n"
        "  workers: {target: 3, min: 2, max: 5}\n"
        "  launch:\n    command: [python3, train.py]\n    mode: Elastic\n    steps: 2000\n    seed: 7\n"
        "    batch: {lanes: 8, laneSequences: 2}\n"
        "  checkpoint: {uri: \"s3://data/runs/tiny\", endpoint: \"http://store:7070\"}\n"
        "  elasticity: {joinWindow: 10s}\n";
    struct cast *c = cast_open("{" LAUNCH(",\"seed\":7" BATCH) "}");
    struct job_file_source source = {.path = "job.yaml", .folder = "/", .cwd = "/"};
    struct str api = str_init(1 << 20), local = str_init(1 << 20), notes = str_init(4096);
    struct job_spec spec;
    struct error err = {0};
    cr_assert_eq(job_effective_spec(&c->job, &api, &err), 0, "%s", err.text);
    cr_assert_eq(job_file_parse(&spec, file, strlen(file), &source, &notes, &err), 0, "%s", err.text);
    job_spec_write(&spec, &local);
    cr_assert_str_eq(str_text(&api), str_text(&local));
    str_clear(&api);
    str_clear(&local);
    str_clear(&notes);
    cast_free(c);
}

Test(operator_elastic, without_a_most_it_may_grow_to_a_worker_for_each_lane)
{
    struct cast *c = cast_open("{" LAUNCH(BATCH) ",\"workers\":{\"max\":null}}"),
                *plain = cast_open("{" LAUNCH("") ",\"workers\":{\"max\":null}}");
    struct str text = str_init(1 << 20);
    struct error err = {0};
    cr_assert_eq(c->job.workers_max, 8);
    cr_assert_eq(job_effective_spec(&c->job, &text, &err), 0, "%s", err.text);
    cr_assert_eq(plain->job.workers_max, RM_WORKERS_MAX);
    str_clear(&text);
    cast_free(c);
    cast_free(plain);
}

/* What the API server can't see. */
Test(operator_elastic, a_launcher_of_ranks_is_refused)
{
    struct cast *c = cast_open("{\"trainer\":null,\"launch\":{\"command\":[\"torchrun\",\"a.py\"],\"mode\":"
                               "\"Elastic\",\"steps\":5}}");
    struct str text = str_init(1 << 20);
    struct error err = {0};
    cr_assert_lt(job_effective_spec(&c->job, &text, &err), 0);
    cr_assert(strstr(err.text, "spec.launch.command is a launcher of ranks"), "%s", err.text);
    str_clear(&text);
    cast_free(c);
}

static struct js *made(const struct job_view *job, bool coordinator)
{
    struct str text = str_init(1 << 20);
    struct error err = {0};
    int status = coordinator ? pod_coordinator(job, &settings, &(struct op_spec){0}, 2, &text, &err)
                             : pod_worker(job, &settings, NULL, 3, 2, &text, &err);
    cr_assert_eq(status, 0, "%s", err.text);
    struct js *pod = js_parse(str_text(&text), text.length, "pod", &err);
    str_clear(&text);
    return pod;
}

static const struct js *named(const struct js *pod, const char *list, const char *name)
{
    const struct js *all = read_at(pod, list);
    for (size_t i = 0; i < js_size(all); i++)
        if (!strcmp(js_as_string(js_get(js_at(all, i), "name")), name))
            return js_at(all, i);
    return NULL;
}

Test(operator_elastic, its_workers_run_in_an_image_of_theirs_with_the_bundle_and_the_store)
{
    struct cast *c = cast_open(JOB);
    struct js *pod = made(&c->job, false);
    const struct js *container = named(pod, "spec.containers", "trainer");
    cr_assert_str_eq(js_as_string(js_at(js_get(container, "command"), 0)), POD_BUNDLE_AGENT);
    cr_assert(named(pod, "spec.initContainers", OP_INSTALLER));
    cr_assert(named(pod, "spec.volumes", "ringmaster-home"));
    cr_assert(named(pod, "spec.volumes", "ringmaster-credentials"));
    cr_assert_not(named(pod, "spec.volumes", "ringmaster-cache"), "nothing is fetched");
    js_free(pod);
    cast_free(c);
}

static bool stands_in_status(struct cast *c, const char *text)
{
    struct str written = str_init(1 << 20);
    status_write(&c->job.status, "tiny", &written);
    bool there = strstr(str_text(&written), text) != NULL;
    str_clear(&written);
    return there;
}

Test(operator_elastic, its_steps_are_told_as_the_built_in_trainers_are)
{
    struct cast *c = cast_training(JOB);
    c->coordinator.progress.eta_seconds = 75;
    c->coordinator.begun = 4;
    cast_settle(c);
    cr_assert_str_eq(c->job.status.state, "Training");
    cr_assert_str_eq(c->job.status.message, "3 of 3 workers at step 812");
    cr_assert_str_eq(c->job.status.condition[OP_TRAINING].reason, "Training");
    cr_assert(stands_in_status(c, "\"progress\":\"40%\",\"eta\":\"1m15s\""));
    struct js *pod = made(&c->job, true);
    const struct js *container = named(pod, "spec.containers", "coordinator");
    const struct js *env = js_get(container, "env");
    for (size_t i = 0; i < js_size(env); i++)
        cr_assert_str_neq(js_as_string(js_get(js_at(env, i), "name")), "RINGMASTER_POD_GENERATION");
    js_free(pod);
    cast_free(c);
}

Test(operator_elastic, what_it_holds_is_saved_before_it_is_suspended)
{
    struct cast *c = cast_training(JOB);
    c->coordinator.state = STATUS_QUIESCING;
    cast_settle(c);
    cr_assert_str_eq(c->job.status.state, "Saving");
    c->job.suspend = true;
    cast_settle(c);
    cr_assert_str_eq(c->job.status.message, "the workers save a checkpoint and end");
    cast_free(c);
}

/* The coordinator's container has ended with this in its termination message. */
static void say_last_word(struct cast *c, int code, const char *message)
{
    struct pod_view *pod = &c->pod[0];
    c->coordinator_answers = false;
    pod->phase = code ? OP_POD_FAILED : OP_SUCCEEDED;
    pod->terminated = true;
    pod->exit_code = code;
    pod->ended_ms = c->now_ms;
    last_word_read(message, &pod->last_word);
    cast_settle(c);
}

Test(operator_elastic, it_is_complete_with_its_weights)
{
    struct cast *c = cast_training(JOB);
    say_last_word(c, 0, "{\"exitCode\":0,\"reason\":\"\",\"interrupted\":false}");
    cr_assert_not(condition_is(&c->job.status, OP_FINISHED), "there are no weights yet");
    cast_free(c);
    c = cast_training(JOB);
    say_last_word(c, 0,
                  "{\"exitCode\":0,\"reason\":\"\",\"interrupted\":false,\"step\":2000,\"exact\":true,"
                  "\"weightsSha256\":\"ab\",\"uri\":\"s3://data/runs/tiny/final\"}");
    cr_assert_str_eq(c->job.status.condition[OP_COMPLETE].reason, "Trained");
    cr_assert(stands_in_status(c, "\"result\":{\"step\":2000,\"weightsSha256\":\"ab\""));
    cast_free(c);
}

Test(operator_elastic, a_failed_one_says_what_the_program_ended_with)
{
    struct cast *c = cast_training(JOB);
    say_last_word(c, 5, "{\"exitCode\":5,\"programExitCode\":3,\"reason\":\"worker 1: exit code 3\"}");
    cr_assert_str_eq(c->job.status.condition[OP_FAILED].reason, "ProgramFailed");
    cr_assert(stands_in_status(c, "\"result\":{\"exitCode\":3}"));
    cast_free(c);
}

static struct op_ending ending_of(int code, const char *message)
{
    struct op_ending ending;
    struct cast *c = cast_open(JOB);
    struct pod_view pod = {.role = OP_WORKER, .phase = OP_POD_FAILED, .terminated = true, .exit_code = code};
    text_copy(pod.terminated_reason, sizeof pod.terminated_reason, "Error");
    last_word_read(message, &pod.last_word);
    account_pod(&c->job, &pod, NULL, 3, &ending);
    cast_free(c);
    return ending;
}

/* A trainer of ours that refuses its program says so by its agent: another attempt would be refused as well.
 */
Test(operator_elastic, a_program_that_is_refused_ends_the_job_with_the_refusal)
{
    struct op_ending ending = ending_of(2, "{\"exitCode\":2,\"reason\":\"the program did not call it\"}");
    cr_assert(ending.fails_job);
    cr_assert_str_eq(ending.message, "worker 3 ended with exit code 2: the program did not call it");
    cr_assert_not(ending_of(2, "").fails_job, "nobody says why");
    cr_assert_not(ending_of(2, "{\"exitCode\":4,\"reason\":\"x\"}").fails_job, "it says something else");
    cr_assert_not(ending_of(4, "{\"exitCode\":4,\"reason\":\"x\"}").fails_job, "a machine's");
}

/* It has gone by itself, before its coordinator sent it elsewhere. */
static void refuse_worker(struct cast *c)
{
    struct pod_view *pod = cast_worker(c, 1);
    pod->phase = OP_POD_FAILED;
    pod->terminated = true;
    pod->exit_code = 2;
    text_copy(pod->terminated_reason, sizeof pod->terminated_reason, "Error");
    last_word_read("{\"exitCode\":2,\"reason\":\"the program did not call it\"}", &pod->last_word);
    cast_settle(c);
}

static void check_made_anew(struct cast *c)
{
    const struct job_status *status = &c->job.status;
    cr_assert_not(condition_is(status, OP_STOPPING), "%s", status->message);
    cr_assert_eq(status->restarts.misfit, 1);
    cr_assert_eq(status->restarts.failure, 0);
    cr_assert_str_eq(status->workers.unfit.nodes.name[0], "node-1");
    c->now_ms += 1000;
    cast_settle(c);
    cr_assert_eq(status->workers.slot[1].attempt, 2);
}

Test(operator_elastic, one_that_is_refused_while_others_train_is_made_anew_elsewhere)
{
    struct cast *c = cast_training(JOB);
    refuse_worker(c);
    check_made_anew(c);
    cast_free(c);
}

Test(operator_elastic,
     one_that_is_refused_while_its_coordinator_is_away_is_made_anew_where_others_have_trained)
{
    struct cast *c = cast_training(JOB);
    cast_settle(c);
    c->coordinator_answers = false;
    refuse_worker(c);
    check_made_anew(c);
    cast_free(c);
}

Test(operator_elastic, one_that_is_refused_before_anybody_trains_is_the_jobs_end)
{
    struct cast *c = cast_training(JOB);
    c->coordinator.ring_size = 0;
    c->coordinator.progress.known = c->job.status.progress.known = false;
    refuse_worker(c);
    cr_assert(condition_is(&c->job.status, OP_STOPPING), "%s", c->job.status.message);
    cast_free(c);
}
