/* What kind of machine a node is, what it has, and which share of it a pod takes. */
#include <criterion/criterion.h>
#include <string.h>

#include "cast.h"
#include "common/wire/json.h"
#include "operator/core/machine.h"

static struct js *json(const char *text)
{
    struct error err = {0};
    struct js *value = js_parse(text, strlen(text), "text", &err);
    cr_assert(value, "%s", err.text);
    return value;
}

Test(operator_machine, each_cloud_says_by_its_own_labels_what_a_node_is)
{
    static const struct {
        const char *id, *labels, *shown, *provider;
    } nodes[] = {
        {"aws:///eu-west-1a/i-0abc",
         "\"node.kubernetes.io/instance-type\":\"p4d\",\"topology.kubernetes.io/zone\":\"eu-west-1a\","
         "\"topology.kubernetes.io/region\":\"eu-west-1\",\"eks.amazonaws.com/capacityType\":\"SPOT\"",
         "p4d, spot, in eu-west-1a", "aws"},
        {"aws:///eu-west-1a/i-0abc",
         "\"node.kubernetes.io/instance-type\":\"p4d\",\"topology.kubernetes.io/region\":\"eu-west-1\","
         "\"eks.amazonaws.com/capacityType\":\"ON_DEMAND\"",
         "p4d, on demand, in eu-west-1", "aws"},
        {"kwok://n", "\"node.kubernetes.io/instance-type\":\"c-4x\",\"karpenter.sh/capacity-type\":\"spot\"",
         "c-4x, spot", "kwok"},
        {"gce://p/z/n", "\"node.kubernetes.io/instance-type\":\"a2\",\"cloud.google.com/gke-spot\":\"true\"",
         "a2, spot", "gce"},
        {"azure:///subscriptions/x",
         "\"node.kubernetes.io/instance-type\":\"ND96\",\"kubernetes.azure.com/scalesetpriority\":\"spot\"",
         "ND96, spot", "azure"},
        {"azure:///subscriptions/x", "\"node.kubernetes.io/instance-type\":\"ND96\"", "ND96, on demand",
         "azure"},
        {"bare", "\"a\":\"b\"", "a machine without a type, on demand", ""},
    };
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        struct str text = str_init(4096);
        char shown[MACHINE_TEXT_MAX];
        struct node_view node;
        str_addf(&text,
                 "{\"metadata\":{\"name\":\"n\",\"labels\":{%s}},\"spec\":{\"providerID\":\"%s\"},"
                 "\"status\":{\"allocatable\":{\"cpu\":\"7910m\",\"memory\":\"30Gi\",\"pods\":\"58\"}}}",
                 nodes[i].labels, nodes[i].id);
        struct js *object = json(str_text(&text));
        cr_assert_eq(node_project(object, &node, NULL), 0);
        machine_text(&node.machine, shown);
        cr_assert_str_eq(shown, nodes[i].shown);
        cr_assert_str_eq(node.machine.provider, nodes[i].provider);
        cr_assert_eq(node.allocatable.count, 2, "pods are no resource that is paid for");
        js_free(object);
        str_clear(&text);
    }
}

Test(operator_machine, a_quantity_is_read_as_kubernetes_writes_it)
{
    static const struct {
        const char *text;
        int64_t milli;
    } good[] = {{"0", 0},
                {"2", 2000},
                {"500m", 500},
                {"1.5", 1500},
                {"1Gi", 1073741824000},
                {"1.5Gi", 1610612736000},
                {"1e3", 1000000},
                {"1E", 9000000000000000000},
                {"12E2", 1200000},
                {"100k", 100000000},
                {"1u", 1},
                {"128974848", 128974848000}};
    static const char *const bad[] = {"",      "m",    "-1",  "1 Gi", "1GiB",   ".",
                                      "1.2.3", "0x10", "inf", "nan",  "1e99999"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t milli = -7;
        cr_assert(quantity_parse(good[i].text, &milli), "%s", good[i].text);
        cr_assert_eq(milli, good[i].milli, "%s: %lld", good[i].text, (long long)milli);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t milli;
        cr_assert_not(quantity_parse(bad[i], &milli), "%s", bad[i]);
    }
}

static int64_t share_of(const char *spec, const char *allocatable)
{
    struct resources asked, there;
    struct js *pod = json(spec), *node = json(allocatable);
    resources_of_pod(pod, &asked);
    resources_read(node, &there);
    js_free(pod);
    js_free(node);
    return resources_share(&asked, &there);
}

#define ASKS(what) "{\"resources\":{\"requests\":{" what "}}}"

Test(operator_machine, a_pod_takes_the_share_of_what_it_takes_most_of)
{
    static const char node[] =
        "{\"cpu\":\"8\",\"memory\":\"32Gi\",\"nvidia.com/gpu\":\"4\",\"ephemeral-storage\":\"100Gi\"}";
    static const struct {
        const char *spec, *why;
        int64_t share;
    } pods[] = {
        {"{\"containers\":[" ASKS("\"cpu\":\"2\",\"memory\":\"4Gi\"") "]}", "cpu", 250000},
        {"{\"containers\":[" ASKS("\"cpu\":\"2\",\"memory\":\"24Gi\"") "]}", "memory", 750000},
        {"{\"containers\":[" ASKS("\"cpu\":1,\"nvidia.com/gpu\":\"2\"") "]}", "two of four devices", 500000},
        {"{\"containers\":[" ASKS("\"cpu\":\"1\"") "," ASKS("\"cpu\":\"1\"") "]}", "both containers", 250000},
        {"{\"containers\":[" ASKS("\"cpu\":\"1\"") "],\"initContainers\":[" ASKS("\"cpu\":\"4\"") "]}",
         "the first of them", 500000},
        {"{\"containers\":[" ASKS("\"cpu\":\"1\"") "],\"initContainers\":[{\"restartPolicy\":\"Always\","
                                                   "\"resources\":{\"requests\":"
                                                   "{\"cpu\":\"1\"}}}," ASKS("\"cpu\":\"2\"") "]}",
         "an init container with what runs on beside it", 375000},
        {"{\"containers\":[" ASKS("\"cpu\":\"1\"") "],\"overhead\":{\"cpu\":\"1\"}}", "the pod's own",
         250000},
        {"{\"containers\":[" ASKS("\"cpu\":\"1\"") "],\"resources\":{\"requests\":{\"cpu\":\"6\"}}}",
         "of the pod as a whole", 750000},
        {"{\"containers\":[{\"resources\":{\"limits\":{\"cpu\":\"4\"}}}]}", "a limit alone", 500000},
        {"{\"containers\":[" ASKS("\"cpu\":\"80\"") "]}", "never more than the machine", RESOURCE_WHOLE},
        {"{\"containers\":[{}]}", "nothing asked: all of it", RESOURCE_WHOLE},
        {"{\"containers\":[" ASKS("\"ephemeral-storage\":\"8Gi\"") "]}", "disk alone says nothing",
         RESOURCE_WHOLE},
        {"{\"containers\":[" ASKS("\"cpu\":\"50m\"") "]}", "a coordinator", 6250},
    };
    for (size_t i = 0; i < sizeof pods / sizeof *pods; i++)
        cr_assert_eq(share_of(pods[i].spec, node), pods[i].share, "%s: %lld", pods[i].why,
                     (long long)share_of(pods[i].spec, node));
    cr_assert_eq(share_of(pods[0].spec, "{}"), RESOURCE_WHOLE, "a machine that says nothing of itself");
}

Test(operator_machine, a_pod_tells_since_when_it_has_its_node_and_when_all_of_it_had_ended)
{
    struct pod_view pod;
    struct error err = {0};
    struct js *object = json(
        CAST_POD_BEGINS
        "},\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"trainer\",\"resources\":{\"requests\":{"
        "\"cpu\":\"2\"}}}]},"
        "\"status\":{\"phase\":\"Failed\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\","
        "\"lastTransitionTime\":\"2026-03-01T00:00:05Z\"}],\"containerStatuses\":[{\"name\":\"trainer\","
        "\"state\":"
        "{\"terminated\":{\"exitCode\":1,\"finishedAt\":\"2026-03-01T00:01:00Z\"}}},{\"name\":\"proxy\","
        "\"state\":"
        "{\"terminated\":{\"exitCode\":0,\"finishedAt\":\"2026-03-01T00:02:00Z\"}}}]}}");
    cr_assert_eq(pod_project(object, &pod, &err), 0, "%s", err.text);
    js_free(object);
    cr_assert_eq(pod.finished_ms - pod.bound_ms, 115 * 1000);
    cr_assert_eq(pod.finished_ms - pod.ended_ms, 60 * 1000, "another container ran on");
    cr_assert_eq(pod.asked.count, 1);
}

#define FAILED_POD(conditions, statuses)                                                                     \
    CAST_POD_BEGINS                                                                                          \
    "},\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"trainer\"}]},"                               \
    "\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"conditions\":[{\"type\":"                     \
    "\"PodScheduled\",\"status\":\"True\",\"lastTransitionTime\":\"2026-03-01T00:00:00Z\"}" conditions       \
    "]" statuses "}}"
#define SAYS(type, status, minute)                                                                           \
    ",{\"type\":\"" type "\",\"status\":\"" status "\",\"lastTransitionTime\":\"2026-03-01T00:" minute       \
    ":00Z\"}"
#define ENDED(list, minute)                                                                                  \
    ",\"" list "\":[{\"name\":\"trainer\",\"state\":{\"terminated\":{\"exitCode\":0,\"finishedAt\":"         \
    "\"2026-03-01T00:" minute ":00Z\"}}}]"

Test(operator_machine, where_no_container_says_when_it_ended_the_pods_conditions_do)
{
    static const struct {
        const char *pod, *why;
        int minutes;
    } pods[] = {
        {FAILED_POD(SAYS("DisruptionTarget", "True", "20"), ""), "it was evicted", 20},
        {FAILED_POD(SAYS("Ready", "False", "21"), ""), "it is not ready", 21},
        {FAILED_POD(SAYS("Ready", "False", "01") SAYS("DisruptionTarget", "True", "22"), ""),
         "it never was ready, and ran until it was evicted", 22},
        {FAILED_POD(SAYS("Ready", "False", "30"), ENDED("containerStatuses", "10")), "a container says it",
         10},
        {FAILED_POD(SAYS("Ready", "False", "23"), ENDED("initContainerStatuses", "02")),
         "what prepared it says nothing of its end", 23},
        {FAILED_POD(SAYS("Ready", "True", "01") SAYS("DisruptionTarget", "False", "02"), ""),
         "conditions that say the opposite", 0},
    };
    for (size_t i = 0; i < sizeof pods / sizeof *pods; i++) {
        struct pod_view pod;
        struct error err = {0};
        struct js *object = json(pods[i].pod);
        cr_assert_eq(pod_project(object, &pod, &err), 0, "%s", err.text);
        js_free(object);
        int64_t span_ms = pod.finished_ms ? pod.finished_ms - pod.bound_ms : 0;
        cr_assert_eq(span_ms, (int64_t)pods[i].minutes * 60 * 1000, "%s: %lld ms", pods[i].why,
                     (long long)span_ms);
    }
}
