/* What a worker tells watchers: GET /metrics and /healthz of an agent. */
#ifndef RM_AGENT_WORKER_PAGES_H
#define RM_AGENT_WORKER_PAGES_H

#include "common/base/str.h"
#include "common/net/ws.h"
#include "common/wire/message.h"

/* The numbers behind them; all zero at first. */
struct worker_pages {
    int64_t step, steps_trained, tokens, rescaled;
    double loss; /* of the newest step, where loss_known */
    bool loss_known;
    rm_time step_time, data_wait, reduce_time; /* of all steps together */
    int64_t reduce_bytes;
    struct msg_pace pace;        /* of the newest step */
    struct msg_transport second; /* of its trainer, since that one started */
    int64_t switches, failures;  /* of the trainers before that one, together */
    rm_time ring_time, state_time;
    int64_t rings, stops, discarded, slices, trainers;
    enum msg_phase phase;
};

/* After each message from the trainer. */
void worker_pages_hear(struct worker_pages *pages, const struct message *message);
/* As `get` of common/net/ws.h. */
int worker_pages_get(const struct worker_pages *pages, const struct ws_get *get, struct str *body,
                     const char **type);

#endif
