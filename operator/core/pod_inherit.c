/* Copies from the workers' template into a coordinator's pod what its store, its network and its place
 * among nodes need. pod.c calls it while it makes that pod. */
#include "operator/core/pod_inherit.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/base/str.h"
#include "common/wire/json.h"
#include "operator/core/pod_parts.h"

enum {
    VARIABLE_MAX = 128,  /* bytes of "$(NAME)" */
    REFERRING_MAX = 256, /* variables of a container that is searched for such words */
};

/* What the pod says of who it is, and where it may run. */
static const char *const members[] = {
    "imagePullSecrets", "serviceAccountName", "serviceAccount", "automountServiceAccountToken",
    "nodeSelector",     "tolerations",        "securityContext"};

/* What the container has beside AWS_*: the way to the store, whom to trust there, and the shared files'
 * place. */
static const char *const variables[] = {"HTTP_PROXY", "HTTPS_PROXY",       "ALL_PROXY",
                                        "NO_PROXY",   "SSL_CERT_FILE",     "SSL_CERT_DIR",
                                        "HOME",       "GCE_METADATA_HOST", "RINGMASTER_GOOGLE_ENDPOINT"};

/* Where systems keep the certificates that they trust. */
static const char *const trusted[] = {"/etc/ssl", "/etc/pki", "/etc/ca-certificates",
                                      "/usr/share/ca-certificates", "/usr/local/share/ca-certificates"};

static struct js *array_at(struct js *object, const char *key)
{
    if (!js_get(object, key))
        js_set(object, key, js_array());
    return part_mutable(js_get(object, key));
}

static const char *text_of(const struct js *object, const char *key)
{
    const char *text = js_as_string(js_get(object, key));
    return text ? text : "";
}

/* The entry of a list whose member `key` is that text. */
static const struct js *find_entry(const struct js *list, const char *key, const char *text)
{
    for (size_t i = 0; i < js_size(list); i++)
        if (!strcmp(text_of(js_at(list, i), key), text))
            return js_at(list, i);
    return NULL;
}

/* A ServiceAccount has two names in the API, of which the newer one counts. */
static void inherit_members(struct js *pod_spec, const struct js *from)
{
    bool own = js_get(pod_spec, "serviceAccountName") || js_get(pod_spec, "serviceAccount");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const struct js *theirs = js_get(from, members[i]);
        bool account = !strncmp(members[i], "serviceAccount", strlen("serviceAccount"));
        if (theirs && !js_get(pod_spec, members[i]) && !(account && own))
            js_set(pod_spec, members[i], js_copy(theirs));
    }
}

/* --- environment --- */

static bool is_of_the_store(const char *name)
{
    if (!strncmp(name, "AWS_", 4))
        return true;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (!strcasecmp(name, variables[i]))
            return true;
    return false;
}

static bool refers_to(const struct js *entry, const char *name)
{
    char reference[VARIABLE_MAX];
    if (snprintf(reference, sizeof reference, "$(%s)", name) >= (int)sizeof reference)
        return false;
    return strstr(text_of(entry, "value"), reference) != NULL;
}

static bool is_referred_to(const struct js *list, const char *name)
{
    for (size_t i = 0; i < js_size(list); i++)
        if (refers_to(js_at(list, i), name))
            return true;
    return false;
}

/* From the last to the first, as Kubernetes resolves "$(NAME)" from earlier variables alone. */
static struct js *wanted_backwards(const struct js *env)
{
    struct js *list = js_array();
    bool few = js_size(env) <= REFERRING_MAX;
    for (size_t i = js_size(env); i-- > 0;) {
        const char *name = text_of(js_at(env, i), "name");
        if (is_of_the_store(name) || (few && *name && is_referred_to(list, name)))
            js_push(list, js_copy(js_at(env, i)));
    }
    return list;
}

/* Theirs first: what the coordinator's template says may refer to it. */
static void inherit_environment(struct js *container, const struct js *worker)
{
    const struct js *sources = js_get(worker, "envFrom"), *own = js_get(container, "env");
    struct js *theirs = wanted_backwards(js_get(worker, "env")), *all = js_array();
    for (size_t i = js_size(theirs); i-- > 0;)
        if (!find_entry(own, "name", text_of(js_at(theirs, i), "name")))
            js_push(all, js_copy(js_at(theirs, i)));
    for (size_t i = 0; i < js_size(own); i++)
        js_push(all, js_copy(js_at(own, i)));
    js_free(theirs);
    if (js_size(all))
        js_set(container, "env", all);
    else
        js_free(all);
    if (sources && !js_get(container, "envFrom"))
        js_set(container, "envFrom", js_copy(sources));
}

/* --- files --- */

/* Is path that folder or in it? */
static bool is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    return length > 1 && !strncmp(path, folder, length) && (!path[length] || path[length] == '/');
}

static bool names_file(const char *variable)
{
    return is_of_the_store(variable) && strcmp(variable, "HOME") != 0;
}

/* Certificates, the AWS tools' shared files, or what a variable of the store names. */
static bool holds_files_of_the_store(const char *path, const struct js *env)
{
    if (strstr(path, "/.aws"))
        return true;
    for (size_t i = 0; i < sizeof trusted / sizeof *trusted; i++)
        if (is_below(path, trusted[i]))
            return true;
    for (size_t i = 0; i < js_size(env); i++)
        if (names_file(text_of(js_at(env, i), "name")) && is_below(text_of(js_at(env, i), "value"), path))
            return true;
    return false;
}

/* An emptyDir is filled by containers that the coordinator has not. */
static bool can_be_shared(const struct js *volume)
{
    return volume && !js_get(volume, "emptyDir");
}

static void inherit_mounts(struct js *pod_spec, struct js *container, const struct js *from,
                           const struct js *worker)
{
    const struct js *mounts = js_get(worker, "volumeMounts"), *env = js_get(container, "env");
    for (size_t i = 0; i < js_size(mounts); i++) {
        const struct js *mount = js_at(mounts, i);
        const char *path = text_of(mount, "mountPath"), *name = text_of(mount, "name");
        const struct js *volume = find_entry(js_get(from, "volumes"), "name", name);
        if (!holds_files_of_the_store(path, env) || !can_be_shared(volume) ||
            find_entry(js_get(container, "volumeMounts"), "mountPath", path))
            continue;
        js_push(array_at(container, "volumeMounts"), js_copy(mount));
        if (!find_entry(js_get(pod_spec, "volumes"), "name", name))
            js_push(array_at(pod_spec, "volumes"), js_copy(volume));
    }
}

void pod_inherit(struct js *pod_spec, struct js *container, const struct js *worker_spec,
                 const struct js *worker)
{
    inherit_members(pod_spec, worker_spec);
    inherit_environment(container, worker);
    inherit_mounts(pod_spec, container, worker_spec, worker);
}
