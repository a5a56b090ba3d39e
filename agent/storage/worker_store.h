/* The agent's writing of checkpoints, off the loop: a slice, and the manifest. One after the other, in the
 * order asked for, on a background thread each; the disk may take its time while the loop goes on. What is
 * read: worker_load.h. */
#ifndef RM_AGENT_WORKER_STORE_H
#define RM_AGENT_WORKER_STORE_H

#include "agent/core/agent.h"
#include "common/job/spec.h"
#include "common/loop/loop.h"

struct worker_store;

struct worker_store_options {
    const struct job_spec *spec; /* lives longer than the store */
    const uint8_t *key;          /* of the job (JOB_KEY_BYTES): names the run that owns the checkpoints */
    int snapshot_fd;             /* shared with the trainer: common/model/snapshot.h */
    /* event: AGENT_WRITTEN or AGENT_PUBLISHED; borrowed for the call. */
    void (*done)(void *ctx, const struct agent_event *event);
    void *ctx;
};

int worker_store_open(struct worker_store **ret, struct loop *loop,
                      const struct worker_store_options *options, struct error *err);
/* kind: AGENT_WRITE or AGENT_PUBLISH; request: the action's message. */
void worker_store_ask(struct worker_store *store, enum agent_action_kind kind, const struct message *request);
/* What the trainer said about itself and its data: written into manifests from now on. */
void worker_store_know(struct worker_store *store, const struct msg_up *up);
/* Bytes that the snapshot's memory file needs. */
int64_t worker_store_snapshot_bytes(const struct job_spec *spec);
/* The memory of the slice that is being written is needed: it is given up (and fails, to be tried again)
 * where the store is away, now or later; not while bytes move. */
void worker_store_yield(struct worker_store *store);
bool worker_store_idle(const struct worker_store *store);
/* Another number than before: the work under way gets on. */
int64_t worker_store_signs(const struct worker_store *store);
/* Gives up all that it can, and tells nobody; false while a call has not returned. */
bool worker_store_end(struct worker_store *store);
/* What is asked for and not begun is dropped, and a call under way waited for; comes after loop_run has
 * returned. */
void worker_store_free(struct worker_store *store);

#endif
