/* Jobs that run a program of the user's (spec.launch): what their pods are, what is said of them, and whose
 * exit code means what. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "cast.h"
#include "common/job/file.h"
#include "common/wire/json.h"
#include "operator/core/account.h"
#include "operator/core/pod.h"
#include "operator/core/read.h"

#define LAUNCH "\"trainer\":null,\"launch\":{\"command\":[\"sh\",\"-c\",\"train\"],\"mode\":\"Restart\"}"
#define ALONE  LAUNCH ",\"checkpoint\":null"

static const struct op_settings settings = {.worker_image = "ours:1", .operator_namespace = "rm"};

Test(operator_program, a_program_is_all_that_its_job_has_to_name)
{
    static const char file[] = "apiVersion: ringmaster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: "
                               "tiny}\nspec:\n  workers: {target: 3, min: 2, max: 5}\n"
                               "  launch: {command: [sh, -c, train], mode: Restart}\n"
                               "  elasticity: {joinWindow: 10s}\n";
    struct cast *c = cast_open("{" ALONE "}");
    struct job_file_source source = {.path = "job.yaml", .folder = "/", .cwd = "/"};
    struct str api = str_init(1 << 20), local = str_init(1 << 20), notes = str_init(4096);
    struct job_spec spec;
    struct error err = {0};
    cr_assert_eq(job_effective_spec(&c->job, &api, &err), 0, "%s", err.text);
    cr_assert_eq(job_file_parse(&spec, file, strlen(file), &source, &notes, &err), 0, "%s", err.text);
    job_spec_write(&spec, &local);
    cr_assert_str_eq(str_text(&api), str_text(&local));
    cr_assert_not(strstr(str_text(&api), "checkpoint"));
    str_clear(&api);
    str_clear(&local);
    str_clear(&notes);
    cast_free(c);
}

Test(operator_program, without_a_most_it_may_grow_to_as_many_workers_as_there_can_be)
{
    struct cast *c = cast_open("{" ALONE ",\"workers\":{\"max\":null}}");
    cr_assert_eq(c->job.workers_max, RM_WORKERS_MAX);
    cast_free(c);
}

static bool in_spec(const char *changes, const char *text)
{
    struct cast *c = cast_open(changes);
    struct str spec = str_init(1 << 20);
    struct error err = {0};
    cr_assert_eq(job_effective_spec(&c->job, &spec, &err), 0, "%s", err.text);
    bool there = strstr(str_text(&spec), text) != NULL;
    str_clear(&spec);
    cast_free(c);
    return there;
}

Test(operator_program, what_auto_means_for_newcomers_is_written_out)
{
    cr_assert(in_spec("{\"elasticity\":{\"joinWindow\":\"Auto\"}}", "\"joinWindow\":\"10s\""));
    cr_assert(in_spec("{" ALONE ",\"elasticity\":{\"joinWindow\":\"Auto\"}}", "\"joinWindow\":\"30s\""));
    cr_assert(in_spec("{" ALONE ",\"elasticity\":{\"joinWindow\":\"4s\"}}", "\"joinWindow\":\"4s\""));
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

static int64_t grace(const char *changes, bool coordinator)
{
    struct cast *c = cast_open(changes);
    struct js *pod = made(&c->job, coordinator);
    int64_t seconds = 0;
    read_int(pod, "spec.terminationGracePeriodSeconds", 0, 100000, &seconds);
    js_free(pod);
    cast_free(c);
    return seconds;
}

#define PATIENT                                                                                              \
    "{\"trainer\":null,\"launch\":{\"command\":[\"a\"],\"mode\":\"Restart\",\"gracePeriod\":\"10m\"}"
#define HURRIED ",\"workers\":{\"template\":{\"spec\":{\"terminationGracePeriodSeconds\":40}}}"

Test(operator_program, its_pods_have_the_time_that_the_program_was_promised)
{
    cr_assert_eq(grace("{" ALONE "}", false), 120);
    cr_assert_eq(grace("{" ALONE "}", true), 135);
    cr_assert_eq(grace(PATIENT "}", false), 615);
    cr_assert_eq(grace(PATIENT "}", true), 630, "whoever lets the workers go is there for longer");
    cr_assert_eq(grace(PATIENT HURRIED "}", false), 40, "the template's word counts");
}

static bool has_volume(const struct js *pod, const char *name)
{
    const struct js *list = read_at(pod, "spec.volumes");
    for (size_t i = 0; i < js_size(list); i++)
        if (!strcmp(js_as_string(js_get(js_at(list, i), "name")), name))
            return true;
    return false;
}

Test(operator_program, its_pods_have_no_room_for_data_that_nobody_fetches)
{
    struct cast *c = cast_open("{" ALONE "}");
    struct js *pod = made(&c->job, false);
    cr_assert(has_volume(pod, "ringmaster-tmp") && has_volume(pod, "ringmaster-shm"));
    cr_assert_not(has_volume(pod, "ringmaster-cache"));
    cr_assert_not(has_volume(pod, "ringmaster-credentials"));
    js_free(pod);
    cast_free(c);
}

#define NAMELESS ",\"workers\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\"}]}}}"

Test(operator_program, the_operators_image_holds_nobodys_program)
{
    struct cast *trained = cast_open("{\"spot\":{}" NAMELESS "}"),
                *launched = cast_open("{" ALONE NAMELESS "}");
    struct str text = str_init(1 << 20);
    struct error err = {0};
    cr_assert_eq(pod_worker(&trained->job, &settings, NULL, 0, 1, &text, &err), 0);
    cr_assert_lt(pod_worker(&launched->job, &settings, NULL, 0, 1, &text, &err), 0);
    cr_assert_str_eq(err.text, "spec.workers.template: the container has no image; a program of spec.launch "
                               "runs in one of yours, set it");
    str_clear(&text);
    cast_free(trained);
    cast_free(launched);
}

static const char *variable(const struct js *pod, const char *name)
{
    const struct js *env = read_at(pod, "spec.containers");
    env = js_get(js_at(env, 0), "env");
    for (size_t i = 0; i < js_size(env); i++)
        if (!strcmp(js_as_string(js_get(js_at(env, i), "name")), name))
            return js_as_string(js_get(js_at(env, i), "value"));
    return NULL;
}

static struct cast *running(const char *changes)
{
    struct cast *c = cast_open(changes);
    cast_train(c);
    return c;
}

/* TORCHELASTIC_RESTART_COUNT is 0 once in a job, also where nobody who was there is left to tell. */
Test(operator_program, a_coordinator_is_told_how_many_generations_there_were)
{
    struct cast *c = running("{" ALONE "}");
    struct js *pod = made(&c->job, true);
    cr_assert_null(variable(pod, "RINGMASTER_POD_GENERATION"), "none, as far as is known");
    js_free(pod);
    c->coordinator.begun = 4;
    cast_settle(c);
    c->coordinator.begun = 2; /* an older answer */
    cast_settle(c);
    pod = made(&c->job, true);
    cr_assert_str_eq(variable(pod, "RINGMASTER_POD_GENERATION"), "4");
    js_free(pod);
    pod = made(&c->job, false);
    cr_assert_null(variable(pod, "RINGMASTER_POD_GENERATION"));
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

Test(operator_program, of_steps_nothing_is_told_and_never_a_zero)
{
    struct cast *c = running("{" ALONE "}");
    cr_assert_str_eq(c->job.status.state, "Running");
    cr_assert_str_eq(c->job.status.message, "3 of 3 workers run the program");
    cr_assert_str_eq(c->job.status.condition[OP_TRAINING].reason, "Running");
    cr_assert(condition_is(&c->job.status, OP_TRAINING));
    cr_assert_not(stands_in_status(c, "progress"));
    cr_assert_not(stands_in_status(c, "\"eta\""));
    cr_assert(stands_in_status(c, "\"columns\":{\"workers\":\"3/3\",\"interruptions\":0,\"restarts\":0}"));
    cast_free(c);
}

Test(operator_program, what_was_killed_for_its_memory_shows_in_a_column_of_its_own)
{
    struct cast *c = running("{" ALONE "}");
    c->job.status.restarts.failure = 4;
    c->job.status.restarts.misfit = 1;
    c->job.status.restarts.preemption = 2;
    cr_assert(stands_in_status(c, "\"interruptions\":2,\"restarts\":5}"));
    cast_free(c);
}

static void reports(struct cast *c, struct op_progress progress)
{
    c->coordinator.progress = progress;
    cast_settle(c);
}

Test(operator_program, what_it_reports_is_told_and_the_rest_stays_empty)
{
    struct cast *c = running("{" ALONE "}");
    cr_assert(strstr(c->job.status.condition[OP_TRAINING].message, "a hang can't be seen"), "%s",
              c->job.status.condition[OP_TRAINING].message);
    reports(
        c,
        (struct op_progress){
            .known = true, .step = 40, .tokens_per_second = -1, .samples_per_second = -1, .eta_seconds = -1});
    cr_assert(stands_in_status(c, "\"progress\":{\"step\":40}"));
    cr_assert(stands_in_status(c, "\"columns\":{\"workers\":\"3/3\",\"interruptions\":0,\"restarts\":0}"));
    cr_assert_str_eq(c->job.status.message, "3 of 3 workers run the program, at step 40");
    cr_assert(strstr(c->job.status.condition[OP_TRAINING].message, "reports its progress"));
    reports(c, (struct op_progress){.known = true,
                                    .step = 50,
                                    .steps = 200,
                                    .tokens_per_second = -1,
                                    .samples_per_second = -1,
                                    .eta_seconds = 75,
                                    .steps_per_second = "2",
                                    .loss = "1.5"});
    cr_assert(stands_in_status(c, "\"progress\":{\"step\":50,\"steps\":200,\"percent\":25,\"loss\":\"1.5\","
                                  "\"stepsPerSecond\":\"2\",\"etaSeconds\":75}"));
    cr_assert(stands_in_status(c, "\"progress\":\"25%\""));
    cast_free(c);
}

Test(operator_program, what_a_step_was_made_with_stands_in_the_status_as_far_as_it_is_known)
{
    struct cast *c = running("{" ALONE "}");
    reports(c, (struct op_progress){.known = true,
                                    .step = 50,
                                    .steps = 200,
                                    .tokens_per_second = -1,
                                    .samples_per_second = 4321,
                                    .eta_seconds = -1,
                                    .loss = "1.5",
                                    .norm = "0.25"});
    cr_assert(stands_in_status(c, "\"progress\":{\"step\":50,\"steps\":200,\"percent\":25,\"loss\":\"1.5\","
                                  "\"gradientNorm\":\"0.25\",\"samplesPerSecond\":4321}"));
    reports(c, (struct op_progress){.known = true,
                                    .step = 51,
                                    .steps = 200,
                                    .tokens_per_second = 8123,
                                    .samples_per_second = -1,
                                    .eta_seconds = -1,
                                    .loss = "1.5",
                                    .held_out = "1.75",
                                    .norm = "0.25",
                                    .clip = "1",
                                    .rate = "0.0006"});
    cr_assert(stands_in_status(c,
                               "\"loss\":\"1.5\",\"heldOutLoss\":\"1.75\",\"gradientNorm\":\"0.25\","
                               "\"clipFactor\":\"1\",\"learningRate\":\"0.0006\",\"tokensPerSecond\":8123}"));
    cast_free(c);
}

Test(operator_program, only_of_a_job_with_a_store_is_it_said_how_the_store_does)
{
    struct cast *without = running("{" ALONE "}"), *with = running("{" LAUNCH "}");
    cr_assert_eq(without->job.status.condition[OP_STORE_READY].status, OP_UNSET);
    cr_assert_eq(with->job.status.condition[OP_STORE_READY].status, OP_TRUE);
    cast_free(without);
    cast_free(with);
}

Test(operator_program, what_ends_to_begin_anew_saves_nothing)
{
    struct cast *c = running("{" ALONE "}");
    c->coordinator.state = STATUS_QUIESCING;
    cast_settle(c);
    cr_assert_str_eq(c->job.status.state, "Starting");
    c->coordinator.begun = 1;
    cast_settle(c);
    cr_assert_str_eq(c->job.status.state, "Recovering");
    c->job.suspend = true;
    cast_settle(c);
    cr_assert_str_eq(c->job.status.message,
                     "the program's processes are told to end, and the workers with them");
    cast_free(c);
}

#define RULES                                                                                                \
    ",\"failurePolicy\":{\"rules\":[{\"onExitCodes\":[42,137],\"action\":\"Restart\"},{\"onExitCodes\":["    \
    "7],\"action\":\"FailJob\"}]}"

Test(operator_program, the_coordinator_is_told_the_rules_that_it_has_to_ask)
{
    struct cast *launched = cast_open("{" ALONE RULES "}"), *trained = cast_open("{\"spot\":{}" RULES "}");
    struct str with = str_init(1 << 20), without = str_init(1 << 20);
    struct error err = {0};
    cr_assert_eq(job_effective_spec(&launched->job, &with, &err), 0, "%s", err.text);
    cr_assert_eq(job_effective_spec(&trained->job, &without, &err), 0, "%s", err.text);
    cr_assert(strstr(str_text(&with), "\"rules\":[{\"action\":\"Restart\",\"onExitCodes\":[42,137]}"), "%s",
              str_text(&with));
    cr_assert_not(strstr(str_text(&without), "rules"), "the operator asks them itself");
    str_clear(&with);
    str_clear(&without);
    cast_free(launched);
    cast_free(trained);
}

static struct op_ending ending_of(enum pod_role role, int code, const char *reason)
{
    struct op_ending ending;
    struct cast *c = cast_open("{" ALONE RULES "}");
    struct pod_view pod = {.role = role, .phase = OP_POD_FAILED, .terminated = true, .exit_code = code};
    text_copy(pod.terminated_reason, sizeof pod.terminated_reason, reason);
    account_pod(&c->job, &pod, NULL, role == OP_WORKER ? 3 : -1, &ending);
    cast_free(c);
    return ending;
}

/* The agent's word is none about the program, and a program's 2 and 3 mean nothing of ours. */
Test(operator_program, what_a_pod_ends_with_is_not_what_the_program_ended_with)
{
    static const int codes[] = {1, 2, 3, 4, 6, 7, 42, 137, 143};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        struct op_ending ending = ending_of(OP_WORKER, codes[i], "Error");
        cr_assert_eq(ending.counted, OP_COUNT_FAILURE, "%d", codes[i]);
        cr_assert_not(ending.fails_job, "%d", codes[i]);
        cr_assert_not(ending.spares_budget, "%d", codes[i]);
    }
    cr_assert(ending_of(OP_COORDINATOR, 2, "Error").fails_job, "the coordinator is a program of ours");
    cr_assert_not(ending_of(OP_COORDINATOR, 7, "Error").fails_job, "which knows no rules");
}

Test(operator_program, who_runs_out_of_memory_is_told_as_the_coordinator_tells_it_and_never_spared)
{
    struct op_ending ending = ending_of(OP_WORKER, 137, "OOMKilled");
    cr_assert_not(ending.spares_budget);
    cr_assert_str_eq(ending.message, "worker 3: killed by signal 9, out of memory");
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

Test(operator_program, all_processes_that_end_with_0_complete_the_job)
{
    struct cast *c = running("{" ALONE "}");
    say_last_word(c, 0, "{\"exitCode\":0,\"reason\":\"\",\"interrupted\":false,\"goodput\":0.9}");
    cr_assert(condition_is(&c->job.status, OP_COMPLETE));
    cr_assert_str_eq(c->job.status.condition[OP_COMPLETE].reason, "ProgramEnded");
    cr_assert(stands_in_status(c, "\"result\":{\"exitCode\":0}"));
    cr_assert_not(stands_in_status(c, "progress"));
    cast_settle(c);
    cr_assert_str_eq(c->job.status.state, "Complete");
    cr_assert(stands_in_status(c, "\"result\":{\"exitCode\":0}"), "read and written again");
    cast_free(c);
}

Test(operator_program, a_failed_job_says_what_the_program_ended_with)
{
    struct cast *c = running("{" ALONE "}");
    say_last_word(c, 5,
                  "{\"exitCode\":5,\"programExitCode\":3,\"reason\":\"6 failures within 3600 s, "
                  "failurePolicy.maxRestarts allows 5; the newest: worker 1: exit code 3\",\"step\":0}");
    const struct op_condition *failed = &c->job.status.condition[OP_FAILED];
    cr_assert(condition_is(&c->job.status, OP_FAILED));
    cr_assert_str_eq(failed->reason, "ProgramFailed", "and not DataError, which 3 is of ours");
    cr_assert(strstr(failed->message, "worker 1: exit code 3"), "%s", failed->message);
    cr_assert(stands_in_status(c, "\"result\":{\"exitCode\":3}"));
    cast_free(c);
}

Test(operator_program, a_coordinator_that_tells_no_code_of_the_program_is_believed_all_the_same)
{
    struct cast *c = running("{" ALONE "}");
    say_last_word(c, 5, "{\"exitCode\":5,\"reason\":\"too many failures\"}");
    cr_assert_str_eq(c->job.status.condition[OP_FAILED].reason, "ProgramFailed");
    cr_assert_not(stands_in_status(c, "result"));
    cast_free(c);
}

Test(operator_program, a_coordinator_that_was_told_to_go_has_ended_no_job)
{
    static const char *const words[] = {"{\"left\":true}", "{\"exitCode\":4,\"reason\":\"the port\"}",
                                        "{\"exitCode\":130,\"interrupted\":true,\"programExitCode\":0}",
                                        "{\"exitCode\":0,\"interrupted\":true}", ""};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct cast *c = running("{" ALONE "}");
        say_last_word(c, i ? 4 : 0, words[i]);
        cr_assert_not(condition_is(&c->job.status, OP_FINISHED), "%s", words[i]);
        cast_free(c);
    }
}

static void note_is(const char *page, const char *wanted)
{
    struct coordinator_view view;
    struct error err = {0};
    cr_assert_eq(coordinator_read(page, strlen(page), &view, &err), 0, "%s", err.text);
    cr_assert_str_eq(view.event[0].note, wanted);
}

#define EVENTS "{\"progress\":null,\"ring\":{\"begun\":3},\"events\":[{\"sequence\":1,\"event\":"

Test(operator_program, its_events_have_no_steps)
{
    struct coordinator_view view;
    static const char page[] = EVENTS "\"ringFormed\",\"generation\":2,\"world\":3,\"step\":0}]}";
    note_is(page, "generation 2 with 3 workers");
    note_is(EVENTS "\"workerLost\",\"worker\":1,\"step\":0,\"cause\":\"WorkerLost\"}]}",
            "worker 1: WorkerLost");
    note_is(EVENTS "\"recovered\",\"cause\":\"WorkerLost\",\"totalMs\":810,\"stepsRedone\":0}]}",
            "WorkerLost: running again after 810 ms");
    note_is(EVENTS "\"programFailed\",\"worker\":1,\"reason\":\"exit code 3\"}]}", "worker 1: exit code 3");
    cr_assert_eq(coordinator_read(page, strlen(page), &view, NULL), 0);
    cr_assert_eq(view.begun, 3);
}

/* What saves cost, and how often all were lost, no worker could tell it. */
Test(operator_program, a_coordinator_is_told_what_the_one_before_it_knew_of_saves_and_losses)
{
    struct cast *c = running("{}");
    struct js *pod = made(&c->job, true);
    cr_assert_null(variable(pod, "RINGMASTER_POD_SAVES"), "the job says itself when to save");
    js_free(pod);
    c->coordinator.interval = (struct op_interval){.known = true,
                                                   .every_seconds = 300,
                                                   .reason = "every 5 min",
                                                   .losses = 2,
                                                   .observed_seconds = 7200,
                                                   .stall_ms = 840,
                                                   .safe_ms = 3100};
    c->coordinator.progress.known = true;
    c->coordinator.progress.step = 812;
    cast_settle(c);
    cr_assert_eq(c->job.status.interval.every_seconds, 300);
    pod = made(&c->job, true);
    cr_assert_str_eq(variable(pod, "RINGMASTER_POD_SAVES"), "2,812,7200000000000,840000000,3100000000");
    js_free(pod);
    pod = made(&c->job, false);
    cr_assert_null(variable(pod, "RINGMASTER_POD_SAVES"), "it is the coordinator's");
    js_free(pod);
    c->coordinator.interval = (struct op_interval){0};
    cast_settle(c);
    cr_assert_not(c->job.status.interval.known, "it says itself when to save by now");
    cast_free(c);
}
