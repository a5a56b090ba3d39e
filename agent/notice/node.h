/* ringmaster-agent node: one a machine. Listens to the metadata of its machine and tells the pods on it what
 * it heard: GET /v1/notices?after=N (common/notice/page.h). The answer waits while N is the newest revision,
 * for a minute at most. It reads no file, asks no API server, and tells nothing but notices. */
#ifndef RM_AGENT_NODE_H
#define RM_AGENT_NODE_H

#include "common/base/error.h"

enum { NODE_PORT = 7072 };

struct node_options {
    const char *listen; /* an IP address of this machine; one that stands for all of them is ERR_USAGE */
    int port;
    const char *metadata; /* http://HOST[:PORT] */
};

/* Until SIGTERM: the exit code; -1 where it does not start. */
int node_run(const struct node_options *options, struct error *err);

#endif
