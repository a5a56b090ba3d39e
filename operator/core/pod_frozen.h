/* What a template may not say of the pods of a job whose program is frozen into snapshots
 * (checkpoint.process: CRIU; docs/process-snapshots.md tells what that takes). Pure. */
#ifndef RM_OPERATOR_CORE_POD_FROZEN_H
#define RM_OPERATOR_CORE_POD_FROZEN_H

#include "common/base/error.h"

struct js;

/* ERR_USAGE with the member's name, why it can't be, and what to do. pod_spec: workers.template.spec. */
int pod_frozen_refuse(const struct js *pod_spec, struct error *err);

#endif
