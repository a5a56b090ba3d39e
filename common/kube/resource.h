/* The kinds of objects that the operator handles, as the API server's URLs name them. */
#ifndef RM_KUBE_RESOURCE_H
#define RM_KUBE_RESOURCE_H

#include <stdbool.h>

#include "common/base/str.h"

struct kube_resource {
    const char *group;   /* "" is the core group */
    const char *version; /* "v1" */
    const char *plural;  /* "pods" */
    const char *kind;    /* "Pod" */
    bool namespaced;
};

extern const struct kube_resource kube_pods, kube_services, kube_secrets, kube_nodes,
    kube_pod_disruption_budgets, kube_network_policies, kube_leases, kube_events, kube_training_jobs;

/* The one with this plural name, NULL where none has it. */
const struct kube_resource *kube_resource_find(const char *plural);

/* "/api/v1/namespaces/NS/pods/NAME": namespace NULL is all of them, name NULL the collection. Both are
 * encoded, so that what a tenant chose can't change which path is asked. */
void kube_path(const struct kube_resource *resource, const char *namespace, const char *name,
               struct str *out);

/* Adds the text %-encoded, but for letters, digits and "-._~". */
void kube_encode(const char *text, struct str *out);

/* "apps/v1" or "v1": what stands behind apiVersion. */
void kube_api_version(const struct kube_resource *resource, struct str *out);

#endif
