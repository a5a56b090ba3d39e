/* `ringmaster-agent work`: sockets, timers, the trainer's process and the checkpoint threads around
 * agent/core.
 *
 * stdin is a pipe of whoever started it: its end ends the agent and its trainer at once. SIGTERM is an
 * announced leave. */
#ifndef RM_AGENT_APP_H
#define RM_AGENT_APP_H

#include "agent/job_files.h"

struct app_options {
    struct job_files *files; /* lives longer than the call */
    int worker, attempt;
    const char *coordinator; /* "127.0.0.1:40312" */
};

/* Runs to its end; returns the exit code (0: released). A failure to start is -1 with *err. */
int app_run(const struct app_options *options, struct error *err);

#endif
