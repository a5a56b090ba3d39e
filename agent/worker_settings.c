/* Makes the settings of the agent's core. */
#include "agent/worker_settings.h"

#include <unistd.h>

#include "common/base/str.h"
#include "common/os/config.h"
#include "common/os/crypto.h"

/* Between tries to connect in a pod, where a successor takes its time and many agents wait for it. */
static const rm_time pod_retry_first = 100 * RM_MS, pod_retry_most = 2 * RM_S;

static const char *machine_of_pod(void)
{
    const char *name = config_get(CONFIG_POD_NODE_NAME), *address = config_get(CONFIG_POD_HOST_IP);
    return name ? name : address ? address : "";
}

struct agent_settings worker_settings(const struct app_options *options)
{
    const struct job_spec *spec = &options->files->spec;
    bool pod = options->pod != NULL;
    struct agent_settings s = {
        .worker = options->worker,
        .attempt = options->attempt,
        .agent_pid = getpid(),
        .heartbeat = spec->elasticity.heartbeat,
        .lost_after = pod ? RM_NEVER : spec->elasticity.lost_after,
        .awaits_job = pod,
        .launcher = job_restarts(spec),
        .retry_first = pod ? pod_retry_first : 0,
        .retry_most = pod ? pod_retry_most : 0,
    };
    crypto_random(&s.incarnation, sizeof s.incarnation);
    text_copy(s.job, sizeof s.job, spec->name);
    text_copy(s.machine, sizeof s.machine, pod ? machine_of_pod() : "");
    text_copy(s.checkpoint_uri, sizeof s.checkpoint_uri, spec->checkpoint.uri);
    return s;
}
