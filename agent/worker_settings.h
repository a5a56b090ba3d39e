/* What the agent's core is told when it is opened: by the command line, the job, and the pod's environment.
 */
#ifndef RM_AGENT_WORKER_SETTINGS_H
#define RM_AGENT_WORKER_SETTINGS_H

#include "agent/app.h"
#include "agent/core/agent.h"

/* Has an incarnation of chance. */
struct agent_settings worker_settings(const struct app_options *options);

#endif
