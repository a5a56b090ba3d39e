/* Workers whose machine computes other bits than the job's: refused there, wanted elsewhere. */
#include <criterion/criterion.h>
#include <string.h>

#include "cast.h"
#include "common/wire/json.h"
#include "operator/core/account.h"
#include "operator/core/pod.h"

static const char sentence[] =
    "worker 1 computes other bits: its fingerprint is 'numerics 1 avx512f', the job's is "
    "'numerics 1 avx2'; set trainer.allowMixedHardware to train without exactness";

/* As its coordinator refused it. */
static void refuse(struct pod_view *pod)
{
    pod->phase = OP_POD_FAILED;
    pod->terminated = true;
    pod->exit_code = 3;
    pod->elsewhere = true;
    text_copy(pod->unfit, sizeof pod->unfit, sentence);
}

static bool creates_pod_that_avoids(struct cast *c, const char *node)
{
    char wanted[128];
    bool does = false;
    struct op_plan *plan = cast_plan(c);
    snprintf(wanted, sizeof wanted, "\"operator\":\"NotIn\",\"values\":[\"%s\"]", node);
    for (int i = 0; i < plan->actions_count; i++)
        if (plan->action[i].kind == OP_CREATE && plan->action[i].resource == OP_PODS)
            does = strstr(str_text(&plan->action[i].body), wanted) != NULL;
    plan_free(plan);
    return does;
}

Test(operator_misfit, one_that_is_refused_costs_the_job_nothing_and_is_made_anew_elsewhere)
{
    struct cast *c = cast_training("{\"failurePolicy\":{\"maxRestarts\":0}}");
    refuse(cast_worker(c, 1));
    cr_assert(
        cast_says(c, "warn WorkerRefused  worker 1 on node-1 is refused: worker 1 computes other bits"));
    cast_settle(c);
    const struct job_status *status = &c->job.status;
    cr_assert_not(condition_is(status, OP_STOPPING));
    cr_assert_eq(status->restarts.misfit, 1);
    cr_assert_eq(status->restarts.failure, 0);
    cast_settle(c);
    cr_assert(strstr(status->message, "worker 1 on node-1 is refused: worker 1 computes"), "%s",
              status->message);
    c->now_ms += 1000;
    cast_settle(c);
    cr_assert_eq(status->workers.slot[1].attempt, 2);
    cr_assert(creates_pod_that_avoids(c, "node-1"));
    cast_free(c);
}

/* What the pods of a new plan run. */
static bool creates_pod_with(struct cast *c, const char *image)
{
    char wanted[128];
    bool does = false;
    struct op_plan *plan = cast_plan(c);
    snprintf(wanted, sizeof wanted, "\"image\":\"%s\"", image);
    for (int i = 0; i < plan->actions_count; i++)
        if (plan->action[i].kind == OP_CREATE && plan->action[i].resource == OP_PODS)
            does = strstr(str_text(&plan->action[i].body), wanted) != NULL;
    plan_free(plan);
    return does;
}

static const char job_image[] = "ghcr.io/me/worker@sha256:aaaaaaaaaaaaaaaa";

static void train_with_image(struct cast *c)
{
    cast_train(c);
    for (int i = 0; i < c->pods_count; i++)
        text_copy(c->pod[i].image, OP_IMAGE_MAX, job_image);
    cast_settle(c);
    cast_settle(c);
}

Test(operator_misfit, a_job_goes_on_with_the_image_that_it_began_with)
{
    struct cast *c = cast_open("{}");
    train_with_image(c);
    cr_assert_str_eq(c->job.status.images.trainer, job_image);
    cr_assert_str_eq(c->job.status.images.coordinator, job_image);
    for (int index = -1; index < 1; index++) {
        struct pod_view *pod = index < 0 ? &c->pod[0] : cast_worker(c, index);
        cr_assert_eq(pod->index, index);
        pod->phase = OP_POD_FAILED;
        text_copy(pod->reason, sizeof pod->reason, "Evicted");
        cast_settle(c);
        cast_settle(c);
        cr_assert(creates_pod_with(c, job_image), "of index %d", index);
        cast_pod(c, index < 0 ? OP_COORDINATOR : OP_WORKER, index, 2);
    }
    cast_free(c);
}

Test(operator_misfit, a_job_that_was_suspended_may_go_on_with_another_image)
{
    struct cast *c = cast_open("{}");
    train_with_image(c);
    c->job.suspend = true;
    cast_settle(c);
    cr_assert_str_eq(c->job.status.images.trainer, "");
    c->job.suspend = false; /* before its pods were gone: those that still end say nothing of what comes */
    cast_settle(c);
    cast_settle(c);
    cr_assert_str_eq(c->job.status.images.trainer, "");
    cr_assert_not(creates_pod_with(c, job_image));
    cast_free(c);
}

Test(operator_misfit, an_image_that_computes_other_bits_is_told_and_no_machine_is_blamed)
{
    struct cast *c = cast_open("{}");
    train_with_image(c);
    text_copy(cast_worker(c, 1)->image, OP_IMAGE_MAX, "ghcr.io/me/worker@sha256:bbbbbbbbbbbbbbbb");
    refuse(cast_worker(c, 1));
    cr_assert(cast_says(
        c,
        "warn WorkerRefused  worker 1 on node-1 is refused: worker image worker@sha256:bbbbbbbbbbbb computes "
        "other bits than worker@sha256:aaaaaaaaaaaa, the job's"));
    cast_settle(c);
    cr_assert_eq(c->job.status.restarts.misfit, 1);
    cr_assert_eq(c->job.status.workers.unfit.types.count + c->job.status.workers.unfit.nodes.count, 0);
    cast_free(c);
}

Test(operator_misfit, kinds_on_which_nobody_trains_are_avoided_as_kinds)
{
    struct cast *c = cast_training("{}");
    for (int i = 0; i < 3; i++)
        text_copy(c->node[i].machine.type, sizeof c->node[i].machine.type,
                  i == 1 ? "old.large" : "new.large");
    c->coordinator.ring_size = 2; /* worker 1 has never been in it */
    c->coordinator.member[1] = c->coordinator.member[2];
    refuse(cast_worker(c, 1));
    cast_settle(c);
    const struct op_unfit *unfit = &c->job.status.workers.unfit;
    cr_assert_eq(unfit->types.count, 1);
    cr_assert_str_eq(unfit->types.name[0], "old.large");
    cr_assert_eq(unfit->nodes.count, 0);
    c->now_ms += 1000;
    cast_settle(c);
    cr_assert(creates_pod_that_avoids(c, "old.large"));
    cast_free(c);
}

Test(operator_misfit, one_machine_that_differs_from_others_of_its_kind_is_avoided_alone)
{
    struct cast *c = cast_training("{}");
    for (int i = 0; i < 3; i++)
        text_copy(c->node[i].machine.type, sizeof c->node[i].machine.type, "new.large");
    refuse(cast_worker(c, 1));
    cast_settle(c);
    cr_assert_eq(c->job.status.workers.unfit.types.count, 0);
    cr_assert_str_eq(c->job.status.workers.unfit.nodes.name[0], "node-1");
    cast_free(c);
}

Test(operator_misfit, no_rule_about_that_exit_code_makes_one_machine_the_end_of_the_job)
{
    struct cast *c =
        cast_training("{\"failurePolicy\":{\"rules\":[{\"onExitCodes\":[3],\"action\":\"FailJob\"}]}}");
    refuse(cast_worker(c, 1));
    cast_settle(c);
    cr_assert_not(condition_is(&c->job.status, OP_STOPPING));
    cr_assert_eq(c->job.status.restarts.failure, 0);
    cast_free(c);
}

Test(operator_misfit, however_many_are_refused_the_pause_stays_below_a_minute)
{
    static const int64_t pauses[] = {1, 2, 4, 8, 16, 32, 60, 60};
    struct cast *c = cast_open("{}");
    struct job_status status = {0};
    struct op_ending ending;
    struct pod_view pod = {0};
    refuse(&pod);
    account_pod(&c->job, &pod, NULL, 1, &ending);
    for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
        cr_assert_not(account_add(&status, &c->job, &ending, CAST_NOW));
        cr_assert_eq(account_backoff_until(&status), CAST_NOW + pauses[i] * 1000, "after %zu", i + 1);
    }
    cast_free(c);
}

Test(operator_misfit, the_newest_machines_that_did_not_fit_are_remembered)
{
    struct op_names nodes = {0};
    account_unfit(&nodes, ""); /* one that had no node yet */
    cr_assert_eq(nodes.count, 0);
    for (int i = 0; i < OP_AVOIDED_MAX + 2; i++) {
        char name[16];
        snprintf(name, sizeof name, "node-%d", i);
        account_unfit(&nodes, name);
    }
    account_unfit(&nodes, "node-5");
    cr_assert_eq(nodes.count, OP_AVOIDED_MAX);
    cr_assert_str_eq(nodes.name[0], "node-2");
    cr_assert_str_eq(nodes.name[nodes.count - 2], "node-9");
    cr_assert_str_eq(nodes.name[nodes.count - 1], "node-5", "the newest last, and once");
    cr_assert_str_eq(nodes.name[3], "node-6");
}

Test(operator_misfit, they_stand_in_the_status_for_the_next_operator)
{
    struct cast *c = cast_open("{}");
    struct str text = str_init(1 << 20);
    struct job_status again, *s = &c->job.status;
    s->restarts.misfit = 2;
    s->restarts.misfit_ms = CAST_NOW;
    account_unfit(&s->workers.unfit.types, "m5.large");
    account_unfit(&s->workers.unfit.nodes, "node-1");
    account_unfit(&s->workers.unfit.nodes, "node-2");
    status_write(s, "tiny", &text);
    struct js *object = js_parse(str_text(&text), text.length, "status", NULL);
    status_read(object, &again);
    cr_assert_eq(again.restarts.misfit, 2);
    cr_assert_eq(again.restarts.misfit_ms, CAST_NOW);
    cr_assert_str_eq(again.workers.unfit.types.name[0], "m5.large");
    cr_assert_eq(again.workers.unfit.nodes.count, 2);
    cr_assert_str_eq(again.workers.unfit.nodes.name[1], "node-2");
    js_free(object);
    str_clear(&text);
    cast_free(c);
}

Test(operator_misfit, a_template_keeps_its_own_affinities_beside)
{
    static const struct op_settings settings = {.worker_image = "w", .operator_namespace = ""};
    struct cast *c = cast_open(
        "{\"workers\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\",\"image\":\"i\"}],"
        "\"affinity\":{\"nodeAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":7,"
        "\"preference\":{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"}]}}]}}}}}}");
    struct op_unfit unfit = {0};
    struct str text = str_init(OP_POD_TEXT_MAX);
    account_unfit(&unfit.types, "m5.large");
    account_unfit(&unfit.nodes, "node-1");
    account_unfit(&unfit.nodes, "node-2");
    cr_assert_eq(pod_worker(&c->job, &settings, &(struct op_elsewhere){.unfit = &unfit}, 0, 1, &text, NULL),
                 0);
    cr_assert(strstr(str_text(&text), "{\"key\":\"node.kubernetes.io/instance-type\",\"operator\":\"NotIn\","
                                      "\"values\":[\"m5.large\"]}"),
              "%s", str_text(&text));
    cr_assert(strstr(str_text(&text), "\"weight\":7"), "%s", str_text(&text));
    cr_assert(strstr(str_text(&text),
                     "{\"key\":\"kubernetes.io/hostname\",\"operator\":\"NotIn\",\"values\":["
                     "\"node-1\",\"node-2\"]}"),
              "%s", str_text(&text));
    str_clear(&text);
    cast_free(c);
}

Test(operator_misfit, a_pods_last_word_says_that_it_is_the_machine_and_in_the_end_what_to_do)
{
    struct str text = str_init(8192);
    struct pod_view pod;
    str_addf(&text,
             "{\"metadata\":{\"name\":\"p\",\"uid\":\"u\",\"labels\":{\"ringmaster.dev/job\":\"tiny\","
             "\"ringmaster.dev/role\":\"worker\",\"ringmaster.dev/worker\":\"1\",\"ringmaster.dev/"
             "attempt\":\"1\"},\"ownerReferences\":[{\"apiVersion\":\"ringmaster.dev/v1alpha1\",\"kind\":"
             "\"TrainingJob\",\"name\":\"tiny\",\"uid\":\"j\",\"controller\":true}]},\"status\":{\"phase\":"
             "\"Failed\","
             "\"containerStatuses\":[{\"name\":\"trainer\",\"state\":{\"terminated\":{\"exitCode\":3,"
             "\"reason\":\"Error\",\"message\":\"{\\\"exitCode\\\":3,\\\"reason\\\":\\\"%s\\\","
             "\\\"elsewhere\\\":true}\"}}}]}}",
             sentence);
    struct js *object = js_parse(str_text(&text), text.length, "pod", NULL);
    cr_assert_eq(pod_project(object, &pod, NULL), 0);
    cr_assert(pod.elsewhere);
    cr_assert_eq(strncmp(pod.unfit, "worker 1 computes other bits", 28), 0, "%s", pod.unfit);
    cr_assert(strstr(pod.unfit, "allowMixedHardware to train without exactness"), "%s", pod.unfit);
    js_free(object);
    str_clear(&text);
}

Test(operator_misfit, where_kinds_may_mix_the_job_is_degraded_and_says_what_that_means)
{
    struct cast *c = cast_training("{}");
    cast_settle(c);
    cr_assert_not(condition_is(&c->job.status, OP_DEGRADED));
    c->coordinator.mixed = true;
    cast_settle(c);
    const struct op_condition *degraded = &c->job.status.condition[OP_DEGRADED];
    cr_assert(condition_is(&c->job.status, OP_DEGRADED));
    cr_assert_str_eq(degraded->reason, "MixedHardware");
    cr_assert(strstr(degraded->message, "allowMixedHardware"), "%s", degraded->message);
    cast_free(c);
}

/* ---- a machine on which each container ends at once ---- */

/* The newest attempt of worker 2 came to that node and crashed; the next one is made when its pause is over.
 */
static void crash_on(struct cast *c, const char *node, const char *how)
{
    struct pod_view *pod = cast_worker(c, 2);
    text_copy(pod->node, sizeof pod->node, node);
    pod->phase = OP_POD_FAILED;
    pod->terminated = true;
    pod->exit_code = 139;
    text_copy(pod->terminated_reason, sizeof pod->terminated_reason, how);
    pod->created_ms = c->now_ms - 3000;
    pod->ended_ms = c->now_ms;
    cast_settle(c);
    for (int second = 0; second < 600 && !slot_is_live(&c->job.status.workers.slot[2]); second++) {
        c->now_ms += 1000;
        cast_settle(c);
    }
    cast_pod(c, OP_WORKER, 2, c->job.status.workers.slot[2].attempt);
}

Test(operator_misfit, a_machine_on_which_workers_crash_again_and_again_ends_no_job_that_trains_on_others)
{
    struct cast *c = cast_training("{\"failurePolicy\":{\"maxRestarts\":1}}");
    crash_on(c, "node-2", "Error");
    cr_assert_eq(c->job.status.restarts.failure, 1);
    cr_assert_eq(c->job.status.workers.unfit.nodes.count, 0, "once says nothing");
    for (int i = 0; i < 6; i++)
        crash_on(c, "node-2", "Error");
    const struct job_status *status = &c->job.status;
    cr_assert_not(condition_is(status, OP_STOPPING), "%s", status->message);
    cr_assert_eq(status->restarts.failure, 1);
    cr_assert_eq(status->restarts.misfit, 6);
    cr_assert_eq(status->workers.unfit.nodes.count, 1);
    cr_assert_str_eq(status->workers.unfit.nodes.name[0], "node-2");
    cast_free(c);
}

Test(operator_misfit, what_fails_on_one_machine_and_then_on_another_is_the_programs)
{
    struct cast *c = cast_training("{\"failurePolicy\":{\"maxRestarts\":1}}");
    crash_on(c, "node-2", "Error");
    crash_on(c, "node-1", "Error");
    cr_assert(condition_is(&c->job.status, OP_STOPPING), "%s", c->job.status.message);
    cast_free(c);
}

Test(operator_misfit, where_nobody_trains_elsewhere_or_memory_was_short_the_machine_is_not_blamed)
{
    for (int memory = 0; memory < 2; memory++) {
        struct cast *c = cast_training("{\"failurePolicy\":{\"maxRestarts\":1}}");
        if (!memory)
            c->coordinator.state = STATUS_GATHERING;
        for (int i = 0; i < 2; i++)
            crash_on(c, "node-2", memory ? "OOMKilled" : "Error");
        cr_assert(condition_is(&c->job.status, OP_STOPPING), "memory %d: %s", memory, c->job.status.message);
        cr_assert_eq(c->job.status.workers.unfit.nodes.count, 0);
        cast_free(c);
    }
}
