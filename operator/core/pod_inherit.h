/* What a coordinator's pod takes over from the workers' template.
 *
 * Both ask the same store, as the same identity, through the same proxy, from the same pool of nodes; a
 * person writes that down once, for the workers. Where spec.coordinator.template speaks, it wins: a member of
 * the pod as a whole, an environment variable or a mount by its name. What belongs to training (resources,
 * GPUs, data, affinity, sidecars, init containers) stays with the workers. Pure. */
#ifndef RM_OPERATOR_CORE_POD_INHERIT_H
#define RM_OPERATOR_CORE_POD_INHERIT_H

struct js;

/* worker_spec: the `spec` of workers.template, worker: its container `trainer`; each may be NULL. Changes
 * pod_spec and container, which pod.c made, before the defaults are put in. */
void pod_inherit(struct js *pod_spec, struct js *container, const struct js *worker_spec,
                 const struct js *worker);

#endif
