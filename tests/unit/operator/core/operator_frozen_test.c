/* Jobs of whose processes snapshots are made (checkpoint.process: CRIU): what their pods are and may not be,
 * what is said where the cluster does not let them, and that no two of their programs run at once. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "cast.h"
#include "common/wire/json.h"
#include "operator/core/objects.h"
#include "operator/core/pod.h"
#include "operator/core/pod_frozen.h"
#include "operator/core/read.h"

#define LAUNCH       "\"trainer\":null,\"launch\":{\"command\":[\"sh\",\"-c\",\"train\"],\"mode\":\"Restart\"}"
#define FROZEN       LAUNCH ",\"checkpoint\":{\"process\":\"CRIU\"}"
#define ONE_OF(spec) ",\"workers\":{\"min\":1,\"max\":1,\"target\":1,\"template\":{\"spec\":{" spec "}}}"
#define CONTAINER(context)                                                                                   \
    "\"containers\":[{\"name\":\"aside\",\"securityContext\":{\"runAsUser\":5}},{\"name\":\"trainer\","      \
    "\"image\":\"i\",\"securityContext\":{" context "}}]"
#define PLAIN ONE_OF("\"containers\":[{\"name\":\"trainer\",\"image\":\"theirs:1\"}]")

static const struct op_settings settings = {.worker_image = "ours:1", .operator_namespace = "rm"};

/* --- the pod --- */

/* What is said of a job that is frozen, with these members of the spec besides. */
static void is_refused(const char *more, const char *sentence)
{
    char changes[1024];
    struct error err = {0};
    struct str text = str_init(1 << 20);
    snprintf(changes, sizeof changes, "{" FROZEN "%s}", more);
    struct cast *c = cast_open(changes);
    cr_assert_lt(job_effective_spec(&c->job, &text, &err), 0, "accepted, wanted: %s", sentence);
    cr_assert_str_eq(err.text, sentence);
    str_clear(&text);
    cast_free(c);
}

Test(operator_frozen, what_its_pods_may_not_be_is_refused_by_name)
{
    static const char pids[] = "a restored process takes the pid that it had, which others may hold there",
                      root[] = "Kubernetes gives the rights that a snapshot takes to uid 0 alone",
                      filter[] = "a process with a filter of system calls can't be frozen",
                      machine[] = "only the machine's own root may look at what a process maps",
                      bound[] = "its pod is bounded to the rights that a snapshot takes",
                      dropped[] = "a snapshot takes that capability, which it drops";
    static const struct {
        const char *more, *member, *why;
    } rows[] = {
        {ONE_OF("\"hostPID\":true"), "hostPID", pids},
        {ONE_OF("\"shareProcessNamespace\":true"), "shareProcessNamespace", pids},
        {ONE_OF("\"hostUsers\":false"), "hostUsers", machine},
        {ONE_OF("\"securityContext\":{\"runAsNonRoot\":true}"), "runAsNonRoot", root},
        {ONE_OF(CONTAINER("\"runAsUser\":1000")), "runAsUser", root},
        {ONE_OF(CONTAINER("\"privileged\":true")), "privileged", bound},
        {ONE_OF(CONTAINER("\"allowPrivilegeEscalation\":true")), "allowPrivilegeEscalation", bound},
        {ONE_OF(CONTAINER("\"seccompProfile\":{\"type\":\"RuntimeDefault\"}")),
         "seccompProfile: RuntimeDefault", filter},
        {ONE_OF(CONTAINER("\"seccompProfile\":{\"type\":\"Localhost\",\"localhostProfile\":\"p.json\"}")),
         "a seccompProfile", filter},
        {ONE_OF(CONTAINER("\"capabilities\":{\"drop\":[\"NET_RAW\",\"SYS_PTRACE\"]}")), "SYS_PTRACE",
         dropped},
        {ONE_OF(CONTAINER("\"capabilities\":{\"add\":[\"SETUID\",\"NET_ADMIN\"]}")),
         "the capability NET_ADMIN", bound},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char wanted[300];
        snprintf(wanted, sizeof wanted,
                 "spec.workers.template sets %s beside checkpoint.process: CRIU, but %s; remove it",
                 rows[i].member, rows[i].why);
        is_refused(rows[i].more, wanted);
        cr_assert_lt(strlen(wanted), RM_WHY_MAX);
    }
    is_refused(",\"workers\":{\"min\":1,\"target\":1}",
               "spec.checkpoint.process is CRIU, but workers.max is 5: connections between pods lead to "
               "machines that will be gone; set workers.max to 1, or have the program save by itself");
}

Test(operator_frozen, a_template_that_says_what_is_so_anyway_is_taken)
{
    struct str text = str_init(1 << 20);
    struct error err = {0};
    struct cast *c = cast_open("{" FROZEN ONE_OF(
        CONTAINER("\"runAsUser\":0,\"seccompProfile\":{\"type\":\"Unconfined\"},\"capabilities\":{\"drop\":["
                  "\"ALL\"],\"add\":[\"SYS_PTRACE\"]}")) "}");
    cr_assert_eq(job_effective_spec(&c->job, &text, &err), 0, "%s", err.text);
    str_clear(&text);
    cast_free(c);
}

static struct js *made(const char *changes, const struct op_settings *with)
{
    struct cast *c = cast_open(changes);
    struct str text = str_init(1 << 20);
    struct error err = {0};
    cr_assert_eq(pod_worker(&c->job, with, NULL, 0, 2, &text, &err), 0, "%s", err.text);
    struct js *pod = js_parse(str_text(&text), text.length, "pod", &err);
    str_clear(&text);
    cast_free(c);
    return pod;
}

static const struct js *entry(const struct js *list, const char *name)
{
    for (size_t i = 0; i < js_size(list); i++)
        if (!strcmp(js_as_string(js_get(js_at(list, i), "name")), name))
            return js_at(list, i);
    return NULL;
}

static const struct js *trainer(const struct js *pod)
{
    return entry(read_at(pod, "spec.containers"), "trainer");
}

static const char *variable(const struct js *pod, const char *name)
{
    return js_as_string(js_get(entry(js_get(trainer(pod), "env"), name), "value"));
}

Test(operator_frozen, its_pod_is_bounded_to_what_a_snapshot_takes)
{
    struct js *pod = made("{" FROZEN PLAIN "}", &settings);
    struct str pretty = str_init(1 << 20);
    js_print_pretty(pod, &pretty);
    str_adds(&pretty, "\n");
    golden("worker-frozen.json", str_text(&pretty));
    str_clear(&pretty);
    js_free(pod);
}

Test(operator_frozen, nobody_beside_it_gets_any_of_that)
{
    struct js *pod = made("{" FROZEN ONE_OF(CONTAINER("\"runAsGroup\":7")) "}", &settings);
    const struct js *aside = entry(read_at(pod, "spec.containers"), "aside");
    int64_t user = -1, group = -1, of_pod = -1;
    cr_assert(js_as_int(read_at(aside, "securityContext.runAsUser"), &user) && user == 5);
    cr_assert_null(read_at(aside, "securityContext.capabilities.add"));
    cr_assert(js_as_int(read_at(pod, "spec.securityContext.runAsUser"), &of_pod) && of_pod == 65532);
    cr_assert_str_eq(js_as_string(read_at(pod, "spec.securityContext.seccompProfile.type")),
                     "RuntimeDefault");
    cr_assert(js_as_int(read_at(trainer(pod), "securityContext.runAsGroup"), &group) && group == 7);
    js_free(pod);
}

/* One that was given up has to stay so, with a coordinator that never saw who came then. */
Test(operator_frozen, its_coordinator_is_told_which_workers_were_given_up)
{
    for (int frozen = 0; frozen < 2; frozen++) {
        struct cast *c =
            cast_open(frozen ? "{" FROZEN PLAIN "}" : "{" LAUNCH ",\"checkpoint\":null" PLAIN "}");
        struct str text = str_init(1 << 20);
        c->job.status.workers.slot[0] = (struct op_slot){.state = OP_SLOT_WANTED, .attempt = 7};
        cr_assert_eq(pod_coordinator(&c->job, &settings, &(struct op_spec){0}, 2, &text, NULL), 0);
        const char *told = strstr(str_text(&text), "{\"name\":\"RINGMASTER_POD_ATTEMPT\",\"value\":\"7\"}");
        cr_assert(frozen ? told != NULL : !strstr(str_text(&text), "POD_ATTEMPT"), "%s", str_text(&text));
        str_clear(&text);
        cast_free(c);
    }
}

Test(operator_frozen, its_pod_may_be_evicted_for_a_drain_would_wait_for_ever)
{
    for (int frozen = 0; frozen < 2; frozen++) {
        struct cast *c =
            cast_open(frozen ? "{" FROZEN PLAIN "}" : "{" LAUNCH ",\"checkpoint\":null" PLAIN "}");
        struct str text = str_init(1 << 20);
        object_budget(&c->job, &text);
        cr_assert(strstr(str_text(&text), frozen ? "\"minAvailable\":0" : "\"minAvailable\":1"), "%s",
                  str_text(&text));
        str_clear(&text);
        cast_free(c);
    }
}

Test(operator_frozen, its_coordinator_is_as_restricted_as_any)
{
    struct cast *c = cast_open("{" FROZEN PLAIN "}");
    struct str text = str_init(1 << 20);
    struct error err = {0};
    cr_assert_eq(pod_coordinator(&c->job, &settings, &(struct op_spec){0}, 2, &text, &err), 0);
    cr_assert_not(strstr(str_text(&text), "SYS_PTRACE") || strstr(str_text(&text), "POD_IMAGES"), "%s",
                  str_text(&text));
    str_clear(&text);
    cast_free(c);
}

#define SIZED(memory)                                                                                        \
    ONE_OF("\"containers\":[{\"name\":\"trainer\",\"image\":\"i@sha256:ab\",\"resources\":{\"limits\":{"     \
           "\"memory\":\"" memory "\"}}}]")
#define OWN_VOLUME                                                                                           \
    ONE_OF("\"volumes\":[{\"name\":\"mine\",\"emptyDir\":{}}],\"containers\":[{\"name\":\"trainer\","        \
           "\"image\":\"i\",\"volumeMounts\":[{\"name\":\"mine\",\"mountPath\":\"" POD_SNAPSHOTS "\"}]}]")

Test(operator_frozen, an_image_has_room_for_all_memory_and_the_programs_files)
{
    struct js *sized = made("{" FROZEN SIZED("3Gi") "}", &settings),
              *own = made("{" FROZEN OWN_VOLUME "}", &settings);
    const struct js *volume = entry(read_at(sized, "spec.volumes"), "ringmaster-snapshots");
    cr_assert_str_eq(js_as_string(read_at(volume, "emptyDir.sizeLimit")), "4097Mi");
    cr_assert_null(read_at(volume, "emptyDir.medium"), "on disk: memory is what there is little of");
    cr_assert_str_eq(variable(sized, "RINGMASTER_POD_IMAGES_BYTES"), "4296015872");
    cr_assert_str_eq(js_as_string(js_get(read_at(trainer(sized), "resources.requests"), "ephemeral-storage")),
                     "4097Mi");
    cr_assert_str_eq(variable(sized, "RINGMASTER_POD_IMAGE"), "i@sha256:ab");
    cr_assert_null(entry(read_at(own, "spec.volumes"), "ringmaster-snapshots"));
    cr_assert_str_eq(variable(own, "RINGMASTER_POD_IMAGES"), POD_SNAPSHOTS);
    cr_assert_null(variable(own, "RINGMASTER_POD_IMAGES_BYTES"));
    cr_assert_null(variable(own, "RINGMASTER_POD_IMAGE"), "a tag says nothing of what is there");
    js_free(sized);
    js_free(own);
}

#define OLDER                                                                                                \
    LAUNCH ",\"checkpoint\":{\"process\":\"CRIU\",\"processKeyRef\":{\"name\":\"old-key-0123456789abcdef\"}" \
           "}"

Test(operator_frozen, the_key_of_the_job_whose_snapshots_are_there_comes_along)
{
    struct js *pod = made("{" OLDER PLAIN "}", &settings), *plain = made("{" FROZEN PLAIN "}", &settings);
    const struct js *volume = entry(read_at(pod, "spec.volumes"), "ringmaster-older-key");
    cr_assert_str_eq(js_as_string(read_at(volume, "secret.secretName")), "old-key-0123456789abcdef");
    cr_assert_str_eq(variable(pod, "RINGMASTER_POD_OLDER_KEY"), "/etc/ringmaster/older-key/key");
    cr_assert_null(variable(plain, "RINGMASTER_POD_OLDER_KEY"));
    js_free(pod);
    js_free(plain);
}

Test(operator_frozen, it_is_refused_unless_the_operator_is_told_to_allow_it)
{
    struct cast *c = cast_open("{" FROZEN PLAIN "}");
    cast_settle(c);
    cr_assert_str_eq(c->job.status.message,
                     "spec.checkpoint.process is CRIU, which this operator is not told to allow "
                     "(processSnapshots.enabled of its chart); write None, or have it allowed");
    cr_assert_str_eq(c->job.status.condition[OP_ADMITTED].reason, "Invalid");
    c->snapshots = true;
    cr_assert(cast_says(c, "does the API server take such a pod?"));
    cast_free(c);
}

/* Its snapshots are sealed by it. */
Test(operator_frozen, its_key_outlives_a_suspension)
{
    struct cast *c = cast_open("{" FROZEN PLAIN "}");
    c->snapshots = true;
    cast_train(c);
    condition_set(&c->job.status, OP_SUSPENDED, true, "Suspended", "", 1, CAST_NOW);
    c->job.status.ring.coordinator.state = OP_SLOT_ENDED;
    c->job.status.workers.slot[0].state = OP_SLOT_ENDED;
    c->pods_count = 0;
    c->coordinator_answers = false;
    struct op_plan *plan = cast_plan(c);
    cr_assert_not(plan_has(plan, OP_CREATE, OP_SECRETS));
    plan_free(plan);
    cast_settle(c);
    cr_assert_str_eq(c->job.status.ring.key, "tiny-key-0123456789abcdef");
    cast_free(c);
}

#define VIOLATES                                                                                             \
    "pods \"tiny-w0-abcde\" is forbidden: violates PodSecurity \"restricted:latest\": unrestricted "         \
    "capabilities (container \"trainer\" must set securityContext.capabilities.drop=[\"ALL\"]; container "   \
    "\"trainer\" must not include \"CHECKPOINT_RESTORE\", \"SETGID\", \"SETPCAP\", \"SETUID\", "             \
    "\"SYS_PTRACE\" in securityContext.capabilities.add), runAsUser=0 (container \"trainer\" must not set "  \
    "runAsUser=0), seccompProfile (container \"trainer\" must not set securityContext.seccompProfile.type "  \
    "to \"Unconfined\")"

static struct cast *violating(const char *changes)
{
    struct cast *c = cast_open(changes);
    struct op_action action = {.kind = OP_DRY_RUN, .resource = OP_PODS};
    c->snapshots = true;
    text_copy(c->job.namespace_name, sizeof c->job.namespace_name,
              "a-namespace-with-as-long-a-name-as-kubernetes-lets-one-have-01");
    op_memo_refused(&c->memo, &c->job, &action, 403, "Forbidden", VIOLATES, CAST_NOW);
    cast_settle(c);
    return c;
}

Test(operator_frozen, a_namespace_that_takes_no_such_pods_is_told_with_the_label_by_which_it_would)
{
    static const char begin[] = "the API server refused to create pods: pods \"tiny-w0-abcde\" is forbidden: "
                                "violates PodSecurity",
                      end[] =
                          "; label namespace a-namespace-with-as-long-a-name-as-kubernetes-lets-one-have-01 "
                          "pod-security.kubernetes.io/enforce=privileged, which checkpoint.process: CRIU "
                          "takes";
    struct cast *frozen = violating("{" FROZEN PLAIN "}"), *plain = violating("{}");
    const char *said = frozen->job.status.message;
    cr_assert(!strncmp(said, begin, strlen(begin)), "%s", said);
    cr_assert(strlen(said) > strlen(end) && !strcmp(said + strlen(said) - strlen(end), end), "%s", said);
    cr_assert_not(strstr(plain->job.status.message, "label"), "%s", plain->job.status.message);
    cast_free(frozen);
    cast_free(plain);
}

/* --- one at a time --- */

enum { FENCE_MS = 2 * 7000 };

/* One worker that runs the program since a while; lostAfter is 7 s. */
static struct cast *running(void)
{
    struct cast *c = cast_open("{" FROZEN PLAIN ",\"elasticity\":{\"lostAfter\":\"7s\"}}");
    c->snapshots = true;
    cast_train(c);
    cr_assert_eq(c->job.status.workers.slot[0].state, OP_SLOT_PRESENT);
    return c;
}

static void later(struct cast *c, int64_t ms)
{
    c->now_ms += ms;
    cast_settle(c);
}

static int wanted(const struct cast *c)
{
    const struct op_slot *slot = &c->job.status.workers.slot[0];
    return slot_is_live(slot) ? slot->attempt : 0;
}

/* Not before 2 * lostAfter from now, and then at once. */
static void follows_behind_the_fence(struct cast *c)
{
    later(c, FENCE_MS - 1);
    cr_assert_eq(wanted(c), 0);
    later(c, 1);
    cr_assert_eq(wanted(c), 2);
}

/* Its coordinator knows nobody any more. */
static void be_lost(struct cast *c)
{
    c->coordinator.ring_size = c->coordinator.workers_count = 0;
    c->coordinator.state = STATUS_GATHERING;
    c->coordinator.lost[0] = (struct op_gone){.worker = 0, .attempt = 1, .at_ms = c->now_ms};
    c->coordinator.lost_count = 1;
}

static void take_pod(struct cast *c, int index)
{
    c->pods[index] = c->pods[--c->pods_count];
}

Test(operator_frozen, who_was_seen_to_end_is_followed_at_once)
{
    struct cast *c = running();
    be_lost(c);
    c->pod[1].phase = OP_POD_FAILED;
    c->pod[1].terminated = true;
    c->pod[1].exit_code = 1;
    text_copy(c->pod[1].disruption, sizeof c->pod[1].disruption, "EvictionByEvictionAPI");
    cast_settle(c);
    cr_assert_eq(wanted(c), 2);
    cast_free(c);
}

/* Its machine is cut off: it may run there until its agent, which hears nothing, stops it. */
Test(operator_frozen, who_was_lost_is_followed_twice_lost_after_later)
{
    struct cast *c = running();
    be_lost(c);
    c->node[0].ready = false;
    text_copy(c->pod[1].node, OP_NODE_MAX, "node-1");
    c->node[1].ready = false;
    c->node[0].ready = true;
    cast_settle(c);
    cr_assert_eq(wanted(c), 0);
    cr_assert_eq(c->job.status.workers.stray.silent_ms, CAST_NOW);
    cr_assert_str_eq(
        c->job.status.message,
        "waiting for workers: 0 ready, 1 needed; the one before may still run the program, where "
        "nobody sees it: the next one comes when it has to have stopped");
    c->pod[1].deletion_ms = CAST_NOW + 120000;
    struct op_plan *plan = cast_plan(c);
    cr_assert_eq(plan->wake_ms, CAST_NOW + FENCE_MS);
    plan_free(plan);
    follows_behind_the_fence(c);
    cast_free(c);
}

Test(operator_frozen, who_is_still_answered_is_not_followed_however_long_that_lasts)
{
    struct cast *c = running();
    c->pod[1].deletion_ms = CAST_NOW + 120000;
    c->coordinator.state = STATUS_GATHERING;
    cast_settle(c);
    cr_assert(c->job.status.workers.stray.answered);
    cr_assert_str_eq(c->job.status.message,
                     "waiting for workers: 0 ready, 1 needed; the one before may still run "
                     "the program: the next one comes when it has ended");
    later(c, 3600 * 1000);
    cr_assert_eq(wanted(c), 0);
    be_lost(c);
    later(c, 1000);
    cr_assert_eq(c->job.status.workers.stray.silent_ms, c->now_ms);
    follows_behind_the_fence(c);
    cast_free(c);
}

/* It froze its program, put it into the store and left: all of that its coordinator and its kubelet saw. */
Test(operator_frozen, who_was_told_to_go_and_went_is_followed_when_it_is_seen_to_have_ended)
{
    struct cast *c = running();
    c->pod[1].deletion_ms = CAST_NOW + 120000;
    cast_settle(c);
    be_lost(c);
    later(c, 1000);
    c->pod[1].phase = OP_SUCCEEDED;
    c->pod[1].terminated = c->pod[1].left = true;
    later(c, 1000);
    cr_assert_eq(wanted(c), 2);
    cr_assert_eq(c->job.status.workers.stray.silent_ms, 0);
    cast_free(c);
}

Test(operator_frozen, a_pod_that_somebody_takes_away_by_force_may_run_on)
{
    struct cast *c = running();
    take_pod(c, 1);
    cast_settle(c);
    cr_assert_eq(wanted(c), 0);
    cr_assert_eq(c->job.status.workers.stray.silent_ms, CAST_NOW);
    later(c, FENCE_MS);
    cr_assert_eq(wanted(c), 2);
    later(c, 1000);
    cr_assert_eq(c->job.status.workers.stray.silent_ms, 0, "it is told no longer than it counts");
    cast_free(c);
}

/* What it can't ask may answer somebody else. */
Test(operator_frozen, a_coordinator_that_says_nothing_may_still_answer_its_worker)
{
    struct cast *c = running();
    silence_note(&c->silence, c->now_ms, c->now_ms + 1000, "connection refused");
    c->now_ms += 1000;
    text_copy(c->pod[1].node, OP_NODE_MAX, "nowhere");
    cast_settle(c);
    cr_assert(c->job.status.workers.stray.answered);
    c->pod[1].deletion_ms = CAST_NOW + 120000;
    later(c, 20 * 1000);
    cr_assert_eq(wanted(c), 0);
    c->silence = (struct op_silence){0};
    be_lost(c);
    later(c, 1000);
    cr_assert_eq(c->job.status.workers.stray.silent_ms, c->now_ms);
    later(c, FENCE_MS);
    cr_assert_eq(wanted(c), 2);
    cast_free(c);
}

Test(operator_frozen, a_suspension_in_between_changes_nothing)
{
    struct cast *c = running();
    c->job.suspend = true;
    cast_settle(c);
    take_pod(c, 1);
    be_lost(c);
    later(c, 1000);
    c->job.suspend = false;
    later(c, FENCE_MS - 1);
    cr_assert_eq(wanted(c), 0);
    later(c, 1000);
    cr_assert_eq(wanted(c), 2);
    cast_free(c);
}

Test(operator_frozen, no_replacement_comes_first)
{
    struct cast *c = running();
    c->coordinator.worker[0].may_go = true;
    cast_settle(c);
    c->coordinator.worker[0].may_go = false;
    c->coordinator.worker[0].will_go = true;
    later(c, 1000);
    cr_assert_eq(c->job.status.workers.surge, 0);
    cr_assert_eq(c->job.status.workers.slot[1].state, OP_SLOT_FREE);
    cast_free(c);
}

/* The others go on as they did. */
Test(operator_frozen, a_program_that_is_not_frozen_is_waited_for_by_nobody)
{
    struct cast *c = cast_training("{" LAUNCH ",\"checkpoint\":null" PLAIN "}");
    take_pod(c, 1);
    cast_settle(c);
    later(c, 2000); /* it ended soon */
    cr_assert_eq(wanted(c), 2);
    cr_assert(!c->job.status.workers.stray.silent_ms && !c->job.status.workers.stray.answered);
    cast_free(c);
}

/* --- what is told --- */

Test(operator_frozen, a_snapshot_is_told_by_its_number)
{
    struct cast *c = running();
    c->coordinator.checkpoint = (struct op_checkpoint){.known = true, .step = 12, .bytes = 999};
    text_copy(c->coordinator.checkpoint.uri, sizeof c->coordinator.checkpoint.uri, "s3://a/process-00000012");
    cast_settle(c);
    cr_assert_eq(c->job.status.checkpoint.step, 12);
    c->job.suspend = true;
    cast_settle(c);
    cr_assert_str_eq(c->job.status.message,
                     "a snapshot of the program's processes is made, and the worker ends");
    for (int i = 0; i < 2; i++) {
        c->pod[i].phase = OP_SUCCEEDED;
        c->pod[i].terminated = c->pod[i].left = true;
    }
    c->coordinator_answers = false;
    later(c, 1000);
    later(c, 1000);
    cr_assert_str_eq(c->job.status.message, "suspended; the newest snapshot is number 12");
    cast_free(c);
}
