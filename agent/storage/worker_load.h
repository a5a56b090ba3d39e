/* The agent's reading of checkpoints, off the loop: list and load. One after the other, in the order asked
 * for, on a background thread, and beside what worker_store.h writes: whoever waits for a state does not wait
 * for a slow save, too. */
#ifndef RM_AGENT_WORKER_LOAD_H
#define RM_AGENT_WORKER_LOAD_H

#include "agent/core/agent.h"
#include "common/job/spec.h"
#include "common/loop/loop.h"

struct worker_load;

struct worker_load_options {
    const struct job_spec *spec; /* lives longer than this */
    /* Memory files shared with the trainer: its state, where nothing is held; common/model/snapshot.h */
    int state_fd, snapshot_fd;
    /* event: AGENT_LISTED or AGENT_LOADED; borrowed for the call. */
    void (*done)(void *ctx, const struct agent_event *event);
    void *ctx;
};

int worker_load_open(struct worker_load **ret, struct loop *loop, const struct worker_load_options *options,
                     struct error *err);
/* kind: AGENT_LIST or AGENT_LOAD; request: the action's message. */
void worker_load_ask(struct worker_load *load, enum agent_action_kind kind, const struct message *request);
/* Gives the load under way up, if it is one: it ends soon, and is told like any other. */
void worker_load_stop(struct worker_load *load);
/* What the trainer said about itself: where its state lies, and its arithmetic, of which a state must be to
 * be exact here. */
void worker_load_know(struct worker_load *load, const struct msg_up *up);
/* Another number than before: the work under way gets on. */
int64_t worker_load_signs(const struct worker_load *load);
/* Gives up all that it can, and tells nobody; false while a call has not returned. */
bool worker_load_end(struct worker_load *load);
/* What is asked for and not begun is dropped, and a call under way waited for; comes after loop_run has
 * returned. */
void worker_load_free(struct worker_load *load);

#endif
