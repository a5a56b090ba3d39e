/* What a worker tells watchers: GET /metrics and /healthz of an agent. */
#ifndef RM_AGENT_WORKER_PAGES_H
#define RM_AGENT_WORKER_PAGES_H

#include "common/base/str.h"
#include "common/wire/message.h"

/* The numbers behind them; all zero at first. */
struct worker_pages {
    int64_t step, steps_trained, tokens, rescaled;
    double loss; /* of the newest step, where loss_known */
    bool loss_known;
    rm_time step_time, data_wait; /* of all steps together */
    rm_time ring_time, state_time;
    int64_t rings, stops, discarded, slices, trainers;
    enum msg_phase phase;
};

/* After each message from the trainer. */
void worker_pages_hear(struct worker_pages *pages, const struct message *message);
/* As `get` of common/net/ws.h. */
int worker_pages_get(const struct worker_pages *pages, const char *path, struct str *body, const char **type);

#endif
