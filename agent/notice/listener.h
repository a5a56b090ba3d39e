/* What a worker in a pod hears of its machine's end: from the agent of its machine (RINGMASTER_POD_HOST_IP
 * and RINGMASTER_POD_NODE_PORT name it), asked again and again by long polls, or, where it shares its
 * machine's network and is told where (RINGMASTER_METADATA), from the metadata itself. Neither is needed:
 * whatever answers badly, or not at all, is one sentence in the log and asked again after 1 to 30 s.
 *
 * The agent of a machine is told nothing: whoever reaches its port could else end the machine under others.
 * So a cloud hears from a worker that asks it by itself, or from nobody, that its machine may go. */
#ifndef RM_AGENT_LISTENER_H
#define RM_AGENT_LISTENER_H

#include "agent/core/agent.h"
#include "common/base/error.h"
#include "common/loop/loop.h"

struct listener;

struct listener_options {
    /* AGENT_NOTICED: what all that was heard comes to, whenever it is another word than before. AGENT_NOTICE:
     * the machine will go, and this worker with it; again where it is sooner. */
    void (*happened)(void *ctx, const struct agent_event *event);
    void *ctx;
};

/* *ret is NULL where the environment names nobody to ask. A port or an address that is none: ERR_USAGE. */
int listener_open(struct listener **ret, struct loop *loop, const struct listener_options *options,
                  struct error *err);
/* This worker has left, and nothing that it had is to be saved any more: where it asks the metadata itself,
 * and a person said that the machine is its alone (RINGMASTER_METADATA_START), the cloud is told that what it
 * has planned for this machine may begin. Turns the loop until that is answered, for seconds at most. */
void listener_let_machine_go(struct listener *listener); /* NULL is fine */

void listener_free(struct listener *listener); /* NULL is fine */

#endif
