#include <criterion/criterion.h>
#include <string.h>

#include "cast.h"
#include "common/wire/json.h"
#include "operator/core/pod.h"
#include "operator/core/read.h"

static void is_text(const char *text, const char *wanted)
{
    cr_assert(text && !strcmp(text, wanted), "%s and not %s", text ? text : "nothing", wanted);
}

/* The coordinator's pod of a job whose spec says `template` for the workers and `own` for the coordinator
 * ("" for nothing); the caller frees it. */
static struct js *coordinator(const char *template, const char *own)
{
    static const struct op_settings settings = {.worker_image = "",
                                                .operator_namespace = "ringmaster-system"};
    struct str changes = str_init(1 << 16), text = str_init(OP_POD_TEXT_MAX);
    struct error err = {0};
    str_addf(&changes, "{\"workers\":{\"template\":{\"spec\":%s}}%s%s%s}", template,
             *own ? ",\"coordinator\":{\"template\":{\"spec\":" : "", own, *own ? "}}" : "");
    struct cast *c = cast_open(str_text(&changes));
    cr_assert_eq(pod_coordinator(&c->job, &settings, &(struct op_spec){0}, 1, &text, &err), 0, "%s",
                 err.text);
    struct js *pod = js_parse(str_text(&text), text.length, "pod", &err);
    cr_assert(pod, "%s", err.text);
    str_clear(&changes);
    str_clear(&text);
    cast_free(c);
    return pod;
}

static const struct js *spec_of(const struct js *pod)
{
    return js_get(pod, "spec");
}

static const struct js *container_of(const struct js *pod)
{
    const struct js *list = js_get(spec_of(pod), "containers");
    for (size_t i = 0; i < js_size(list); i++)
        if (!strcmp(js_as_string(js_get(js_at(list, i), "name")), "coordinator"))
            return js_at(list, i);
    return NULL;
}

static const struct js *named(const struct js *list, const char *key, const char *name)
{
    for (size_t i = 0; i < js_size(list); i++) {
        const char *text = js_as_string(js_get(js_at(list, i), key));
        if (text && !strcmp(text, name))
            return js_at(list, i);
    }
    return NULL;
}

static const char *variable(const struct js *pod, const char *name)
{
    const struct js *entry = named(js_get(container_of(pod), "env"), "name", name);
    return entry ? js_as_string(js_get(entry, "value")) : NULL;
}

static bool mounts(const struct js *pod, const char *path, const char *volume)
{
    const struct js *mount = named(js_get(container_of(pod), "volumeMounts"), "mountPath", path);
    return mount && !strcmp(js_as_string(js_get(mount, "name")), volume) &&
           named(js_get(spec_of(pod), "volumes"), "name", volume);
}

Test(operator_inherit, a_coordinator_is_at_google_who_the_workers_are)
{
    struct js *pod = coordinator(
        "{\"serviceAccountName\":\"trainer\",\"containers\":[{\"name\":\"trainer\",\"image\":\"x\",\"env\":["
        "{\"name\":\"GCE_METADATA_HOST\",\"value\":\"metadata.example:8080\"},"
        "{\"name\":\"RINGMASTER_GOOGLE_ENDPOINT\",\"value\":\"https://store.example\"},"
        "{\"name\":\"GCE_OTHER\",\"value\":\"x\"}]}]}",
        "");
    is_text(js_as_string(js_get(spec_of(pod), "serviceAccountName")), "trainer");
    is_text(variable(pod, "GCE_METADATA_HOST"), "metadata.example:8080");
    is_text(variable(pod, "RINGMASTER_GOOGLE_ENDPOINT"), "https://store.example");
    cr_assert(!variable(pod, "GCE_OTHER"));
    js_free(pod);
}

Test(operator_inherit, a_coordinator_asks_the_store_as_the_workers_do)
{
    struct js *pod = coordinator(
        "{\"serviceAccountName\":\"trainer\",\"containers\":[{\"name\":\"trainer\",\"image\":\"x\",\"env\":["
        "{\"name\":\"AWS_ROLE_ARN\",\"value\":\"arn:aws:iam::1:role/r\"},"
        "{\"name\":\"https_proxy\",\"value\":\"http://proxy:3128\"},"
        "{\"name\":\"NO_PROXY\",\"value\":\".svc\"},"
        "{\"name\":\"OMP_NUM_THREADS\",\"value\":\"3\"}],"
        "\"envFrom\":[{\"secretRef\":{\"name\":\"keys\"}}]}]}",
        "");
    is_text(js_as_string(js_get(spec_of(pod), "serviceAccountName")), "trainer");
    is_text(variable(pod, "AWS_ROLE_ARN"), "arn:aws:iam::1:role/r");
    is_text(variable(pod, "https_proxy"), "http://proxy:3128");
    is_text(variable(pod, "NO_PROXY"), ".svc");
    cr_assert_null(variable(pod, "OMP_NUM_THREADS"), "what is the training's own stays with the workers");
    const struct js *sources = js_get(container_of(pod), "envFrom");
    is_text(js_as_string(read_at(js_at(sources, 0), "secretRef.name")), "keys");
    js_free(pod);
}

Test(operator_inherit, a_variable_that_an_inherited_one_refers_to_comes_along)
{
    struct js *pod = coordinator(
        "{\"containers\":[{\"name\":\"trainer\",\"image\":\"x\",\"env\":["
        "{\"name\":\"HOST\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"status.hostIP\"}}},"
        "{\"name\":\"BASE\",\"value\":\"http://$(HOST)\"},{\"name\":\"OTHER\",\"value\":\"$(HOST)\"},"
        "{\"name\":\"AWS_EC2_METADATA_SERVICE_ENDPOINT\",\"value\":\"$(BASE):1338\"}]}]}",
        "");
    cr_assert(named(js_get(container_of(pod), "env"), "name", "HOST"));
    is_text(variable(pod, "BASE"), "http://$(HOST)");
    cr_assert_null(variable(pod, "OTHER"));
    js_free(pod);
}

Test(operator_inherit, the_files_that_the_store_needs_are_mounted_and_no_others)
{
    struct js *pod =
        coordinator("{\"containers\":[{\"name\":\"trainer\",\"image\":\"x\",\"env\":["
                    "{\"name\":\"AWS_CA_BUNDLE\",\"value\":\"/etc/house/ca.crt\"},"
                    "{\"name\":\"AWS_WEB_IDENTITY_TOKEN_FILE\",\"value\":\"/var/run/secrets/sts/token\"},"
                    "{\"name\":\"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE\",\"value\":\"/filled/token\"}],"
                    "\"volumeMounts\":[{\"name\":\"ca\",\"mountPath\":\"/etc/house\",\"readOnly\":true},"
                    "{\"name\":\"token\",\"mountPath\":\"/var/run/secrets/sts/\"},"
                    "{\"name\":\"roots\",\"mountPath\":\"/etc/ssl/certs\",\"subPath\":\"all\"},"
                    "{\"name\":\"filled\",\"mountPath\":\"/filled\"},"
                    "{\"name\":\"corpus\",\"mountPath\":\"/data\"}]}],"
                    "\"volumes\":[{\"name\":\"ca\",\"configMap\":{\"name\":\"ca\"}},"
                    "{\"name\":\"token\",\"projected\":{\"sources\":[]}},{\"name\":\"roots\",\"configMap\":{"
                    "\"name\":\"r\"}},"
                    "{\"name\":\"filled\",\"emptyDir\":{}},"
                    "{\"name\":\"corpus\",\"persistentVolumeClaim\":{\"claimName\":\"c\"}}]}",
                    "");
    cr_assert(mounts(pod, "/etc/house", "ca"));
    cr_assert(mounts(pod, "/var/run/secrets/sts/", "token"));
    cr_assert(mounts(pod, "/etc/ssl/certs", "roots"));
    cr_assert_not(mounts(pod, "/filled", "filled"), "nobody fills it there");
    cr_assert_null(named(js_get(spec_of(pod), "volumes"), "name", "corpus"));
    js_free(pod);
}

Test(operator_inherit, where_all_nodes_are_tainted_the_coordinator_finds_one_as_the_workers_do)
{
    struct js *pod = coordinator(
        "{\"nodeSelector\":{\"pool\":\"training\"},\"tolerations\":[{\"key\":\"team\",\"operator\":\"Equal\","
        "\"value\":\"ml\",\"effect\":\"NoSchedule\"},{\"key\":\"nvidia.com/gpu\",\"operator\":\"Exists\"}],"
        "\"securityContext\":{\"runAsUser\":1000,\"fsGroup\":2000},"
        "\"containers\":[{\"name\":\"trainer\",\"image\":\"x\",\"resources\":{\"limits\":{"
        "\"nvidia.com/gpu\":\"8\",\"memory\":\"64Gi\"}}}]}",
        "");
    cr_assert(named(js_get(spec_of(pod), "tolerations"), "key", "team"));
    cr_assert(named(js_get(spec_of(pod), "tolerations"), "key", "node.kubernetes.io/not-ready"));
    is_text(js_as_string(read_at(spec_of(pod), "nodeSelector.pool")), "training");
    int64_t user = 0, group = 0;
    read_int(spec_of(pod), "securityContext.runAsUser", 0, 1 << 20, &user);
    read_int(spec_of(pod), "securityContext.runAsGroup", 0, 1 << 20, &group);
    cr_assert_eq(user, 1000);
    cr_assert_eq(group, 65532, "what nobody says has the usual value");
    cr_assert_null(js_get(read_at(container_of(pod), "resources.limits"), "nvidia.com/gpu"));
    is_text(js_as_string(read_at(container_of(pod), "resources.limits.memory")), "256Mi");
    js_free(pod);
}

Test(operator_inherit, what_the_coordinators_template_says_wins)
{
    struct js *pod = coordinator(
        "{\"serviceAccountName\":\"trainer\",\"nodeSelector\":{\"pool\":\"gpu\"},"
        "\"tolerations\":[{\"key\":\"a\",\"operator\":\"Exists\"}],"
        "\"containers\":[{\"name\":\"trainer\",\"image\":\"x\",\"env\":["
        "{\"name\":\"AWS_REGION\",\"value\":\"eu-west-1\"},{\"name\":\"AWS_CA_BUNDLE\",\"value\":\"/ca/c\"}],"
        "\"volumeMounts\":[{\"name\":\"ca\",\"mountPath\":\"/ca\"}]}],"
        "\"volumes\":[{\"name\":\"ca\",\"configMap\":{\"name\":\"theirs\"}}]}",
        "{\"serviceAccount\":\"keeper\",\"nodeSelector\":{},\"tolerations\":[],"
        "\"containers\":[{\"name\":\"coordinator\",\"env\":[{\"name\":\"AWS_REGION\",\"value\":\"us-east-2\"}"
        "],"
        "\"volumeMounts\":[{\"name\":\"mine\",\"mountPath\":\"/ca\"}]}],"
        "\"volumes\":[{\"name\":\"mine\",\"secret\":{\"secretName\":\"mine\"}}]}");
    cr_assert_null(js_get(spec_of(pod), "serviceAccountName"));
    cr_assert_eq(js_size(js_get(spec_of(pod), "nodeSelector")), 0);
    cr_assert_null(named(js_get(spec_of(pod), "tolerations"), "key", "a"));
    is_text(variable(pod, "AWS_REGION"), "us-east-2");
    is_text(variable(pod, "AWS_CA_BUNDLE"), "/ca/c");
    cr_assert(mounts(pod, "/ca", "mine"));
    cr_assert_null(named(js_get(spec_of(pod), "volumes"), "name", "ca"));
    js_free(pod);
}
