/* Puts single parts into a pod's spec where its template is silent: tolerations, affinity, security
 * contexts, volumes. */
#include "operator/core/pod_parts.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/notice/metadata.h"
#include "common/wire/json.h"
#include "operator/core/machine.h"
#include "operator/core/read.h"
#include "operator/core/status.h"

enum { KEY_MODE = 0440, KEY_MODE_ANY_USER = 0444, POOL_WEIGHT = 50, MISFIT_WEIGHT = 100, NODE_LOSS_S = 30 };

static struct js *object_at(struct js *object, const char *key)
{
    if (!js_get(object, key))
        js_set(object, key, js_object());
    return part_mutable(js_get(object, key));
}

static struct js *array_at(struct js *object, const char *key)
{
    if (!js_get(object, key))
        js_set(object, key, js_array());
    return part_mutable(js_get(object, key));
}

static void default_int(struct js *object, const char *key, int value)
{
    if (!js_get(object, key))
        js_set_int(object, key, value);
}

static void default_text(struct js *object, const char *key, const char *value)
{
    if (!js_get(object, key))
        js_set_string(object, key, value);
}

void part_default_bool(struct js *object, const char *key, bool value)
{
    if (!js_get(object, key))
        js_set_bool(object, key, value);
}

/* A context that names root itself. */
static bool is_root(const struct js *context)
{
    int64_t user = -1;
    return js_as_int(js_get(context, "runAsUser"), &user) && user == 0;
}

static void secure_container(struct js *container)
{
    struct js *context = object_at(container, "securityContext"), *capabilities;
    bool privileged = false;
    if (is_root(context)) /* what the pod says by default would keep it from starting */
        part_default_bool(context, "runAsNonRoot", false);
    read_flag(context, "privileged", &privileged);
    if (!privileged) /* the API server refuses the two together */
        part_default_bool(context, "allowPrivilegeEscalation", false);
    if (js_get(context, "capabilities"))
        return;
    capabilities = object_at(context, "capabilities");
    js_push_string(array_at(capabilities, "drop"), "ALL");
}

static void secure_all(struct js *pod_spec, const char *key)
{
    const struct js *list = js_get(pod_spec, key);
    for (size_t i = 0; i < js_size(list); i++)
        secure_container(part_mutable(js_at(list, i)));
}

static void secure_user(struct js *context, bool leave_uid)
{
    bool root = is_root(context);
    if (!root)
        part_default_bool(context, "runAsNonRoot", true);
    if (leave_uid)
        return;
    default_int(context, "runAsUser", OP_POD_USER);
    if (!root)
        default_int(context, "runAsGroup", OP_POD_USER);
    default_int(context, "fsGroup", OP_POD_USER);
}

void part_security(struct js *pod_spec, bool leave_uid)
{
    struct js *context = object_at(pod_spec, "securityContext");
    secure_user(context, leave_uid);
    default_text(object_at(context, "seccompProfile"), "type", "RuntimeDefault");
    secure_all(pod_spec, "containers");
    secure_all(pod_spec, "initContainers");
}

void part_read_only_root(struct js *container)
{
    part_default_bool(object_at(container, "securityContext"), "readOnlyRootFilesystem", true);
}

/* A toleration without a key is for all taints, one without an effect for each. */
static bool tolerates(const struct js *list, const char *key, const char *effect)
{
    for (size_t i = 0; i < js_size(list); i++) {
        const char *own = js_as_string(js_get(js_at(list, i), "key"));
        const char *against = js_as_string(js_get(js_at(list, i), "effect"));
        if ((!own || !*own || !strcmp(own, key)) && (!against || !*against || !strcmp(against, effect)))
            return true;
    }
    return false;
}

static void tolerate(struct js *list, const char *key, const char *value, const char *effect, int seconds)
{
    RM_ASSERT(*key && seconds >= 0, "the taint '%s' is tolerated for %d s", key, seconds);
    if (tolerates(list, key, effect))
        return;
    struct js *o = js_object();
    js_set_string(o, "key", key);
    js_set_string(o, "operator", value ? "Equal" : "Exists");
    if (value)
        js_set_string(o, "value", value);
    js_set_string(o, "effect", effect);
    if (seconds)
        js_set_int(o, "tolerationSeconds", seconds);
    js_push(list, o);
}

void part_tolerations(struct js *pod_spec)
{
    struct js *list = array_at(pod_spec, "tolerations");
    tolerate(list, "node.kubernetes.io/not-ready", NULL, "NoExecute", NODE_LOSS_S);
    tolerate(list, "node.kubernetes.io/unreachable", NULL, "NoExecute", NODE_LOSS_S);
}

static bool is_mounted(const struct js *container, const char *path)
{
    const struct js *mounts = js_get(container, "volumeMounts");
    for (size_t i = 0; i < js_size(mounts); i++) {
        const char *at = js_as_string(js_get(js_at(mounts, i), "mountPath"));
        if (at && !strcmp(at, path))
            return true;
    }
    return false;
}

static struct js *add_volume(struct js *pod_spec, const char *volume)
{
    RM_ASSERT(!part_has_volume(pod_spec, volume), "a pod has two volumes %s", volume);
    struct js *made = js_object();
    js_set_string(made, "name", volume);
    js_push(array_at(pod_spec, "volumes"), made);
    return made;
}

static struct js *mount(struct js *pod_spec, struct js *container, const char *volume, const char *path,
                        bool read_only)
{
    RM_ASSERT(*path == '/', "volume %s is mounted at '%s'", volume, path);
    struct js *at = js_object();
    js_set_string(at, "name", volume);
    js_set_string(at, "mountPath", path);
    if (read_only)
        js_set_bool(at, "readOnly", true);
    js_push(array_at(container, "volumeMounts"), at);
    return add_volume(pod_spec, volume);
}

void part_volume(struct js *pod_spec, const char *volume, const char *limit)
{
    js_set_string(object_at(add_volume(pod_spec, volume), "emptyDir"), "sizeLimit", limit);
}

void part_scratch(struct js *pod_spec, struct js *container, const char *volume, const char *path,
                  const char *limit, const char *medium)
{
    if (is_mounted(container, path))
        return;
    struct js *empty = object_at(mount(pod_spec, container, volume, path, false), "emptyDir");
    if (medium)
        js_set_string(empty, "medium", medium);
    if (limit)
        js_set_string(empty, "sizeLimit", limit);
}

void part_secret(struct js *pod_spec, struct js *container, const struct part_secret *part)
{
    struct js *volume = mount(pod_spec, container, part->volume, part->path, true);
    struct js *source = object_at(volume, "secret");
    js_set_string(source, "secretName", part->secret);
    js_set_int(source, "defaultMode", part->any_user ? KEY_MODE_ANY_USER : KEY_MODE);
    if (part->optional)
        js_set_bool(source, "optional", true);
}

void part_note(struct js *pod_spec, struct js *container, const char *volume, const char *annotation,
               const char *path, const char *file)
{
    char field[128];
    struct js *item = js_object(), *made = mount(pod_spec, container, volume, path, true);
    snprintf(field, sizeof field, "metadata.annotations['%s']", annotation);
    js_set_string(item, "path", file);
    js_set_string(object_at(item, "fieldRef"), "fieldPath", field);
    js_push(array_at(object_at(made, "downwardAPI"), "items"), item);
}

void part_variable(struct js *container, const char *name, const char *value)
{
    RM_ASSERT(*name && !strchr(name, '='), "a variable '%s'", name);
    struct js *o = js_object();
    js_set_string(o, "name", name);
    js_set_string(o, "value", value);
    js_push(array_at(container, "env"), o);
}

static void from_field(struct js *env, const char *name, const char *path)
{
    RM_ASSERT(*name && *path, "a variable '%s' is field '%s'", name, path);
    struct js *o = js_object();
    js_set_string(o, "name", name);
    js_set_string(object_at(object_at(o, "valueFrom"), "fieldRef"), "fieldPath", path);
    js_push(env, o);
}

void part_pod_environment(struct js *container)
{
    struct js *env = array_at(container, "env");
    from_field(env, "RINGMASTER_POD_IP", "status.podIP");
    from_field(env, "RINGMASTER_POD_NAME", "metadata.name");
    from_field(env, "RINGMASTER_NODE_NAME", "spec.nodeName");
}

void part_node_agent(struct js *container, int port)
{
    RM_ASSERT(port > 0 && port <= 65535, "a node's agent is at port %d", port);
    char text[16];
    snprintf(text, sizeof text, "%d", port);
    from_field(array_at(container, "env"), "RINGMASTER_POD_HOST_IP", "status.hostIP");
    part_variable(container, "RINGMASTER_POD_NODE_PORT", text);
}

void part_metadata(struct js *container)
{
    part_variable(container, "RINGMASTER_METADATA", METADATA_BASE);
}

void part_port(struct js *container, const char *name, int port)
{
    RM_ASSERT(port > 0 && port <= 65535, "port %s is %d", name, port);
    struct js *o = js_object();
    js_set_string(o, "name", name);
    js_set_int(o, "containerPort", port);
    js_set_string(o, "protocol", "TCP");
    js_push(array_at(container, "ports"), o);
}

void part_small_resources(struct js *container)
{
    if (js_get(container, "resources"))
        return;
    struct js *resources = object_at(container, "resources"), *requests = object_at(resources, "requests");
    js_set_string(requests, "cpu", "50m");
    js_set_string(requests, "memory", "64Mi");
    js_set_string(object_at(resources, "limits"), "memory", "256Mi");
}

void part_disk(struct js *container, int64_t mebibytes)
{
    RM_ASSERT(mebibytes > 0, "%lld MiB of disk are asked for", (long long)mebibytes);
    static const char disk[] = "ephemeral-storage";
    char text[32];
    struct js *resources = object_at(container, "resources");
    if (js_get(js_get(resources, "requests"), disk) || js_get(js_get(resources, "limits"), disk))
        return;
    snprintf(text, sizeof text, "%lldMi", (long long)mebibytes);
    js_set_string(object_at(resources, "requests"), disk, text);
}

bool part_has_volume(const struct js *pod_spec, const char *volume)
{
    const struct js *list = js_get(pod_spec, "volumes");
    for (size_t i = 0; i < js_size(list); i++) {
        const char *name = js_as_string(js_get(js_at(list, i), "name"));
        if (name && !strcmp(name, volume))
            return true;
    }
    return false;
}

/* A new term, still without expressions. */
static struct js *preferred(struct js *pod_spec, int weight)
{
    RM_ASSERT(weight >= 1 && weight <= 100, "a weight of %d", weight);
    struct js *affinity = object_at(object_at(pod_spec, "affinity"), "nodeAffinity");
    struct js *list = array_at(affinity, "preferredDuringSchedulingIgnoredDuringExecution");
    struct js *term = js_object();
    js_set_int(term, "weight", weight);
    js_push(list, term);
    return object_at(term, "preference");
}

/* Returns the expression, for its values. */
static struct js *prefer(struct js *pod_spec, int weight, const char *label, const char *operator)
{
    struct js *term = preferred(pod_spec, weight), *expression = js_object();
    js_set_string(expression, "key", label);
    js_set_string(expression, "operator", operator);
    js_push(array_at(term, "matchExpressions"), expression);
    return expression;
}

static void prefer_pool(struct js *pod_spec, const char *label, const char *value)
{
    struct js *expression = prefer(pod_spec, POOL_WEIGHT, label, value ? "In" : "DoesNotExist");
    if (value)
        js_push_string(array_at(expression, "values"), value);
}

static void avoid(struct js *pod_spec, const char *label, const struct op_names *names)
{
    RM_ASSERT(names->count >= 0 && names->count <= OP_AVOIDED_MAX, "%d of label %s are avoided", names->count,
              label);
    struct js *values =
        names->count ? array_at(prefer(pod_spec, MISFIT_WEIGHT, label, "NotIn"), "values") : NULL;
    for (int i = 0; i < names->count; i++)
        js_push_string(values, names->name[i]);
}

void part_avoid(struct js *pod_spec, const struct op_unfit *unfit)
{
    if (!unfit)
        return;
    avoid(pod_spec, "node.kubernetes.io/instance-type", &unfit->types);
    avoid(pod_spec, "kubernetes.io/hostname", &unfit->nodes);
}

/* The template's own, or a first one: whatever is required goes into each, for one of them is enough for the
 * scheduler. */
static struct js *required_terms(struct js *pod_spec)
{
    struct js *affinity = object_at(object_at(pod_spec, "affinity"), "nodeAffinity");
    struct js *required = object_at(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    struct js *terms = array_at(required, "nodeSelectorTerms");
    if (!js_size(terms))
        js_push(terms, js_object());
    RM_ASSERT(js_size(terms) > 0, "%zu terms, of which one is to be met", js_size(terms));
    return terms;
}

/* where: "matchFields", "matchExpressions". A field of the node takes one value a requirement. */
static void require_not(struct js *term, const char *where, const char *key, const char *value)
{
    RM_ASSERT(*key && *value, "a pod goes to no node of '%s' '%s'", key, value);
    struct js *one = js_object();
    js_set_string(one, "key", key);
    js_set_string(one, "operator", "NotIn"); /* true of a node without that label, too */
    js_push_string(array_at(one, "values"), value);
    js_push(array_at(term, where), one);
}

void part_bar(struct js *pod_spec, const char *const *names, int count)
{
    RM_ASSERT(count >= 0 && count <= RM_WORKERS_MAX, "%d machines are barred", count);
    struct js *terms = count ? required_terms(pod_spec) : NULL;
    for (size_t i = 0; i < js_size(terms); i++)
        for (int k = 0; k < count; k++)
            require_not(part_mutable(js_at(terms, i)), "matchFields", "metadata.name", names[k]);
}

static void require_no_spot(struct js *term)
{
    for (size_t k = 0; k < MACHINE_POOLS; k++)
        require_not(term, "matchExpressions", machine_pools[k].label, machine_pools[k].spot);
}

void part_require_on_demand(struct js *pod_spec)
{
    struct js *terms = required_terms(pod_spec);
    for (size_t i = 0; i < js_size(terms); i++)
        require_no_spot(part_mutable(js_at(terms, i)));
}

void part_avoid_spot(struct js *pod_spec)
{
    require_no_spot(preferred(pod_spec, POOL_WEIGHT));
}

const char *part_asks_for_spot(const struct js *pod_spec)
{
    for (size_t k = 0; k < MACHINE_POOLS; k++) {
        const char *value = js_as_string(js_get(js_get(pod_spec, "nodeSelector"), machine_pools[k].label));
        if (value && !strcmp(value, machine_pools[k].spot))
            return machine_pools[k].label;
    }
    return NULL;
}

void part_prefer_spot(struct js *pod_spec)
{
    for (size_t i = 0; i < MACHINE_POOLS; i++)
        prefer_pool(pod_spec, machine_pools[i].label, machine_pools[i].spot);
    part_tolerate_spot(pod_spec);
}

void part_tolerate_spot(struct js *pod_spec)
{
    struct js *tolerations = array_at(pod_spec, "tolerations");
    tolerate(tolerations, "cloud.google.com/gke-spot", "true", "NoSchedule", 0);
    tolerate(tolerations, "kubernetes.azure.com/scalesetpriority", "spot", "NoSchedule", 0);
}

void part_prefer_on_demand(struct js *pod_spec)
{
    for (size_t i = 0; i < MACHINE_POOLS; i++)
        prefer_pool(pod_spec, machine_pools[i].label, machine_pools[i].on_demand);
}
