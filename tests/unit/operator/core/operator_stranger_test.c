/* A program of the user's in an image of theirs: what brings Ringmaster's own programs there, what the image
 * is left to say, and that all of it stays of one build. */
#include <criterion/criterion.h>
#include <string.h>

#include "cast.h"
#include "common/wire/json.h"
#include "operator/core/account.h"
#include "operator/core/pod.h"
#include "operator/core/read.h"

#define ALONE                                                                                                \
    "\"trainer\":null,\"checkpoint\":null,\"launch\":{\"command\":[\"python3\",\"a.py\"],\"mode\":"          \
    "\"Restart\"}"
#define TEMPLATE(spec, container)                                                                            \
    ",\"workers\":{\"template\":{\"spec\":{" spec                                                            \
    "\"containers\":[{\"name\":\"trainer\",\"image\":\"theirs:1\"" container "}]}}}"
#define NAMED_COORDINATOR                                                                                    \
    ",\"coordinator\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"coordinator\",\"image\":"         \
    "\"mirror/ours:1\",\"imagePullPolicy\":\"Never\"}]}}}"

static const struct op_settings usual = {.worker_image = "ours:1", .operator_namespace = "rm"};

static struct js *made_with(const struct op_settings *settings, const struct job_view *job, bool coordinator)
{
    struct str text = str_init(1 << 20);
    struct error err = {0};
    int status = coordinator ? pod_coordinator(job, settings, &(struct op_spec){0}, 2, &text, &err)
                             : pod_worker(job, settings, NULL, 3, 2, &text, &err);
    cr_assert_eq(status, 0, "%s", err.text);
    struct js *pod = js_parse(str_text(&text), text.length, "pod", &err);
    str_clear(&text);
    return pod;
}

static struct js *made(const char *changes, bool coordinator)
{
    struct cast *c = cast_open(changes);
    struct js *pod = made_with(&usual, &c->job, coordinator);
    cast_free(c);
    return pod;
}

static void refused(const struct op_settings *settings, const char *changes, const char *wanted)
{
    struct cast *c = cast_open(changes);
    struct str text = str_init(1 << 20);
    struct error err = {0};
    cr_assert_lt(pod_worker(&c->job, settings, NULL, 3, 2, &text, &err), 0);
    cr_assert_str_eq(err.text, wanted);
    cr_assert_eq(err.code, ERR_USAGE);
    str_clear(&text);
    cast_free(c);
}

static const struct js *find(const struct js *list, const char *name)
{
    for (size_t i = 0; i < js_size(list); i++)
        if (!strcmp(js_as_string(js_get(js_at(list, i), "name")), name))
            return js_at(list, i);
    return NULL;
}

static const struct js *container(const struct js *pod, const char *list, const char *name)
{
    const struct js *found = find(js_get(js_get(pod, "spec"), list), name);
    cr_assert(found, "%s", name);
    return found;
}

static const char *variable(const struct js *pod, const char *name)
{
    return js_as_string(js_get(find(js_get(container(pod, "containers", "trainer"), "env"), name), "value"));
}

/* As compact JSON, in the order of its keys. */
static void is(const struct js *value, const char *wanted)
{
    struct str text = str_init(1 << 16);
    if (value)
        js_print(value, &text);
    cr_assert_str_eq(str_text(&text), wanted);
    str_clear(&text);
}

Test(operator_stranger, a_programs_worker_of_a_silent_template)
{
    struct js *pod = made("{" ALONE "}", false);
    struct str pretty = str_init(1 << 20);
    js_print_pretty(pod, &pretty);
    str_adds(&pretty, "\n");
    golden("worker-program.json", str_text(&pretty));
    str_clear(&pretty);
    js_free(pod);
}

Test(operator_stranger, the_coordinator_runs_the_operators_image_and_the_worker_its_own)
{
    struct js *worker = made("{" ALONE TEMPLATE("", "") "}", false),
              *coordinator = made("{" ALONE TEMPLATE("", "") "}", true),
              *trainer = made("{\"spot\":{}" TEMPLATE("", "") "}", true);
    is(js_get(container(worker, "containers", "trainer"), "image"), "\"theirs:1\"");
    is(js_get(container(worker, "initContainers", "ringmaster-install"), "image"), "\"ours:1\"");
    is(js_get(container(coordinator, "containers", "coordinator"), "image"), "\"ours:1\"");
    cr_assert_null(read_at(coordinator, "spec.initContainers"));
    is(js_get(container(trainer, "containers", "coordinator"), "image"), "\"theirs:1\"");
    cr_assert_null(read_at(trainer, "spec.initContainers"));
    js_free(worker);
    js_free(coordinator);
    js_free(trainer);
}

Test(operator_stranger, who_names_the_coordinators_image_has_the_bundle_out_of_it)
{
    struct js *worker = made("{" ALONE NAMED_COORDINATOR "}", false),
              *coordinator = made("{" ALONE NAMED_COORDINATOR "}", true);
    const struct js *installer = container(worker, "initContainers", "ringmaster-install");
    is(js_get(installer, "image"), "\"mirror/ours:1\"");
    is(js_get(installer, "imagePullPolicy"), "\"Never\"");
    is(js_get(container(coordinator, "containers", "coordinator"), "image"), "\"mirror/ours:1\"");
    js_free(worker);
    js_free(coordinator);
}

Test(operator_stranger, without_an_image_of_ringmasters_there_is_nothing_to_run_it_with)
{
    static const struct op_settings none = {.worker_image = "", .operator_namespace = "rm"};
    refused(
        &none, "{" ALONE "}",
        "spec.workers.template: the operator was given no worker image, out of which Ringmaster's programs "
        "come into the containers of spec.launch; name one in spec.coordinator.template");
    struct cast *c = cast_open("{" ALONE NAMED_COORDINATOR "}");
    js_free(made_with(&none, &c->job, false));
    cast_free(c);
}

Test(operator_stranger, what_is_ringmasters_own_is_not_for_the_template)
{
    refused(&usual, "{" ALONE TEMPLATE("\"initContainers\":[{\"name\":\"ringmaster-install\"}],", "") "}",
            "spec.workers.template: init container ringmaster-install has a name of the operator's; choose "
            "another");
    refused(&usual,
            "{" ALONE TEMPLATE(
                "", ",\"volumeMounts\":[{\"name\":\"a\",\"mountPath\":\"/opt/ringmaster/lib/\"}]") "}",
            "spec.workers.template: container trainer mounts a volume at /opt/ringmaster/lib/, where "
            "Ringmaster's own programs lie; mount it elsewhere");
    js_free(made("{" ALONE TEMPLATE("", ",\"volumeMounts\":[{\"name\":\"a\",\"mountPath\":\"/opt\"}]") "}",
                 false));
}

Test(operator_stranger, the_templates_init_containers_come_after_ours)
{
    struct js *pod = made("{" ALONE TEMPLATE("\"initContainers\":[{\"name\":\"fetch\"}],", "") "}", false);
    const struct js *list = read_at(pod, "spec.initContainers");
    cr_assert_eq(js_size(list), 2);
    is(js_get(js_at(list, 0), "name"), "\"ringmaster-install\"");
    is(js_get(js_at(list, 1), "name"), "\"fetch\"");
    js_free(pod);
}

/* A pod is Guaranteed where all of its containers, those for a moment included, request their limits. */
Test(operator_stranger, a_pod_that_is_guaranteed_stays_so)
{
    struct js *pod = made("{" ALONE "}", false);
    is(js_get(container(pod, "initContainers", "ringmaster-install"), "resources"),
       "{\"requests\":{\"cpu\":\"100m\",\"memory\":\"128Mi\"},\"limits\":{\"cpu\":\"100m\",\"memory\":"
       "\"128Mi\"}}");
    js_free(pod);
}

Test(operator_stranger, its_root_is_written_to_unless_the_template_says_otherwise)
{
    static const char path[] = "securityContext.readOnlyRootFilesystem";
    struct js *silent = made("{" ALONE "}", false), *coordinator = made("{" ALONE "}", true),
              *strict =
                  made("{" ALONE TEMPLATE("", ",\"securityContext\":{\"readOnlyRootFilesystem\":true}") "}",
                       false);
    is(read_at(container(silent, "containers", "trainer"), path), "");
    is(read_at(container(strict, "containers", "trainer"), path), "true");
    is(read_at(container(coordinator, "containers", "coordinator"), path), "true");
    js_free(silent);
    js_free(coordinator);
    js_free(strict);
}

static void variables_are(const char *changes, const char *home, const char *user, const char *cache,
                          bool has_volume)
{
    struct js *pod = made(changes, false);
    const char *found = variable(pod, "XDG_CACHE_HOME");
    cr_assert_str_eq(variable(pod, "HOME"), home);
    cr_assert_str_eq(variable(pod, "USER"), user);
    cr_assert_str_eq(found ? found : "", cache);
    cr_assert_eq(find(read_at(pod, "spec.volumes"), "ringmaster-home") != NULL, has_volume);
    js_free(pod);
}

#define ENV(name, value) TEMPLATE("", ",\"env\":[{\"name\":\"" name "\",\"value\":\"" value "\"}]")

Test(operator_stranger, what_the_container_names_itself_is_its_own)
{
    variables_are("{" ALONE "}", "/home/ringmaster", "ringmaster", "/home/ringmaster/.cache", true);
    variables_are("{" ALONE ENV("USER", "me") "}", "/home/ringmaster", "me", "/home/ringmaster/.cache", true);
    variables_are("{" ALONE ENV("XDG_CACHE_HOME", "/c") "}", "/home/ringmaster", "ringmaster", "/c", true);
    variables_are("{" ALONE ENV("HOME", "/data") "}", "/data", "ringmaster", "", false);
    variables_are(
        "{" ALONE TEMPLATE("\"volumes\":[{\"name\":\"big\"}],",
                           ",\"volumeMounts\":[{\"name\":\"big\",\"mountPath\":\"/home/ringmaster\"}]") "}",
        "/home/ringmaster", "ringmaster", "/home/ringmaster/.cache", false);
}

#define OF_ROOT "\"securityContext\":{\"runAsUser\":0}"

/* Whether the namespace takes root is its own affair; a pod that says both would start nowhere. */
Test(operator_stranger, who_names_root_has_it_and_ours_is_somebody_else)
{
    struct js *pod = made("{" ALONE TEMPLATE(OF_ROOT ",", "") "}", false),
              *one = made("{" ALONE TEMPLATE("", "," OF_ROOT) "}", false);
    is(js_get(js_get(pod, "spec"), "securityContext"),
       "{\"runAsUser\":0,\"fsGroup\":65532,\"seccompProfile\":{\"type\":\"RuntimeDefault\"}}");
    is(read_at(container(pod, "initContainers", "ringmaster-install"), "securityContext.runAsUser"), "65532");
    is(read_at(one, "spec.securityContext.runAsNonRoot"), "true");
    is(read_at(container(one, "containers", "trainer"), "securityContext.runAsNonRoot"), "false");
    js_free(pod);
    js_free(one);
}

Test(operator_stranger, where_the_namespace_says_who_a_pod_is_it_says_so_of_ours_too)
{
    static const struct op_settings leave = {
        .worker_image = "ours:1", .operator_namespace = "rm", .leave_uid = true};
    struct cast *c = cast_open("{" ALONE "}");
    struct js *pod = made_with(&leave, &c->job, false);
    const struct js *context =
        js_get(container(pod, "initContainers", "ringmaster-install"), "securityContext");
    cr_assert_null(js_get(context, "runAsUser"));
    cr_assert_null(js_get(context, "runAsGroup"));
    is(js_get(context, "runAsNonRoot"), "true");
    js_free(pod);
    cast_free(c);
}

/* --- what a job goes on with --- */

static const char theirs[] = "reg/theirs@sha256:cccccccccccccccc",
                  ours[] = "reg/ours@sha256:aaaaaaaaaaaaaaaa", next[] = "reg/ours@sha256:bbbbbbbbbbbbbbbb";

static struct cast *running(void)
{
    struct cast *c = cast_open("{" ALONE "}");
    cast_train(c);
    for (int i = 0; i < c->pods_count; i++) {
        bool worker = c->pod[i].role == OP_WORKER;
        text_copy(c->pod[i].image, OP_IMAGE_MAX, worker ? theirs : ours);
        text_copy(c->pod[i].bundle, OP_IMAGE_MAX, worker ? ours : "");
    }
    cast_settle(c);
    cast_settle(c);
    return c;
}

static void images_are(const struct cast *c, const char *installer, const char *worker,
                       const char *coordinator)
{
    static const struct op_settings upgraded = {.worker_image = "reg/ours:2", .operator_namespace = "rm"};
    struct js *one = made_with(&upgraded, &c->job, false), *other = made_with(&upgraded, &c->job, true);
    cr_assert_str_eq(js_as_string(js_get(container(one, "initContainers", "ringmaster-install"), "image")),
                     installer);
    cr_assert_str_eq(js_as_string(js_get(container(one, "containers", "trainer"), "image")), worker);
    cr_assert_str_eq(js_as_string(js_get(container(other, "containers", "coordinator"), "image")),
                     coordinator);
    js_free(one);
    js_free(other);
}

Test(operator_stranger, an_upgrade_of_the_operator_changes_nothing_for_a_job_that_runs)
{
    struct cast *c = running();
    cr_assert_str_eq(c->job.status.images.bundle, ours);
    images_are(c, ours, theirs, ours);
    struct str written = str_init(1 << 20);
    status_write(&c->job.status, "tiny", &written);
    cr_assert(strstr(str_text(&written), "\"bundle\":\"reg/ours@sha256:aaaaaaaaaaaaaaaa\""));
    str_clear(&written);
    c->job.suspend = true;
    cast_settle(c);
    cr_assert_str_eq(c->job.status.images.bundle, "");
    images_are(c, "reg/ours:2", "x", "reg/ours:2");
    cast_free(c);
}

Test(operator_stranger, coordinator_and_bundle_are_of_one_build_whichever_ran_first)
{
    struct cast *c = cast_open("{" ALONE "}");
    text_copy(c->job.status.images.coordinator, OP_IMAGE_MAX, ours);
    images_are(c, ours, "x", ours);
    text_copy(c->job.status.images.bundle, OP_IMAGE_MAX, next);
    images_are(c, next, "x", ours);
    text_copy(c->job.status.images.coordinator, OP_IMAGE_MAX, "");
    images_are(c, next, "x", next);
    cast_free(c);
}

static void refuse(struct cast *c, int index)
{
    struct pod_view *pod = cast_worker(c, index);
    pod->phase = OP_POD_FAILED;
    pod->terminated = true;
    pod->exit_code = 3;
    pod->elsewhere = true;
    text_copy(pod->unfit, sizeof pod->unfit, "worker 1 runs other software than the job");
}

Test(operator_stranger, a_bundle_of_another_build_is_told_and_no_machine_is_blamed)
{
    struct cast *c = running();
    text_copy(cast_worker(c, 1)->bundle, OP_IMAGE_MAX, next);
    refuse(c, 1);
    cr_assert(cast_says(c, "warn WorkerRefused  worker 1 on node-1 is refused: its bundle is of "
                           "ours@sha256:bbbbbbbbbbbb, the job's of ours@sha256:aaaaaaaaaaaa"));
    cast_settle(c);
    cr_assert_eq(c->job.status.restarts.misfit, 1);
    cr_assert_eq(c->job.status.workers.unfit.types.count + c->job.status.workers.unfit.nodes.count, 0);
    cast_free(c);
}

/* --- what an init container says --- */

#define STATUS                                                                                               \
    ",\"status\":{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"trainer\",\"state\":{\"waiting\":" \
    "{"                                                                                                      \
    "\"reason\":\"PodInitializing\"}}}],\"initContainerStatuses\":[{\"name\":\"%s\",\"imageID\":"            \
    "\"reg/ours@sha256:aaaaaaaaaaaaaaaa\",\"state\":{\"terminated\":%s}}]}}"
#define SPEC                                                                                                 \
    "},\"spec\":{\"initContainers\":[{\"name\":\"ringmaster-install\",\"image\":\"reg/ours:1\"}],"           \
    "\"containers\":[{\"name\":\"trainer\",\"image\":\"t\"}]}"

static void end_of_init(const char *name, const char *ended, struct pod_view *pod)
{
    char text[2048];
    struct error err = {0};
    snprintf(text, sizeof text, CAST_POD_BEGINS SPEC STATUS, name, ended);
    struct js *object = js_parse(text, strlen(text), "pod", &err);
    cr_assert(object, "%s", err.text);
    cr_assert_eq(pod_project(object, pod, &err), 0, "%s", err.text);
    js_free(object);
}

static void ending_is(const struct pod_view *pod, enum op_class counted, const char *message)
{
    struct op_ending ending;
    struct cast *c = cast_open("{" ALONE "}");
    account_pod(&c->job, pod, NULL, 3, &ending);
    cr_assert_str_eq(ending.message, message);
    cr_assert_eq(ending.counted, counted);
    cr_assert_not(ending.fails_job);
    cast_free(c);
}

Test(operator_stranger, an_init_container_that_fails_is_named_with_its_cause)
{
    struct pod_view pod;
    end_of_init("ringmaster-install",
                "{\"exitCode\":4,\"reason\":\"Error\",\"message\":\"{\\\"exitCode\\\":4,\\\"reason\\\":"
                "\\\"/ringmaster-bundle/lib/a: no room for the bundle\\\",\\\"elsewhere\\\":true}\"}",
                &pod);
    cr_assert_str_eq(pod.bundle, ours);
    ending_is(
        &pod, OP_COUNT_MISFIT,
        "worker 3: init container ringmaster-install: /ringmaster-bundle/lib/a: no room for the bundle");
    end_of_init("ringmaster-install",
                "{\"exitCode\":2,\"message\":\"{\\\"reason\\\":\\\"it is no folder\\\"}\"}", &pod);
    ending_is(&pod, OP_COUNT_FAILURE, "worker 3: init container ringmaster-install: it is no folder");
    end_of_init("fetch",
                "{\"exitCode\":137,\"reason\":\"OOMKilled\",\"message\":\"{\\\"reason\\\":\\\"x\\\"}\"}",
                &pod);
    ending_is(&pod, OP_COUNT_FAILURE, "worker 3: init container fetch ended with exit code 137 (OOMKilled)");
    cr_assert_str_eq(pod.bundle, "");
    end_of_init("ringmaster-install", "{\"exitCode\":0}", &pod);
    cr_assert_str_eq(pod.failed_init, "");
}

Test(operator_stranger, a_machine_without_room_is_avoided_and_others_of_its_kind_are_not)
{
    struct cast *c = running();
    struct pod_view *pod = cast_worker(c, 1);
    for (int i = 0; i < 3; i++)
        text_copy(c->node[i].machine.type, sizeof c->node[i].machine.type, i == 1 ? "small" : "large");
    c->coordinator.ring_size = 2; /* nobody runs on such a one */
    c->coordinator.member[1] = c->coordinator.member[2];
    pod->phase = OP_POD_FAILED;
    pod->elsewhere = true;
    text_copy(pod->failed_init, sizeof pod->failed_init, "init container ringmaster-install: no room");
    cr_assert(
        cast_says(c, "warn WorkerRefused  worker 1 on node-1: init container ringmaster-install: no room"));
    cast_settle(c);
    cr_assert_eq(c->job.status.workers.unfit.types.count, 0);
    cr_assert_str_eq(c->job.status.workers.unfit.nodes.name[0], "node-1");
    cast_free(c);
}
