/* `ringmaster-agent coordinate`: sockets, timers, proofs and text around coordinator/core.
 *
 * Under `ringmaster run`, stdin has one JSON command a line from whoever started it (expect, act, interrupt);
 * its end ends the program at once. stdout: one JSON event a line. The port serves agents (WebSocket) and
 * GET /v1/status, /metrics and /healthz. A second one, where asked for, serves GET /metrics and nothing else:
 * who may come to it comes no nearer to the job.
 *
 * In a pod nobody commands: it waits for workers instead of ending where they are too few, its stdout leaves
 * steps out, and its last word is the result. SIGTERM there means: serve until no agent is left, or until a
 * successor is there and nothing is under way. */
#ifndef RM_COORDINATOR_H
#define RM_COORDINATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/pod/job_files.h"
#include "common/pod/pod.h"
#include "coordinator/core/rdzv.h"

struct coordinator_options {
    struct job_files *files; /* lives longer than the call */
    int64_t term;            /* >= 1 */
    const char *listen;      /* an IP address */
    int port;                /* 0: any free one */
    int metrics_port;        /* of the second one; 0: any free one, -1: none. Taken: it goes on without */
    bool watched;            /* say `alive` each heartbeat: who started us replaces one that hangs */
    struct rdzv_predecessor predecessor; /* of a term above 1 */
    const struct pod *pod;               /* NULL: under `ringmaster run` */
    const char *identity;                /* what the status calls the job; NULL: its name */
    const char *name; /* HOST:PORT by which agents find whoever coordinates; NULL: not known */
};

/* Runs to its end; returns the exit code. A failure to start is -1 with *err. */
int coordinator_run(const struct coordinator_options *options, struct error *err);

#endif
