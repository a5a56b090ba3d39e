/* What pods, nodes and coordinators say, as the operator takes it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "cast.h"
#include "common/wire/json.h"

static struct js *json(const char *text)
{
    struct error err = {0};
    struct js *object = js_parse(text, strlen(text), "text", &err);
    cr_assert(object, "%s", err.text);
    return object;
}

#define LABELS                                                                                               \
    "\"labels\":{\"ringmaster.dev/job\":\"tiny\",\"ringmaster.dev/role\":\"worker\",\"ringmaster.dev/"       \
    "worker\":\"3\",\"ringmaster.dev/"                                                                       \
    "attempt\":\"2\"},\"ownerReferences\":[{\"apiVersion\":\"ringmaster.dev/"                                \
    "v1alpha1\",\"kind\":\"TrainingJob\",\"name\":\"tiny\",\"uid\":\"j\",\"controller\":true}]"

Test(operator_view, a_pods_condition_reasons_and_last_word_are_taken)
{
    struct pod_view pod;
    struct js *object = json(
        "{\"metadata\":{\"name\":\"p\",\"uid\":\"u\",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"," LABELS
        "},"
        "\"spec\":{\"nodeName\":\"n\"},\"status\":{\"phase\":\"Failed\",\"podIP\":\"10.1.2.3\","
        "\"conditions\":["
        "{\"type\":\"DisruptionTarget\",\"status\":\"True\",\"reason\":\"EvictionByEvictionAPI\"},"
        "{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":\"Unschedulable\",\"message\":"
        "\"no\\nroom\"}],"
        "\"containerStatuses\":[{\"name\":\"sidecar\",\"state\":{\"terminated\":{\"exitCode\":9}}},"
        "{\"name\":\"trainer\",\"state\":{\"terminated\":{\"exitCode\":0,\"reason\":\"Completed\","
        "\"message\":\"{\\\"left\\\": true}\",\"finishedAt\":\"2026-01-01T00:00:00Z\"}}}]}}");
    cr_assert_eq(pod_project(object, &pod, NULL), 0);
    cr_assert_eq(pod.index, 3);
    cr_assert_eq(pod.attempt, 2);
    cr_assert_eq(pod.phase, OP_POD_FAILED);
    cr_assert_str_eq(pod.disruption, "EvictionByEvictionAPI");
    cr_assert_str_eq(pod.unschedulable, "no room");
    cr_assert_str_eq(pod.node, "n");
    cr_assert_eq(pod.exit_code, 0);
    cr_assert(pod.left && pod.terminated && pod.deletion_ms && pod.ended_ms);
    js_free(object);
}

Test(operator_view, a_pod_that_tolerates_karpenters_taint_or_all_is_not_drained)
{
    static const struct {
        const char *list;
        bool undrained;
    } table[] = {{"[]", false},
                 {"[{\"key\":\"nvidia.com/gpu\",\"operator\":\"Exists\"}]", false},
                 {"[{\"key\":\"nvidia.com/gpu\"},{\"key\":\"karpenter.sh/disrupted\"}]", true},
                 {"[{\"operator\":\"Exists\",\"effect\":\"NoExecute\"}]", false},
                 {"[{\"key\":\"karpenter.sh/disrupted\",\"effect\":\"NoExecute\"}]", false},
                 {"[{\"operator\":\"Exists\",\"effect\":\"NoSchedule\"}]", true},
                 {"[{\"operator\":\"Exists\"}]", true}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct pod_view pod;
        struct str text = str_init(4096);
        str_addf(&text,
                 "{\"metadata\":{\"name\":\"p\",\"uid\":\"u\"," LABELS "},\"spec\":{\"tolerations\":%s}}",
                 table[i].list);
        struct js *object = json(str_text(&text));
        cr_assert_eq(pod_project(object, &pod, NULL), 0);
        cr_assert_eq(pod.undrained, table[i].undrained, "%s", table[i].list);
        js_free(object);
        str_clear(&text);
    }
}

/* A worker's pod whose trainer waits like this. */
static struct pod_view waiting_pod(const char *reason, const char *message)
{
    struct pod_view pod;
    struct str text = str_init(4096);
    str_addf(&text,
             "{\"metadata\":{\"name\":\"p\",\"uid\":\"u\"," LABELS "},\"status\":{\"phase\":\"Pending\","
             "\"containerStatuses\":[{\"name\":\"trainer\",\"state\":{\"waiting\":{\"reason\":\"%s\","
             "\"message\":\"%s\"}}}]}}",
             reason, message);
    struct js *object = json(str_text(&text));
    cr_assert_eq(pod_project(object, &pod, NULL), 0);
    js_free(object);
    str_clear(&text);
    return pod;
}

static void runs(const char *asked, const char *told, const char *state, const char *image)
{
    char text[2048];
    struct pod_view pod;
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"p\",\"uid\":\"u\"," LABELS "},\"spec\":{\"containers\":[{\"name\":"
             "\"sidecar\",\"image\":\"x\"},{\"name\":\"trainer\",\"image\":\"%s\"}]},\"status\":{"
             "\"containerStatuses\":[{\"name\":\"trainer\",\"imageID\":\"%s\",\"state\":{\"%s\":{}}}]}}",
             asked, told, state);
    struct js *object = json(text);
    cr_assert_eq(pod_project(object, &pod, NULL), 0);
    cr_assert_str_eq(pod.image, image, "%s, told as %s", asked, told);
    js_free(object);
}

Test(operator_view, an_image_is_pinned_by_the_digest_that_can_be_asked_for)
{
    static const char hub[] = "docker.io/library/worker@sha256:ab",
                      own[] = "ghcr.io:5000/me/worker@sha256:ab";
    runs("worker:1", hub, "running", hub);
    runs("worker", hub, "terminated", hub);
    runs("ghcr.io:5000/me/worker:v2", own, "running", own);
    runs("ghcr.io:5000/me/worker:v2@sha256:ab", own, "running", own);
    runs("worker:1", "docker-pullable://worker@sha256:ab", "running", "worker@sha256:ab");
    runs("worker:1", "sha256:ab", "running", "worker:1"); /* put on the node by hand: no registry has it */
    runs("worker:1", "docker.io/library/import-2026-01-01@sha256:ab", "running", "worker:1");
    runs("worker:1", "docker.io/library/coworker@sha256:ab", "running", "worker:1");
    runs("worker:1", "", "running", "worker:1");
    runs("worker:1", "", "waiting", "");
}

Test(operator_view, a_pull_that_failed_and_the_pause_before_the_next_are_one_trouble)
{
    static const char cause[] = "failed to resolve reference x:1: no such host";
    struct pod_view failed = waiting_pod("ErrImagePull", cause);
    struct pod_view pause = waiting_pod("ImagePullBackOff", "Back-off pulling image x:1: ErrImagePull: "
                                                            "failed to resolve reference x:1: no such host");
    cr_assert_str_eq(failed.waiting, "ImagePullBackOff");
    cr_assert_str_eq(pause.waiting, "ImagePullBackOff");
    cr_assert_str_eq(failed.waiting_message, cause);
    cr_assert_str_eq(pause.waiting_message, cause);
}

Test(operator_view, what_a_pod_waits_for_keeps_its_beginning_and_its_end_however_long_it_is)
{
    char text[1200];
    snprintf(text, sizeof text, "secret a: %0900d\xc3\xa4%080d: not found", 0, 0);
    struct pod_view pod = waiting_pod("CreateContainerConfigError", text);
    size_t length = strlen(pod.waiting_message);
    cr_assert_lt(length, sizeof pod.waiting_message);
    cr_assert_eq(strncmp(pod.waiting_message, "secret a: 0", 11), 0);
    cr_assert_str_eq(pod.waiting_message + length - 13, "00: not found");
    cr_assert(strstr(pod.waiting_message, "0 ... "), "%s", pod.waiting_message);
    cr_assert_not(strchr(pod.waiting_message, '\xa4'), "half a character");
}

Test(operator_view, a_pod_that_is_nobodys_is_not_taken)
{
    struct pod_view pod;
    static const char *const strangers[] = {
        "{\"metadata\":{\"name\":\"p\",\"uid\":\"u\"}}",
        "{\"metadata\":{\"name\":\"p\",\"uid\":\"u\",\"labels\":{\"ringmaster.dev/role\":\"worker\"}}}",
        "{\"metadata\":{\"name\":\"p\",\"uid\":\"u\",\"labels\":{\"ringmaster.dev/role\":\"worker\","
        "\"ringmaster.dev/worker\":\"64\",\"ringmaster.dev/attempt\":\"1\"}}}",
        "{\"metadata\":{\"name\":\"p\",\"uid\":\"u\",\"labels\":{\"ringmaster.dev/role\":\"worker\","
        "\"ringmaster.dev/worker\":\"1\",\"ringmaster.dev/"
        "attempt\":\"1\"},\"ownerReferences\":[{\"apiVersion\":"
        "\"apps/v1\",\"kind\":\"TrainingJob\",\"name\":\"tiny\",\"controller\":true,\"uid\":\"j\"}]}}",
        "{\"metadata\":{\"name\":\"p\",\"uid\":\"u\",\"labels\":{\"ringmaster.dev/role\":\"worker\","
        "\"ringmaster.dev/worker\":\"1\",\"ringmaster.dev/"
        "attempt\":\"1\"},\"ownerReferences\":[{\"apiVersion\":"
        "\"ringmaster.dev/v1alpha1\",\"kind\":\"TrainingJob\",\"name\":\"tiny\",\"uid\":\"j\"}]}}"};
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        struct error err = {0};
        struct js *object = json(strangers[i]);
        cr_assert_lt(pod_project(object, &pod, &err), 0, "%s", strangers[i]);
        cr_assert_eq(err.code, ERR_NOT_FOUND);
        js_free(object);
    }
}

/* Karpenter's taint alone may be taken back; the deletion of its node is not. */
Test(operator_view, a_node_that_is_being_deleted_will_go)
{
    struct node_view node;
    struct js *object = json("{\"metadata\":{\"name\":\"n\",\"deletionTimestamp\":\"2026-01-02T03:04:05Z\"},"
                             "\"spec\":{\"taints\":[{\"key\":\"karpenter.sh/disrupted\","
                             "\"effect\":\"NoSchedule\"}]}}");
    cr_assert_eq(node_project(object, &node, NULL), 0);
    cr_assert_str_eq(node.leave, "is being deleted");
    js_free(object);
}

Test(operator_view, a_machine_that_is_silent_was_seen_until_a_lease_before_it_was_missed)
{
    static const struct {
        const char *ready;
        int64_t unseen_s; /* behind 2026-01-02T03:04:00Z; -1: it is seen */
    } cases[] = {{"\"status\":\"Unknown\",\"lastTransitionTime\":\"2026-01-02T03:05:00Z\","
                  "\"lastHeartbeatTime\":\"2026-01-02T03:01:00Z\"",
                  12},
                 {"\"status\":\"Unknown\",\"lastTransitionTime\":\"2026-01-02T03:05:00Z\","
                  "\"lastHeartbeatTime\":\"2026-01-02T03:04:20Z\"",
                  20},
                 {"\"status\":\"Unknown\",\"lastTransitionTime\":\"2026-01-02T03:05:00Z\"", 12},
                 {"\"status\":\"Unknown\"", -1},
                 {"\"status\":\"False\",\"lastTransitionTime\":\"2026-01-02T03:05:00Z\"", -1},
                 {"\"status\":\"True\",\"lastTransitionTime\":\"2026-01-02T03:05:00Z\"", -1}};
    const int64_t from_s = 1767323040; /* 2026-01-02T03:04:00Z */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct node_view node;
        struct str text = str_init(1024);
        str_addf(&text,
                 "{\"metadata\":{\"name\":\"n\"},\"status\":{\"conditions\":[{\"type\":\"Ready\",%s}]}}",
                 cases[i].ready);
        struct js *object = json(str_text(&text));
        cr_assert_eq(node_project(object, &node, NULL), 0);
        int64_t expected_s = cases[i].unseen_s < 0 ? 0 : from_s + cases[i].unseen_s;
        cr_assert_eq(node.unseen_ms / 1000, expected_s, "case %zu: %lld", i, (long long)node.unseen_ms);
        js_free(object);
        str_clear(&text);
    }
}

/* kubectl cordon sets both. */
Test(operator_view, a_node_that_is_cordoned_may_go)
{
    struct node_view node;
    struct js *object = json("{\"metadata\":{\"name\":\"n\"},\"spec\":{\"unschedulable\":true,\"taints\":[{"
                             "\"key\":\"node.kubernetes.io/unschedulable\",\"effect\":\"NoSchedule\"}]}}");
    cr_assert_eq(node_project(object, &node, NULL), 0);
    cr_assert_str_eq(node.may_leave, "is cordoned");
    cr_assert_str_eq(node.leave, "");
    js_free(object);
}

/* In whatever order they stand there. */
Test(operator_view, of_several_taints_the_surest_counts_and_of_those_the_one_that_promises_least)
{
    static const char spot[] = "aws-node-termination-handler/spot-itn";
    static const char *const taints[] = {spot, "karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler",
                                         "aws-node-termination-handler/rebalance-recommendation"};
    enum { TAINTS = sizeof taints / sizeof *taints };
    for (int first = 0; first < 2 * TAINTS; first++) {
        struct node_view node;
        struct str text = str_init(2048);
        str_adds(&text, "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"unschedulable\":true,\"taints\":[");
        for (int i = 0; i < TAINTS; i++)
            str_addf(&text, "%s{\"key\":\"%s\",\"effect\":\"NoSchedule\"}", i ? "," : "",
                     taints[(first + (first < TAINTS ? i : TAINTS - i)) % TAINTS]);
        str_adds(&text, "]}}");
        struct js *object = json(str_text(&text));
        cr_assert_eq(node_project(object, &node, NULL), 0);
        cr_assert(strstr(node.leave, spot), "%d: %s", first, node.leave);
        cr_assert_eq(node.lead_ms, 120000, "%d", first);
        cr_assert(*node.may_leave, "which is left when the others are taken back");
        js_free(object);
        str_clear(&text);
    }
}

Test(operator_view, taints_that_announce_the_end_are_leave_signals_and_hiccups_are_not)
{
    static const struct {
        const char *key;
        bool leaves, may_leave;
    } taints[] = {{"aws-node-termination-handler/spot-itn", .leaves = true},
                  {"aws-node-termination-handler/rebalance-recommendation", .may_leave = true},
                  {"aws-node-termination-handler/asg-lifecycle-termination", .may_leave = true},
                  {"aws-node-termination-handler/scheduled-maintenance", .may_leave = true},
                  {"karpenter.sh/disrupted", .may_leave = true},
                  {"ToBeDeletedByClusterAutoscaler", .leaves = true},
                  {"cloud.google.com/impending-node-termination", .may_leave = true},
                  {"remediator.kubernetes.azure.com/unschedulable", .leaves = true},
                  {"DeletionCandidateOfClusterAutoscaler", .leaves = false},
                  {"node.kubernetes.io/not-ready", .leaves = false},
                  {"node.kubernetes.io/unreachable", .leaves = false},
                  {"node.kubernetes.io/out-of-service", .leaves = false},
                  {"nvidia.com/gpu", .leaves = false}};
    for (size_t i = 0; i < sizeof taints / sizeof *taints; i++) {
        struct node_view node;
        struct str text = str_init(1024);
        str_addf(
            &text,
            "{\"metadata\":{\"name\":\"n\",\"labels\":{\"node.kubernetes.io/instance-type\":\"m5.large\"}},"
            "\"spec\":{\"taints\":[{\"key\":\"%s\",\"effect\":"
            "\"NoSchedule\"}]},\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
            taints[i].key);
        struct js *object = json(str_text(&text));
        cr_assert_eq(node_project(object, &node, NULL), 0);
        cr_assert_eq(*node.leave != 0, taints[i].leaves, "%s", taints[i].key);
        cr_assert_eq(*node.may_leave != 0, taints[i].may_leave, "%s", taints[i].key);
        cr_assert_eq(node.lead_ms > 0, taints[i].leaves, "each promises a time: %s", taints[i].key);
        cr_assert(node.ready);
        cr_assert_str_eq(node.machine.type, "m5.large");
        js_free(object);
        str_clear(&text);
    }
}

/* Who is in the ring and stays there, who waits for a place, and whose machine may go. */
Test(operator_view, of_those_who_are_connected_it_is_known_where_they_stand)
{
    static const struct {
        const char *worker;
        bool in_ring, waits, may_go, will_go;
    } rows[] = {
        {"\"phase\":\"training\",\"rank\":0", true, false, false, false},
        {"\"phase\":\"leaving\",\"rank\":0", false, false, false, false},
        {"\"phase\":\"away\",\"rank\":0", false, false, false, false},
        {"\"phase\":\"waiting\",\"rank\":-1", false, true, false, false},
        {"\"phase\":\"starting\",\"rank\":-1", false, false, false, false},
        {"\"phase\":\"training\",\"rank\":1,\"notice\":{\"source\":\"aws-rebalance\",\"certainty\":\"may\"}",
         true, false, true, false},
        {"\"phase\":\"training\",\"rank\":1,\"notice\":{\"source\":\"aws-spot\",\"certainty\":\"will\"}",
         true, false, false, false},
        {"\"phase\":\"training\",\"rank\":1,\"notice\":{\"source\":\"aws-spot\",\"certainty\":\"will\","
         "\"leftSeconds\":null}",
         true, false, false, false},
        {"\"phase\":\"training\",\"rank\":1,\"notice\":{\"source\":\"aws-spot\",\"certainty\":\"will\","
         "\"leftSeconds\":90.5}",
         true, false, false, true},
        {"\"phase\":\"training\",\"rank\":1,\"notice\":{\"source\":\"aws-spot\",\"certainty\":\"will\","
         "\"leftSeconds\":0.0}",
         true, false, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct coordinator_view view;
        struct error err = {0};
        struct str text = str_init(1024);
        str_addf(&text, "{\"workers\":[{\"worker\":3,\"attempt\":2,%s}]}", rows[i].worker);
        cr_assert_eq(coordinator_read(str_text(&text), text.length, &view, &err), 0, "%s", err.text);
        cr_assert_eq(view.workers_count, 1);
        cr_assert(view.worker[0].worker == 3 && view.worker[0].attempt == 2);
        cr_assert_eq(view.worker[0].in_ring, rows[i].in_ring, "%s", rows[i].worker);
        cr_assert_eq(view.worker[0].waits, rows[i].waits, "%s", rows[i].worker);
        cr_assert_eq(view.worker[0].may_go, rows[i].may_go, "%s", rows[i].worker);
        cr_assert_eq(view.worker[0].will_go, rows[i].will_go, "%s", rows[i].worker);
        str_clear(&text);
    }
}

Test(operator_view, a_coordinators_answer_is_taken_field_by_field)
{
    struct coordinator_view view;
    struct error err = {0};
    const char *text =
        "{\"revision\":17,\"job\":\"uid\",\"term\":2,\"state\":\"Training\",\"message\":\"m\",\"ring\":{"
        "\"generation\":"
        "3,\"size\":2,\"formedTime\":1790000000000,\"members\":[{\"worker\":0,\"attempt\":1},{\"worker\":5,"
        "\"attempt\":2}]},\"workers\":[{\"worker\":0,\"attempt\":1,\"phase\":\"training\"}],\"lost\":[{"
        "\"worker\":1,"
        "\"attempt\":1,\"cause\":\"WorkerLost\",\"time\":5}],\"quarantined\":[{\"worker\":7}],\"progress\":{"
        "\"step\":"
        "812,\"steps\":2000,\"loss\":2.10434,\"gradientNorm\":0.84211,\"learningRate\":5.9876e-05,"
        "\"clipFactor\":null,\"tokensPerSecond\":81234,\"etaSeconds\":null},\"checkpoint\":"
        "null,\"checkpointInterval\":{\"everySeconds\":300.4,\"reason\":\"every 5 min\",\"losses\":2,"
        "\"observedSeconds\":1e99,\"stallMs\":\"much\",\"safeMs\":3100.2},"
        "\"lastRecovery\":{\"cause\":\"WorkerLeft\",\"totalMs\":410,\"stepsRedone\":0},\"goodput\":{"
        "\"ratio\":0.962,"
        "\"waitingSeconds\":3.7},\"unknown\":[1,2],\"checkpointWaiting\":{\"step\":9,\"reason\":\"503\"},"
        "\"secondTransport\":{\"used\":false,\"reason\":\"no NCCL\"},"
        "\"events\":[{\"sequence\":4,\"time\":9,\"event\":"
        "\"workerLost\","
        "\"worker\":1,\"step\":40,\"cause\":\"WorkerLost\"}],\"result\":null}";
    cr_assert_eq(coordinator_read(text, strlen(text), &view, &err), 0, "%s", err.text);
    cr_assert_eq(view.term, 2);
    cr_assert_eq(view.state, STATUS_TRAINING);
    cr_assert_eq(view.ring_size, 2);
    cr_assert_eq(view.member[1].worker, 5);
    cr_assert_eq(view.lost_count, 1);
    cr_assert_eq(view.quarantined[0], 7);
    cr_assert_str_eq(view.progress.loss, "2.1043");
    cr_assert_str_eq(view.progress.norm, "0.84211");
    cr_assert_str_eq(view.progress.rate, "5.9876e-05");
    cr_assert(!*view.progress.clip && !*view.progress.held_out, "not known");
    cr_assert_eq(view.progress.tokens_per_second, 81234);
    cr_assert_lt(view.progress.samples_per_second, 0, "not known");
    cr_assert_lt(view.progress.eta_seconds, 0, "not known");
    cr_assert_not(view.checkpoint.known);
    cr_assert_eq(view.interval.every_seconds, 300);
    cr_assert_str_eq(view.interval.reason, "every 5 min");
    cr_assert_eq(view.interval.losses, 2);
    cr_assert_eq(view.interval.stall_ms, 0, "no number");
    cr_assert_leq(view.interval.observed_seconds, OP_COUNT_MAX);
    cr_assert_eq(view.interval.safe_ms, 3100);
    cr_assert_eq(view.last_recovery.ms[RECOVERY_TOTAL], 410);
    cr_assert_str_eq(view.goodput.ratio, "0.962");
    cr_assert_eq(view.goodput.seconds[GOODPUT_WAITING], 3);
    cr_assert_str_eq(view.event[0].note, "worker 1 at step 40: WorkerLost");
    cr_assert_str_eq(view.outage, "503");
    cr_assert_str_eq(view.slower, "no NCCL");
    cr_assert_not(view.last_word.known);
}

Test(operator_view, a_lying_coordinator_can_say_too_much_but_do_no_harm)
{
    static struct coordinator_view view;
    struct error err = {0};
    struct str text = str_init(1 << 20);
    str_adds(&text, "{\"term\":99999999999,\"state\":\"\\u001b[2J\",\"message\":\"a\\nb\\u0007\",\"ring\":{"
                    "\"members\":[");
    for (int i = 0; i < 500; i++)
        str_addf(&text, "%s{\"worker\":%d}", i ? "," : "", i % 100 - 20);
    str_adds(
        &text,
        "]},\"lost\":7,\"events\":{},\"progress\":{\"step\":-5,\"loss\":\"<script>\"},\"quarantined\":[");
    for (int i = 0; i < 500; i++)
        str_addf(&text, "%s{\"worker\":1}", i ? "," : "");
    str_adds(&text, "]}");
    cr_assert_eq(coordinator_read(str_text(&text), text.length, &view, &err), 0, "%s", err.text);
    cr_assert_eq(view.term, INT32_MAX);
    cr_assert_eq(view.state, STATUS_UNKNOWN);
    cr_assert_str_eq(view.message, "a b ");
    cr_assert_eq(view.ring_size, RM_WORKERS_MAX);
    cr_assert_eq(view.quarantined_count, RM_WORKERS_MAX);
    cr_assert_eq(view.progress.step, 0);
    cr_assert_str_eq(view.progress.loss, "");
    static const char *const refused[] = {"", "[]", "7", "{", "{\"a\":1,\"a\":2}"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        cr_assert_lt(coordinator_read(refused[i], strlen(refused[i]), &view, &err), 0, "%s", refused[i]);
    cr_assert_lt(coordinator_read(str_text(&text), OP_ANSWER_MAX + 1, &view, &err), 0);
    str_clear(&text);
}

Test(operator_view, the_last_word_is_the_result_or_nothing)
{
    struct op_last_word last_word;
    last_word_read(
        "{\"exitCode\":0,\"reason\":\"\",\"step\":2000,\"loss\":2.06112,\"weightsSha256\":\"ab\",\"uri\":"
        "\"s3://a\",\"interrupted\":false,\"exact\":true,\"bytes\":123,\"savedTime\":1790000000000}",
        &last_word);
    cr_assert(last_word.known && !last_word.interrupted && last_word.result.exact);
    cr_assert_eq(last_word.bytes, 123);
    cr_assert_eq(last_word.saved_ms, 1790000000000);
    cr_assert_eq(last_word.result.step, 2000);
    cr_assert_str_eq(last_word.result.weights_sha256, "ab");
    static const char *const none[] = {"", "killed", "{}", "[]", "null", "{\"step\":3}"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        last_word_read(none[i], &last_word);
        cr_assert_not(last_word.known, "%s", none[i]);
    }
    last_word_read(NULL, &last_word);
    cr_assert_not(last_word.known);
}

/* Somebody may have written there by hand; the next attempt must be a higher one all the same. */
Test(operator_view, what_is_counted_on_from_a_status_leaves_room_for_more)
{
    struct job_status status;
    struct js *object = json(
        "{\"workers\":{\"slots\":[{\"index\":3,\"attempt\":2147483647,\"state\":\"Ended\"}]},"
        "\"ring\":{\"term\":2147483647,\"quickEnds\":2147483647},\"restarts\":{\"failure\":2147483647}}");
    status_read(object, &status);
    cr_assert_eq(status.workers.slot[3].attempt, OP_COUNT_MAX);
    cr_assert_eq(status.ring.coordinator.attempt, OP_COUNT_MAX);
    cr_assert_eq(status.ring.coordinator.quick, OP_COUNT_MAX);
    cr_assert_eq(status.restarts.failure, OP_COUNT_MAX);
    js_free(object);
}

/* And who wrote a state may have forgotten its number. */
Test(operator_view, a_state_without_an_attempt_or_a_term_is_nobodys_and_its_job_is_begun)
{
    struct cast *c = cast_open("{}");
    struct js *object = json("{\"workers\":{\"slots\":[{\"index\":0,\"state\":\"Wanted\"},"
                             "{\"index\":1,\"attempt\":0,\"state\":\"Present\"},"
                             "{\"index\":2,\"attempt\":-4,\"state\":\"Skipped\"}]},"
                             "\"ring\":{\"coordinator\":\"Wanted\"}}");
    status_read(object, &c->job.status);
    js_free(object);
    cr_assert_eq(c->job.status.ring.coordinator.state, OP_SLOT_FREE);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(c->job.status.workers.slot[i].state, OP_SLOT_FREE, "worker %d", i);
    c->memo.dry_generation = c->job.generation;
    cast_settle(c);
    cast_settle(c);
    cr_assert_eq(c->job.status.ring.coordinator.attempt, 1);
    cr_assert_eq(c->job.status.workers.slot[2].attempt, 1);
    cast_free(c);
}

static void tells(const char *event, const char *sentence)
{
    static struct coordinator_view view;
    struct error err;
    char text[600];
    snprintf(text, sizeof text, "{\"events\":[{\"sequence\":1,%s}]}", event);
    cr_assert_eq(coordinator_read(text, strlen(text), &view, &err), 0, "%s", err.text);
    cr_assert_str_eq(view.event[0].note, sentence);
}

Test(operator_view, of_a_notice_it_is_known_whose_machine_goes_and_whether_it_does)
{
    static struct coordinator_view view;
    static const char text[] =
        "{\"events\":[{\"sequence\":1,\"event\":\"noticeReceived\",\"worker\":3,\"certainty\":\"will\"},"
        "{\"sequence\":2,\"event\":\"noticeReceived\",\"worker\":0,\"certainty\":\"may\"},"
        "{\"sequence\":3,\"event\":\"noticeWithdrawn\"}]}";
    struct error err = {0};
    cr_assert_eq(coordinator_read(text, strlen(text), &view, &err), 0, "%s", err.text);
    cr_assert_eq(view.event[0].worker, 3);
    cr_assert(view.event[0].will);
    cr_assert_eq(view.event[1].worker, 0);
    cr_assert_not(view.event[1].will);
    cr_assert_eq(view.event[2].worker, -1);
}

Test(operator_view, a_notice_is_a_sentence_with_what_is_left_where_that_is_known)
{
    tells("\"event\":\"noticeReceived\",\"worker\":3,\"step\":9,\"source\":\"aws-rebalance\","
          "\"cause\":\"reclaim\",\"certainty\":\"may\"",
          "worker 3: its machine may go (reclaim), says aws-rebalance");
    tells("\"event\":\"noticeReceived\",\"worker\":3,\"step\":9,\"source\":\"aws-spot\",\"cause\":"
          "\"reclaim\",\"certainty\":\"will\",\"leftSeconds\":117.9",
          "worker 3: its machine will go in 117 s (reclaim), says aws-spot");
    tells("\"event\":\"noticeWithdrawn\",\"worker\":3,\"step\":9,\"source\":\"azure-scheduled-event\","
          "\"cause\":\"maintenance\",\"certainty\":\"will\"",
          "worker 3: azure-scheduled-event has withdrawn its notice (maintenance)");
}

Test(operator_view, how_long_a_leave_takes_is_known_where_that_is_said)
{
    static const struct {
        const char *member;
        int64_t ms;
    } rows[] = {{"", 0},
                {",\"leaveSeconds\":null", 0},
                {",\"leaveSeconds\":6.5", 6500},
                {",\"leaveSeconds\":-1", 0},
                {",\"leaveSeconds\":\"x\"", 0},
                {",\"leaveSeconds\":1e300", 86400000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static struct coordinator_view view;
        struct error err = {0};
        char text[200];
        snprintf(text, sizeof text, "{\"workers\":[{\"worker\":3,\"attempt\":2%s}]}", rows[i].member);
        cr_assert_eq(coordinator_read(text, strlen(text), &view, &err), 0, "%s", err.text);
        cr_assert_eq(view.worker[0].leave_ms, rows[i].ms, "%s: %lld", rows[i].member,
                     (long long)view.worker[0].leave_ms);
    }
}

/* Its operator was upgraded as it was being stopped for good. */
Test(operator_view, the_former_name_of_the_condition_stopping_is_still_read)
{
    static struct job_status status;
    struct str out = str_init(OP_STATUS_TEXT_MAX);
    struct js *object = json("{\"conditions\":[{\"type\":\"Interrupted\",\"status\":\"True\","
                             "\"reason\":\"TooManyFailures\",\"message\":\"m\"}]}");
    status_read(object, &status);
    js_free(object);
    cr_assert(condition_is(&status, OP_STOPPING));
    status_write(&status, "gpt", &out);
    cr_assert(strstr(str_text(&out), "\"type\":\"Stopping\""), "%s", str_text(&out));
    cr_assert_not(strstr(str_text(&out), "Interrupted"), "%s", str_text(&out));
    str_clear(&out);
}
