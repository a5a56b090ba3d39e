#include "operator/core/pod_program.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/wire/json.h"
#include "operator/core/names.h"
#include "operator/core/pod_parts.h"

#define BUNDLE_VOLUME "ringmaster-bundle"
#define TARGET                                                                                               \
    "/ringmaster-bundle"     /* where the init container sees the volume: its own bundle lies at POD_BUNDLE */
#define BUNDLE_LIMIT "256Mi" /* of some 70 */
#define HOME_VOLUME  "ringmaster-home"
#define HOME_LIMIT   "10Gi"
#define USER         "ringmaster"

static struct js *push_object(struct js *list)
{
    struct js *o = js_object();
    js_push(list, o);
    return o;
}

static struct js *object_of(struct js *object, const char *key)
{
    struct js *o = js_object();
    js_set(object, key, o);
    return o;
}

static void mount(struct js *container, const char *path, bool read_only)
{
    RM_ASSERT(*path == '/', "the bundle is mounted at '%s'", path);
    struct js *list = (struct js *)(uintptr_t)js_get(container, "volumeMounts");
    if (!list) {
        list = js_array();
        js_set(container, "volumeMounts", list);
    }
    struct js *at = push_object(list);
    js_set_string(at, "name", BUNDLE_VOLUME);
    js_set_string(at, "mountPath", path);
    if (read_only)
        js_set_bool(at, "readOnly", true);
}

/* Requests are limits, so that a pod that is Guaranteed by its template stays so. */
static void set_resources(struct js *container)
{
    static const char *const both[] = {"requests", "limits"};
    struct js *resources = object_of(container, "resources");
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        struct js *o = object_of(resources, both[i]);
        js_set_string(o, "cpu", "100m");
        js_set_string(o, "memory", "128Mi");
    }
}

/* All of the restricted standard in its own words: the template's for the pod may be others. */
static void set_security(struct js *container, bool leave_uid)
{
    struct js *context = object_of(container, "securityContext");
    js_set_bool(context, "allowPrivilegeEscalation", false);
    js_set_bool(context, "readOnlyRootFilesystem", true);
    js_set_bool(context, "runAsNonRoot", true);
    if (!leave_uid) {
        js_set_int(context, "runAsUser", OP_POD_USER);
        js_set_int(context, "runAsGroup", OP_POD_USER);
    }
    struct js *drop = js_array();
    js_push_string(drop, "ALL");
    js_set(object_of(context, "capabilities"), "drop", drop);
    js_set_string(object_of(context, "seccompProfile"), "type", "RuntimeDefault");
}

static struct js *installer(const char *image, const char *policy, bool leave_uid)
{
    RM_ASSERT(image, "the bundle comes out of no image, by policy %s", policy ? policy : "none");
    static const char *const words[] = {POD_BUNDLE_AGENT, "install", TARGET};
    struct js *made = js_object(), *command = js_array();
    js_set_string(made, "name", OP_INSTALLER);
    js_set_string(made, "image", image);
    if (policy)
        js_set_string(made, "imagePullPolicy", policy);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        js_push_string(command, words[i]);
    js_set(made, "command", command);
    set_resources(made);
    set_security(made, leave_uid);
    mount(made, TARGET, false);
    return made;
}

void pod_program_bundle(struct js *pod_spec, struct js *container, const char *image, const char *policy,
                        bool leave_uid)
{
    const struct js *theirs = js_get(pod_spec, "initContainers");
    struct js *all = js_array();
    js_push(all, installer(image, policy, leave_uid));
    for (size_t i = 0; i < js_size(theirs); i++)
        js_push(all, js_copy(js_at(theirs, i)));
    js_set(pod_spec, "initContainers", all);
    part_volume(pod_spec, BUNDLE_VOLUME, BUNDLE_LIMIT);
    mount(container, POD_BUNDLE, true);
}

static bool names(const struct js *env, const char *variable)
{
    for (size_t i = 0; i < js_size(env); i++) {
        const char *name = js_as_string(js_get(js_at(env, i), "name"));
        if (name && !strcmp(name, variable))
            return true;
    }
    return false;
}

static void default_variable(struct js *container, const char *name, const char *value)
{
    if (!names(js_get(container, "env"), name))
        part_variable(container, name, value);
}

void pod_program_home(struct js *pod_spec, struct js *container)
{
    bool own = names(js_get(container, "env"), "HOME");
    default_variable(container, "USER",
                     USER); /* else getpass, and torch with it, asks for the user's entry */
    default_variable(container, "LOGNAME", USER);
    if (own)
        return;
    part_scratch(pod_spec, container, HOME_VOLUME, POD_HOME, HOME_LIMIT, NULL);
    part_variable(container, "HOME", POD_HOME);
    default_variable(container, "XDG_CACHE_HOME", POD_HOME "/.cache");
    default_variable(container, "TORCHINDUCTOR_CACHE_DIR",
                     POD_HOME "/.cache/torchinductor"); /* else in /tmp */
}
