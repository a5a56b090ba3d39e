/* The pods of a job whose program is frozen into snapshots (checkpoint.process: CRIU;
 * docs/process-snapshots.md tells what that takes): what a template may not say of them, and what they have
 * more than others. Pure. */
#ifndef RM_OPERATOR_CORE_POD_FROZEN_H
#define RM_OPERATOR_CORE_POD_FROZEN_H

#include "common/base/error.h"

struct js;

#define POD_SNAPSHOTS "/var/lib/ringmaster/snapshots" /* where a pod has room for its images */

/* ERR_USAGE with the member's name, why it can't be, and what to do. pod_spec: workers.template.spec. */
int pod_frozen_refuse(const struct js *pod_spec, struct error *err);

/* uid 0, bounded to what a snapshot takes, of this container alone: all others of the pod stay what they are.
 * Before part_security, which completes what is silent. */
void pod_frozen_rights(struct js *container);

/* Room on the node's disk, and where the agent finds that and the rest, in its environment. older: the Secret
 * with another job's key (checkpoint.processKeyRef); NULL: none. */
void pod_frozen_place(struct js *pod_spec, struct js *container, const char *older);

#endif
