/* `ringmaster-agent work`: sockets, timers, the trainer's process and the checkpoint threads around
 * agent/core.
 *
 * SIGTERM is an announced leave. Under `ringmaster run` stdin is a pipe of whoever started it: its end ends
 * the agent and its trainer at once. In a pod stdin means nothing; what the job is comes with the
 * coordinator's welcome; the coordinator may stay away for as long as it likes, and its name is resolved for
 * each try. */
#ifndef RM_AGENT_APP_H
#define RM_AGENT_APP_H

#include "common/pod/job_files.h"
#include "common/pod/pod.h"

struct app_options {
    struct job_files *files; /* lives longer than the call; in a pod without the job, which is put in */
    int worker, attempt;
    const char *coordinator; /* "127.0.0.1:40312", "gpt-coordinator:7070" */
    const char *listen;      /* an IP address: of the trainer's data port, and of the pages */
    int port;                /* of GET /metrics and /healthz; -1: none */
    const struct pod *pod;   /* NULL: under `ringmaster run` */
};

/* Runs to its end; returns the exit code (0: released). A failure to start is -1 with *err. */
int app_run(const struct app_options *options, struct error *err);

#endif
