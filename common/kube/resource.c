#include "common/kube/resource.h"

#include <ctype.h>
#include <string.h>

const struct kube_resource kube_pods = {"", "v1", "pods", "Pod", true};
const struct kube_resource kube_services = {"", "v1", "services", "Service", true};
const struct kube_resource kube_secrets = {"", "v1", "secrets", "Secret", true};
const struct kube_resource kube_nodes = {"", "v1", "nodes", "Node", false};
const struct kube_resource kube_pod_disruption_budgets = {"policy", "v1", "poddisruptionbudgets",
                                                          "PodDisruptionBudget", true};
const struct kube_resource kube_network_policies = {"networking.k8s.io", "v1", "networkpolicies",
                                                    "NetworkPolicy", true};
const struct kube_resource kube_leases = {"coordination.k8s.io", "v1", "leases", "Lease", true};
const struct kube_resource kube_events = {"events.k8s.io", "v1", "events", "Event", true};
const struct kube_resource kube_training_jobs = {"ringmaster.dev", "v1alpha1", "trainingjobs", "TrainingJob",
                                                 true};

const struct kube_resource *kube_resource_find(const char *plural)
{
    static const struct kube_resource *const all[] = {&kube_pods,
                                                      &kube_services,
                                                      &kube_secrets,
                                                      &kube_nodes,
                                                      &kube_pod_disruption_budgets,
                                                      &kube_network_policies,
                                                      &kube_leases,
                                                      &kube_events,
                                                      &kube_training_jobs};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (!strcmp(all[i]->plural, plural))
            return all[i];
    return NULL;
}

void kube_encode(const char *text, struct str *out)
{
    for (; *text; text++)
        if (isalnum((unsigned char)*text) || strchr("-._~", *text))
            str_add(out, text, 1);
        else
            str_addf(out, "%%%02X", (unsigned char)*text);
}

void kube_api_version(const struct kube_resource *resource, struct str *out)
{
    if (*resource->group)
        str_addf(out, "%s/", resource->group);
    str_adds(out, resource->version);
}

void kube_path(const struct kube_resource *resource, const char *namespace, const char *name, struct str *out)
{
    str_adds(out, *resource->group ? "/apis/" : "/api/");
    kube_api_version(resource, out);
    if (resource->namespaced && namespace) {
        str_adds(out, "/namespaces/");
        kube_encode(namespace, out);
    }
    str_addf(out, "/%s", resource->plural);
    if (name) {
        str_adds(out, "/");
        kube_encode(name, out);
    }
}
