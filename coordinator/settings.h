/* What a job's spec means to the state machine of its coordinator. Pure. */
#ifndef RM_COORDINATOR_SETTINGS_H
#define RM_COORDINATOR_SETTINGS_H

#include "coordinator/coordinator.h"
#include "coordinator/core/rdzv_types.h"

/* Of the job in options->files, for a coordinator of that term, in a pod or under `ringmaster run`. */
struct rdzv_settings settings_of(const struct coordinator_options *options);

#endif
