#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cast.h"
#include "common/wire/json.h"
#include "operator/core/objects.h"
#include "operator/core/pod.h"
#include "operator/core/read.h"

static const struct op_settings settings = {
    .worker_image = "", .operator_namespace = "ringmaster-system", .network_policies = true};

/* Indented, as the golden files are. */
static void compare(const char *name, const struct str *text)
{
    struct error err = {0};
    struct js *object = js_parse(str_text(text), text->length, name, &err);
    struct str pretty = str_init(1 << 20);
    cr_assert(object, "%s", err.text);
    js_print_pretty(object, &pretty);
    str_adds(&pretty, "\n");
    golden(name, str_text(&pretty));
    str_clear(&pretty);
    js_free(object);
}

static void worker_is(const char *name, const char *changes)
{
    struct cast *c = cast_open(changes);
    struct str text = str_init(1 << 20);
    struct error err = {0};
    cr_assert_eq(pod_worker(&c->job, &settings, NULL, 3, 2, &text, &err), 0, "%s", err.text);
    compare(name, &text);
    str_clear(&text);
    cast_free(c);
}

Test(operator_pod, a_worker_of_a_silent_template_is_restricted_and_knows_who_it_is)
{
    worker_is("worker.json", "{}");
}

Test(operator_pod, a_worker_that_prefers_spot_tolerates_and_prefers_the_pools_of_the_known_clouds)
{
    worker_is("worker-spot.json", "{\"spot\":{\"prefer\":true}}");
}

/* What follows --grace in its command. */
static int grace_told(const char *changes)
{
    struct cast *c = cast_open(changes);
    struct str text = str_init(1 << 20);
    struct error err = {0};
    static const char word[] = "\"--grace\",\"";
    cr_assert_eq(pod_worker(&c->job, &settings, NULL, 3, 2, &text, &err), 0, "%s", err.text);
    const char *at = strstr(str_text(&text), word);
    cr_assert(at, "%s", str_text(&text));
    int seconds = (int)strtol(at + strlen(word), NULL, 10);
    str_clear(&text);
    cast_free(c);
    return seconds;
}

Test(operator_pod, a_worker_believes_the_less_of_its_pods_grace_and_its_clouds_lead)
{
    cr_assert_eq(grace_told("{}"), 120);
    cr_assert_eq(grace_told("{\"spot\":{\"leadTime\":\"15s\"}}"), 15);
    cr_assert_eq(grace_told("{\"spot\":{\"leadTime\":\"1h\"}}"), 120);
    cr_assert_eq(grace_told("{\"spot\":{\"leadTime\":\"30s\"},\"workers\":{\"template\":{\"spec\":{"
                            "\"terminationGracePeriodSeconds\":25}}}}"),
                 25);
}

Test(operator_pod, what_the_template_says_stays)
{
    worker_is(
        "worker-spoken.json",
        "{\"workers\":{\"template\":{\"metadata\":{\"labels\":{\"team\":\"a\",\"ringmaster.dev/job\":\"x\"},"
        "\"annotations\":{\"note\":\"b\"}},\"spec\":{\"terminationGracePeriodSeconds\":30,"
        "\"securityContext\":{\"runAsUser\":7},\"tolerations\":[{\"key\":\"node.kubernetes.io/not-ready\","
        "\"operator\":\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":300}],\"containers\":["
        "{\"name\":\"trainer\",\"image\":\"x\",\"env\":[{\"name\":\"RINGMASTER_LOG\",\"value\":\"debug\"}],"
        "\"volumeMounts\":[{\"name\":\"big\",\"mountPath\":\"/tmp\"}]},"
        "{\"name\":\"sidecar\",\"image\":\"y\",\"command\":[\"z\"]}],\"initContainers\":[{\"name\":\"init\","
        "\"image\":\"y\"}],\"volumes\":[{\"name\":\"big\",\"emptyDir\":{}}]}}}}");
}

Test(operator_pod, a_template_that_is_privileged_gets_nothing_that_contradicts_it)
{
    struct cast *c = cast_open("{\"workers\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\","
                               "\"image\":\"i\",\"securityContext\":{\"privileged\":true}}]}}}}");
    struct str text = str_init(OP_POD_TEXT_MAX);
    struct error err = {0};
    cr_assert_eq(pod_worker(&c->job, &settings, NULL, 0, 1, &text, &err), 0, "%s", err.text);
    cr_assert(strstr(str_text(&text), "\"privileged\":true"));
    cr_assert_not(strstr(str_text(&text), "allowPrivilegeEscalation"), "%s", str_text(&text));
    str_clear(&text);
    cast_free(c);
}

Test(operator_pod, a_template_that_notes_a_spec_of_its_own_is_written_over)
{
    struct cast *c =
        cast_open("{\"coordinator\":{\"template\":{\"metadata\":{\"annotations\":{\"mine\":\"stays\","
                  "\"ringmaster.dev/spec\":\"theirs\"}}}}}");
    struct str text = str_init(OP_POD_TEXT_MAX);
    struct error err = {0};
    struct op_spec spec = {.text = "ours", .sha256 = "5bec"};
    cr_assert_eq(pod_coordinator(&c->job, &settings, &spec, 1, &text, &err), 0, "%s", err.text);
    cr_assert(strstr(str_text(&text), "\"ringmaster.dev/spec\":\"ours\""), "%s", str_text(&text));
    cr_assert(strstr(str_text(&text), "\"mine\":\"stays\""), "%s", str_text(&text));
    cr_assert_not(strstr(str_text(&text), "theirs"), "%s", str_text(&text));
    str_clear(&text);
    cast_free(c);
}

Test(operator_pod, the_coordinator_runs_the_workers_image_with_the_spec_of_its_generation)
{
    struct cast *c = cast_open("{}");
    struct str text = str_init(1 << 20);
    struct error err = {0};
    struct op_spec spec = {.text = "{\"metadata\":{\"name\":\"tiny\"}}", .sha256 = "5bec"};
    cr_assert_eq(pod_coordinator(&c->job, &settings, &spec, 4, &text, &err), 0, "%s", err.text);
    compare("coordinator.json", &text);
    str_clear(&text);
    cast_free(c);
}

static void refused(const char *container, const char *pod, const char *sentence)
{
    struct str changes = str_init(4096), text = str_init(1 << 20);
    struct error err = {0};
    str_addf(&changes,
             "{\"workers\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\",\"image\":\"x\"%s}]"
             "%s}}}}",
             container, pod);
    struct cast *c = cast_open(str_text(&changes));
    cr_assert_lt(pod_worker(&c->job, &settings, NULL, 0, 1, &text, &err), 0, "%s", str_text(&changes));
    cr_assert(strstr(err.text, sentence), "\"%s\" has not \"%s\"", err.text, sentence);
    cr_assert(strstr(err.text, "spec.workers.template"), "%s", err.text);
    str_clear(&changes);
    str_clear(&text);
    cast_free(c);
}

Test(operator_pod, what_only_the_operator_may_say_is_refused_by_name)
{
    refused(",\"command\":[\"sh\"]", "", "sets command, which the operator does; remove it");
    refused(",\"args\":[\"x\"]", "", "sets args");
    refused(",\"env\":[{\"name\":\"RINGMASTER_POD_IP\",\"value\":\"1\"}]", "", "sets RINGMASTER_POD_IP");
    refused("", ",\"restartPolicy\":\"Always\"", "restartPolicy must be Never");
    refused("", ",\"volumes\":[{\"name\":\"ringmaster-key\"}]", "volume ringmaster-key");
}

/* Of worker 0 of the job with these changes. */
static bool worker_has(const char *changes, const char *wanted)
{
    struct cast *c = cast_open(changes);
    struct str text = str_init(1 << 20);
    struct error err = {0};
    cr_assert_eq(pod_worker(&c->job, &settings, NULL, 0, 1, &text, &err), 0, "%s", err.text);
    bool has = strstr(str_text(&text), wanted) != NULL;
    str_clear(&text);
    cast_free(c);
    return has;
}

/* As templates have it that go to any tainted pool. The 30 s of a lost node are about another effect. */
Test(operator_pod, a_toleration_of_one_effect_takes_the_place_of_none_of_another)
{
    static const char lost[] = "{\"key\":\"node.kubernetes.io/unreachable\",\"operator\":\"Exists\","
                               "\"effect\":\"NoExecute\",\"tolerationSeconds\":30}";
    static const char of[] =
        "{\"workers\":{\"template\":{\"spec\":{\"tolerations\":[{\"operator\":\"Exists\"%s}]}}}}";
    static const struct {
        const char *effect;
        bool own;
    } cases[] = {{",\"effect\":\"NoSchedule\"", true}, {",\"effect\":\"NoExecute\"", false}, {"", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char changes[200];
        snprintf(changes, sizeof changes, of, cases[i].effect);
        cr_assert_eq(worker_has(changes, lost), cases[i].own, "%s", changes);
    }
}

Test(operator_pod, a_worker_asks_for_the_disk_that_its_cache_may_fill_and_for_none_where_it_fills_none)
{
    static const char request[] = "\"ephemeral-storage\":\"1024Mi\"", any[] = "ephemeral-storage\":";
    cr_assert(worker_has("{\"trainer\":{\"data\":{\"cacheBytes\":1073741824}}}", request));
    cr_assert_not(worker_has("{\"trainer\":{\"data\":{\"uri\":\"file:///books\"}}}", any));
    cr_assert_not(worker_has("{\"trainer\":{\"data\":{\"cache\":\"file:///big/disk\"}}}", any));
    cr_assert(
        worker_has("{\"workers\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\",\"image\":"
                   "\"i\",\"resources\":{\"limits\":{\"ephemeral-storage\":\"3Gi\"}}}]}}}}",
                   "{\"limits\":{\"ephemeral-storage\":\"3Gi\"}}"));
}

Test(operator_pod, a_template_without_an_image_takes_the_operators_or_is_refused)
{
    struct cast *c =
        cast_open("{\"workers\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\"}]}}}}");
    struct op_settings own = settings;
    struct str text = str_init(1 << 20);
    struct error err = {0};
    cr_assert_lt(pod_worker(&c->job, &own, NULL, 0, 1, &text, &err), 0);
    cr_assert(strstr(err.text, "no image"), "%s", err.text);
    own.worker_image = "registry/ringmaster:1";
    cr_assert_eq(pod_worker(&c->job, &own, NULL, 0, 1, &text, &err), 0, "%s", err.text);
    cr_assert(strstr(str_text(&text), "\"image\":\"registry/ringmaster:1\""));
    str_clear(&text);
    cast_free(c);
}

Test(operator_pod, a_pod_as_it_was_made_is_found_again_by_its_labels_and_owner)
{
    struct cast *c = cast_open("{}");
    struct pod_view pod;
    struct str text = str_init(1 << 20);
    struct error err = {0};
    pod_worker(&c->job, &settings, NULL, 3, 2, &text, &err);
    struct js *object = js_parse(str_text(&text), text.length, "pod", &err);
    js_set_string((struct js *)(uintptr_t)js_get(object, "metadata"), "uid", "u");
    cr_assert_eq(pod_project(object, &pod, &err), 0, "%s", err.text);
    cr_assert_eq(pod.role, OP_WORKER);
    cr_assert_eq(pod.index, 3);
    cr_assert_eq(pod.attempt, 2);
    cr_assert_str_eq(pod.owner_uid, c->job.uid);
    js_free(object);
    str_clear(&text);
    cast_free(c);
}

Test(operator_pod, the_objects_around_the_pods_are_the_jobs_own)
{
    struct cast *c = cast_open("{}");
    struct str text = str_init(1 << 20);
    struct error err = {0};
    static void (*const policies[])(const struct job_view *, const struct op_settings *,
                                    struct str *) = {object_policy_worker, object_policy_coordinator};
    static const char *const names[] = {"policy-workers.json", "policy-coordinator.json"};
    object_service(&c->job, 2, &text);
    compare("service.json", &text);
    str_reset(&text);
    object_budget(&c->job, &text);
    compare("budget.json", &text);
    str_reset(&text);
    object_key(&c->job, "the-key", &text);
    compare("key.json", &text);
    str_reset(&text);
    cr_assert_eq(job_effective_spec(&c->job, &text, &err), 0, "%s", err.text);
    compare("effective-spec.json", &text);
    for (int i = 0; i < 2; i++) {
        str_reset(&text);
        policies[i](&c->job, &settings, &text);
        compare(names[i], &text);
    }
    str_clear(&text);
    cast_free(c);
}

/* A part of the worker's pod and of the coordinator's, with these settings and changes to the job. */
static void both_have(const struct op_settings *with, const char *changes, const char *path,
                      const char *wanted)
{
    struct cast *c = cast_open(changes);
    struct op_spec spec = {.text = "{\"metadata\":{\"name\":\"tiny\"}}", .sha256 = "5bec"};
    for (int i = 0; i < 2; i++) {
        struct str text = str_init(OP_POD_TEXT_MAX), part = text;
        struct error err = {0};
        int made = i ? pod_coordinator(&c->job, with, &spec, 1, &text, &err)
                     : pod_worker(&c->job, with, NULL, 0, 1, &text, &err);
        cr_assert_eq(made, 0, "%s", err.text);
        struct js *pod = js_parse(str_text(&text), text.length, "pod", NULL);
        js_print(read_at(pod, path), &part);
        cr_assert(strstr(str_text(&part), wanted), "%s has not %s", str_text(&part), wanted);
        js_free(pod);
        str_clear(&part);
        str_clear(&text);
    }
    cast_free(c);
}

/* The environment of a worker's container, as text. */
static void environment(const struct op_settings *with, const char *changes, struct str *out)
{
    struct cast *c = cast_open(changes);
    struct str text = str_init(OP_POD_TEXT_MAX);
    struct error err = {0};
    cr_assert_eq(pod_worker(&c->job, with, NULL, 0, 1, &text, &err), 0, "%s", err.text);
    struct js *pod = js_parse(str_text(&text), text.length, "pod", NULL);
    js_print(js_get(js_at(read_at(pod, "spec.containers"), 0), "env"), out);
    js_free(pod);
    str_clear(&text);
    cast_free(c);
}

Test(operator_pod, a_worker_is_told_of_its_machines_agent_only_where_there_is_one)
{
    struct str env = str_init(65536);
    struct op_settings with = settings;
    environment(&with, "{}", &env);
    cr_assert_null(strstr(str_text(&env), "HOST_IP"));
    str_reset(&env);
    with.node_port = 7999;
    environment(&with, "{}", &env);
    cr_assert(strstr(str_text(&env), "{\"name\":\"RINGMASTER_POD_HOST_IP\",\"valueFrom\":{\"fieldRef\":{"
                                     "\"fieldPath\":\"status.hostIP\"}}},{\"name\":"
                                     "\"RINGMASTER_POD_NODE_PORT\",\"value\":\"7999\"}"),
              "%s", str_text(&env));
    str_clear(&env);
}

Test(operator_pod, a_worker_that_shares_its_machines_network_asks_the_metadata_itself_where_no_agent_does)
{
#define SHARING(env)                                                                                         \
    "{\"workers\":{\"template\":{\"spec\":{\"hostNetwork\":true,\"containers\":[{\"name\":\"trainer\","      \
    "\"image\":\"i\"" env "}]}}}}"
    static const char asks[] = "{\"name\":\"RINGMASTER_METADATA\",\"value\":\"http://169.254.169.254\"}";
    struct str env = str_init(65536);
    struct op_settings with = settings;
    environment(&with, "{}", &env);
    cr_assert_null(strstr(str_text(&env), "RINGMASTER_METADATA"), "%s", str_text(&env));
    str_reset(&env);
    environment(&with, SHARING(""), &env);
    cr_assert(strstr(str_text(&env), asks), "%s", str_text(&env));
    str_reset(&env);
    environment(&with, SHARING(",\"env\":[{\"name\":\"RINGMASTER_METADATA\",\"value\":\"\"}]"), &env);
    cr_assert_null(strstr(str_text(&env), asks), "the template says that nobody is asked: %s",
                   str_text(&env));
    str_reset(&env);
    with.node_port = 7999;
    environment(&with, SHARING(""), &env);
    cr_assert_null(strstr(str_text(&env), "RINGMASTER_METADATA"), "its machine has an agent: %s",
                   str_text(&env));
    str_clear(&env);
}

Test(operator_pod, where_the_namespace_says_who_a_pod_is_the_operator_leaves_that_to_it_and_nothing_else)
{
    struct op_settings leave = settings;
    leave.leave_uid = true;
    both_have(&leave, "{}", "spec.securityContext",
              "{\"runAsNonRoot\":true,\"seccompProfile\":{\"type\":\"RuntimeDefault\"}}");
    both_have(&leave, "{}", "spec.containers",
              "\"securityContext\":{\"allowPrivilegeEscalation\":false,\"capabilities\":{\"drop\":[\"ALL\"]},"
              "\"readOnlyRootFilesystem\":true}");
}

Test(operator_pod, who_names_a_user_in_the_template_has_it_also_where_the_namespace_would_say)
{
    struct op_settings leave = settings;
    leave.leave_uid = true;
    both_have(&leave, "{\"workers\":{\"template\":{\"spec\":{\"securityContext\":{\"runAsUser\":7}}}}}",
              "spec.securityContext",
              "{\"runAsUser\":7,\"runAsNonRoot\":true,\"seccompProfile\":{\"type\":\"RuntimeDefault\"}}");
}

Test(operator_pod, whoever_a_pod_is_it_can_read_the_jobs_key_and_the_stores)
{
    struct op_settings leave = settings;
    static const char *const secrets[] = {"tiny-key-k5lhn\",\"defaultMode\":", "s3\",\"defaultMode\":"};
    for (int i = 0; i < 4; i++) {
        char wanted[128];
        leave.leave_uid = i >= 2;
        snprintf(wanted, sizeof wanted, "\"secretName\":\"%s%d", secrets[i % 2], i >= 2 ? 0444 : 0440);
        both_have(&leave, "{}", "spec.volumes", wanted);
    }
}

typedef void policy_fn(const struct job_view *, const struct op_settings *, struct str *);

static struct str rules_of(policy_fn *policy, const struct op_settings *with)
{
    struct cast *c = cast_open("{}");
    struct str text = str_init(1 << 16), rules = text;
    policy(&c->job, with, &text);
    struct js *object = js_parse(str_text(&text), text.length, "policy", NULL);
    js_print(read_at(object, "spec.ingress"), &rules);
    js_free(object);
    str_clear(&text);
    cast_free(c);
    return rules;
}

/* What stood there without metrics stands there still, and this behind it. */
static void adds(policy_fn *policy, const struct op_settings *with, const char *rule)
{
    struct str closed = rules_of(policy, &settings), open = rules_of(policy, with);
    size_t kept = closed.length - 1; /* but for its bracket */
    cr_assert(!strncmp(str_text(&open), str_text(&closed), kept), "%s", str_text(&open));
    cr_assert_str_eq(str_text(&open) + kept, rule);
    str_clear(&closed);
    str_clear(&open);
}

Test(operator_pod, who_opens_the_metrics_opens_nothing_else)
{
    struct op_settings open = settings;
    open.metrics_open = true;
    adds(object_policy_worker, &open, ",{\"ports\":[{\"protocol\":\"TCP\",\"port\":7071}]}]");
    adds(object_policy_coordinator, &open, ",{\"ports\":[{\"protocol\":\"TCP\",\"port\":7072}]}]");
}

Test(operator_pod, metrics_may_be_opened_to_the_namespaces_with_certain_labels_alone)
{
    struct op_settings open = settings;
    struct op_labels from;
    cr_assert_eq(labels_read(&from, "team=ops,kubernetes.io/metadata.name=monitoring", NULL), 0);
    open.metrics_open = true;
    open.metrics_from = &from;
    static const char selector[] = "\"from\":[{\"namespaceSelector\":{\"matchLabels\":{\"team\":\"ops\","
                                   "\"kubernetes.io/metadata.name\":\"monitoring\"}}}]}]";
    static const int ports[] = {7071, 7072};
    static policy_fn *const policies[] = {object_policy_worker, object_policy_coordinator};
    for (int i = 0; i < 2; i++) {
        struct str rule = str_init(1024);
        str_addf(&rule, ",{\"ports\":[{\"protocol\":\"TCP\",\"port\":%d}],%s", ports[i], selector);
        adds(policies[i], &open, str_text(&rule));
        str_clear(&rule);
    }
}

Test(operator_pod, names_fit_a_dns_label_and_differ_by_uid_index_and_attempt)
{
    char a[OP_NAME_MAX], b[OP_NAME_MAX];
    const char *longest = "a23456789012345678901234567890123456789b"; /* 40 characters */
    name_coordinator(longest, "uid", INT32_MAX, a);
    cr_assert_leq(strlen(a), 63);
    name_worker(longest, "uid", 63, INT32_MAX, a);
    cr_assert_leq(strlen(a), 63);
    name_worker("j", "uid", 1, 1, a);
    name_worker("j", "uid", 1, 2, b);
    cr_assert_str_neq(a, b);
    name_worker("j", "other", 1, 1, b);
    cr_assert_str_neq(a, b);
    name_worker("j", "uid", 1, 1, b);
    cr_assert_str_eq(a, b);
}
