/* Single parts of a pod's spec, put in where the template is silent. Each changes the tree it is given, which
 * pod.c made. Pure. */
#ifndef RM_OPERATOR_CORE_POD_PARTS_H
#define RM_OPERATOR_CORE_POD_PARTS_H

#include <stdbool.h>
#include <stdint.h>

struct js;
struct op_unfit;

enum { OP_POD_USER = 65532 }; /* and its group, where the template says nothing */

/* A part of a tree that pod.c made, and may change. */
static inline struct js *part_mutable(const struct js *value)
{
    return (struct js *)(uintptr_t)value;
}

void part_default_bool(struct js *object, const char *key, bool value);

/* The restricted Pod Security Standard: of the pod and of every container. With leave_uid user, group and
 * fsGroup are somebody else's to say. Who names the user 0 has it, if the namespace takes that. */
void part_security(struct js *pod_spec, bool leave_uid);
void part_read_only_root(struct js *container);

/* 30 s instead of the cluster's default of 300 s for a node that is not ready or unreachable. */
void part_tolerations(struct js *pod_spec);

/* An emptyDir, unless the template mounts something at that path. limit, medium: NULL for none. */
void part_scratch(struct js *pod_spec, struct js *container, const char *volume, const char *path,
                  const char *limit, const char *medium);
/* An emptyDir that is mounted nowhere yet. */
void part_volume(struct js *pod_spec, const char *volume, const char *limit);
struct part_secret {
    const char *volume, *secret, *path;
    bool optional; /* the pod starts without it */
    bool any_user; /* readable for who is not in the pod's fsGroup, too: it may have none */
};
void part_secret(struct js *pod_spec, struct js *container, const struct part_secret *part);
/* An annotation of the pod as a file of the folder `path`: it comes and goes with the pod, and needs no
 * object that somebody could lay there before, or take away. */
void part_note(struct js *pod_spec, struct js *container, const char *volume, const char *annotation,
               const char *path, const char *file);

void part_variable(struct js *container, const char *name, const char *value);
/* RINGMASTER_POD_IP, RINGMASTER_POD_NAME, RINGMASTER_NODE_NAME by the downward API. */
void part_pod_environment(struct js *container);
/* RINGMASTER_POD_HOST_IP by the downward API, and RINGMASTER_POD_NODE_PORT: where the machine's agent
 * answers. */
void part_node_agent(struct js *container, int port);
/* RINGMASTER_METADATA: what is asked where the machine has no agent, by a pod that shares its network. */
void part_metadata(struct js *container);
void part_port(struct js *container, const char *name, int port);
void part_small_resources(struct js *container); /* of a coordinator, where none are given */
/* A request for disk, where the container says nothing of it. */
void part_disk(struct js *container, int64_t mebibytes);
bool part_has_volume(const struct js *pod_spec, const char *volume);

/* The spot pools of EKS, GKE, AKS and Karpenter: tolerated and preferred; or avoided where others are free.
 */
void part_prefer_spot(struct js *pod_spec);
void part_tolerate_spot(struct js *pod_spec);
/* Rather on a node that none of those clouds marks as spot. */
void part_avoid_spot(struct js *pod_spec);
void part_prefer_on_demand(struct js *pod_spec);
/* On no node that one of those clouds marks as spot, whatever else the template requires of its node. */
void part_require_on_demand(struct js *pod_spec);
/* The label by which pod_spec itself asks for a spot node; NULL: it does not. */
const char *part_asks_for_spot(const struct js *pod_spec);
/* Rather elsewhere than on these, stronger than the preferences above. A wish and no rule: where there is no
 * other machine, autoscalers see a pod that they can make room for. */
void part_avoid(struct js *pod_spec, const struct op_unfit *unfit);
/* Not on the nodes of these names, whatever else the template requires of its node. */
void part_bar(struct js *pod_spec, const char *const *names, int count);

#endif
