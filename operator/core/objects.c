/* Writes the JSON of a job's Secret, Service, budget of disruptions and NetworkPolicies. plan_act.c puts
 * it into writes where one is to be made; pod.c takes the metadata from here. */
#include "operator/core/objects.h"

#include <stdio.h>

#include "common/base/assert.h"
#include "common/wire/json.h"
#include "operator/core/plan.h"
#include "operator/core/pod.h"

static struct js *owner(const struct job_view *job)
{
    struct js *o = js_object(), *list = js_array();
    js_set_string(o, "apiVersion", OP_VERSION);
    js_set_string(o, "kind", "TrainingJob");
    js_set_string(o, "name", job->name);
    js_set_string(o, "uid", job->uid);
    js_set_bool(o, "controller", true);
    js_set_bool(o, "blockOwnerDeletion", false);
    js_push(list, o);
    return list;
}

struct js *object_metadata(const struct job_view *job, const char *name)
{
    struct js *metadata = js_object(), *labels = js_object();
    js_set_string(labels, "app.kubernetes.io/managed-by", "ringmaster");
    js_set_string(labels, OP_LABEL_JOB, job->name);
    js_set_string(labels, OP_LABEL_UID, job->uid);
    js_set_string(metadata, "name", name);
    js_set_string(metadata, "namespace", job->namespace_name);
    js_set(metadata, "labels", labels);
    js_set(metadata, "ownerReferences", owner(job));
    return metadata;
}

static struct js *begin_object(const struct job_view *job, const char *version, const char *kind,
                               const char *name)
{
    struct js *o = js_object();
    RM_ASSERT(*name && *job->uid, "a %s '%s' of no job", kind, name);
    js_set_string(o, "apiVersion", version);
    js_set_string(o, "kind", kind);
    js_set(o, "metadata", object_metadata(job, name));
    return o;
}

static void finish_object(struct js *o, struct str *out)
{
    js_print(o, out);
    js_free(o);
}

static struct js *one(const char *key, struct js *child)
{
    RM_ASSERT(child && *key, "%s holds nothing", key);
    struct js *o = js_object();
    js_set(o, key, child);
    return o;
}

static struct js *list_of(struct js *child)
{
    struct js *list = js_array();
    js_push(list, child);
    return list;
}

void object_key(const struct job_view *job, const char *name, struct str *out)
{
    struct js *o = begin_object(job, "v1", "Secret", name), *data = js_object();
    js_set_string(data, "key", OP_KEY_PLACE);
    js_set_string(o, "type", "Opaque");
    js_set(o, "stringData", data);
    js_set_bool(o, "immutable", true);
    finish_object(o, out);
}

/* The labels that select the job's pods of one role. */
static struct js *selector(const struct job_view *job, const char *role)
{
    RM_ASSERT(*role && *job->uid, "pods of role '%s' of no job", role);
    struct js *labels = js_object();
    js_set_string(labels, OP_LABEL_JOB, job->name);
    js_set_string(labels, OP_LABEL_UID, job->uid);
    js_set_string(labels, OP_LABEL_ROLE, role);
    return labels;
}

static struct js *port_of(const char *name, int port)
{
    struct js *o = js_object();
    RM_ASSERT(port > 0 && port < 65536, "port %d of %s", port, name);
    js_set_string(o, "name", name);
    js_set_int(o, "port", port);
    js_set_string(o, "protocol", "TCP");
    js_set_int(o, "targetPort", port);
    return o;
}

void object_service(const struct job_view *job, int term, struct str *out)
{
    char name[OP_NAME_MAX], number[16];
    name_service(job->name, name);
    snprintf(number, sizeof number, "%d", term);
    struct js *o = begin_object(job, "v1", "Service", name), *spec = js_object(),
              *labels = selector(job, "coordinator");
    js_set_string(labels, OP_LABEL_TERM, number);
    js_set_string(spec, "type", "ClusterIP");
    js_set_bool(spec, "publishNotReadyAddresses", true);
    js_set(spec, "selector", labels);
    js_set(spec, "ports", list_of(port_of("coordinator", OP_COORDINATOR_PORT)));
    js_set(o, "spec", spec);
    finish_object(o, out);
}

void object_budget(const struct job_view *job, struct str *out)
{
    RM_ASSERT(job->workers_min >= 1, "job %s keeps %d workers", job->name, job->workers_min);
    char name[OP_NAME_MAX];
    name_budget(job->name, name);
    struct js *o = begin_object(job, "policy/v1", "PodDisruptionBudget", name), *spec = js_object();
    /* Who is frozen when it is told to go loses nothing by an eviction, and nobody could come beside it
     * first: what kept one of one would hold up the drain of its machine for ever. */
    js_set_int(spec, "minAvailable", job->freezes ? 0 : job->workers_min);
    js_set_string(spec, "unhealthyPodEvictionPolicy", "AlwaysAllow");
    js_set(spec, "selector", one("matchLabels", selector(job, "worker")));
    js_set(o, "spec", spec);
    finish_object(o, out);
}

/* Pods of this job with that role. */
static struct js *peer(const struct job_view *job, const char *role)
{
    return one("podSelector", one("matchLabels", selector(job, role)));
}

/* The operator, wherever it is installed. */
static struct js *peer_operator(const struct op_settings *settings)
{
    struct js *space = js_object(), *pod = js_object(), *both = js_object();
    js_set_string(space, "kubernetes.io/metadata.name", settings->operator_namespace);
    js_set_string(pod, "app.kubernetes.io/name", "ringmaster-operator");
    js_set(both, "namespaceSelector", one("matchLabels", space));
    js_set(both, "podSelector", one("matchLabels", pod));
    return both;
}

static struct js *policy_port(int port)
{
    struct js *o = js_object();
    RM_ASSERT(port > 0 && port < 65536, "port %d", port);
    js_set_string(o, "protocol", "TCP");
    js_set_int(o, "port", port);
    return list_of(o);
}

static struct js *policy(const struct job_view *job, const char *name, const char *role, struct js *ingress)
{
    struct js *o = begin_object(job, "networking.k8s.io/v1", "NetworkPolicy", name), *spec = js_object();
    js_set(spec, "podSelector", one("matchLabels", selector(job, role)));
    js_set(spec, "policyTypes", js_array());
    js_push_string((struct js *)(uintptr_t)js_get(spec, "policyTypes"), "Ingress");
    js_set(spec, "ingress", ingress);
    js_set(o, "spec", spec);
    return o;
}

/* Who may scrape: at the port that has metrics and nothing else. */
static struct js *scrapes(const struct op_settings *settings, int port)
{
    RM_ASSERT(!settings->metrics_from ||
                  (settings->metrics_from->count >= 0 && settings->metrics_from->count <= OP_LABELS_MAX),
              "%d labels", settings->metrics_from->count);
    struct js *rule = one("ports", policy_port(port)), *labels = js_object();
    const struct op_labels *from = settings->metrics_from;
    for (int i = 0; from && i < from->count; i++)
        js_set_string(labels, from->label[i].key, from->label[i].value);
    if (from)
        js_set(rule, "from", list_of(one("namespaceSelector", one("matchLabels", labels))));
    else
        js_free(labels);
    return rule;
}

/* The ring's ports are drawn by the system, so workers are open to each other on all of them. */
void object_policy_worker(const struct job_view *job, const struct op_settings *settings, struct str *out)
{
    char name[OP_NAME_MAX];
    name_policy_worker(job->name, name);
    struct js *ingress = list_of(one("from", list_of(peer(job, "worker"))));
    if (settings->metrics_open)
        js_push(ingress, scrapes(settings, OP_WORKER_METRICS_PORT));
    finish_object(policy(job, name, "worker", ingress), out);
}

void object_policy_coordinator(const struct job_view *job, const struct op_settings *settings,
                               struct str *out)
{
    char name[OP_NAME_MAX];
    name_policy_coordinator(job->name, name);
    struct js *from = list_of(peer(job, "worker")), *rule = js_object(), *ingress = list_of(rule);
    js_push(from, peer(job, "coordinator")); /* one that has to go looks for its successor */
    if (*settings->operator_namespace)
        js_push(from, peer_operator(settings));
    js_set(rule, "from", from);
    js_set(rule, "ports", policy_port(OP_COORDINATOR_PORT));
    if (settings->metrics_open)
        js_push(ingress, scrapes(settings, OP_COORDINATOR_METRICS_PORT));
    finish_object(policy(job, name, "coordinator", ingress), out);
}
