#include "common/notice/taint.h"

#include <string.h>

/* Names by the projects' own sources: aws-node-termination-handler's and Karpenter's constants, the cluster
 * autoscaler's utils/taints, what GKE's and AKS's documentation calls theirs, Kubernetes' well-known taints.
 * Karpenter's is a proposal until the Node is being deleted: it is taken off again where no replacement
 * comes. */
static const struct {
    const char *key;
    enum notice_source source;
} taints[] = {
    {"aws-node-termination-handler/spot-itn", NOTICE_NTH_SPOT},
    {"aws-node-termination-handler/rebalance-recommendation", NOTICE_NTH_REBALANCE},
    {"aws-node-termination-handler/asg-lifecycle-termination", NOTICE_NTH_ASG},
    {"aws-node-termination-handler/scheduled-maintenance", NOTICE_NTH_MAINTENANCE},
    {"karpenter.sh/disrupted", NOTICE_KARPENTER},
    {"karpenter.sh/disruption", NOTICE_KARPENTER},
    {"ToBeDeletedByClusterAutoscaler", NOTICE_AUTOSCALER},
    {"DeletionCandidateOfClusterAutoscaler", NOTICE_AUTOSCALER_CANDIDATE},
    {"cloud.google.com/impending-node-termination", NOTICE_GKE},
    {"remediator.kubernetes.azure.com/unschedulable", NOTICE_AKS},
    {"node.kubernetes.io/out-of-service", NOTICE_OUT_OF_SERVICE},
    {"node.kubernetes.io/unschedulable", NOTICE_CORDON},
};

enum notice_source notice_of_taint(const char *key)
{
    for (size_t i = 0; i < sizeof taints / sizeof taints[0]; i++)
        if (!strcmp(taints[i].key, key))
            return taints[i].source;
    return NOTICE_SOURCES;
}
