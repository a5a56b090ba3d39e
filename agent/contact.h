/* The worker's connection to its coordinator: each try looks its name up anew, makes the handshake
 * (docs/control-connection.md), and seals what is said from then on. When to try again is decided elsewhere
 * (core/agent.h).
 *
 * The loop and the ws are borrowed. As one ws has this worker's pages too, its owner hands its callbacks on:
 * contact_opened, contact_message, contact_closed. */
#ifndef RM_AGENT_CONTACT_H
#define RM_AGENT_CONTACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/time.h"
#include "common/loop/loop.h"
#include "common/net/ws.h"
#include "common/wire/message.h"

struct contact;

struct contact_options {
    struct loop *loop;
    struct ws *ws;
    const char *address;        /* "127.0.0.1:40312", "gpt-coordinator:7070"; borrowed */
    const uint8_t *job_key;     /* (JOB_KEY_BYTES); borrowed */
    void (*greeted)(void *ctx); /* somebody is there: a hello is to be sent */
    void (*refused)(void *ctx); /* who is there does not have the job's key; `gone` follows */
    /* A welcome comes first, or `abandon`. Borrowed for the call. */
    void (*heard)(void *ctx, struct message *message);
    void (*gone)(void *ctx, const char *why); /* no connection came about, or the one there was is over */
    void *ctx;
};

/* ERR_MACHINE without memory. */
int contact_open(struct contact **ret, const struct contact_options *options, struct error *err);
/* Before the ws is freed. NULL is fine. */
void contact_free(struct contact *contact);

/* How long a coordinator may be silent, of the job; until that is known 10 s. Holds for the connection there
 * is as well. */
void contact_know(struct contact *contact, rm_time lost_after);
/* Nothing where there is a connection, or a try. What comes of it is told by `greeted` or by `gone`, which
 * may be called before this returns. */
void contact_try(struct contact *contact);
/* Whether there is a connection, or one that may still come to stand. */
bool contact_up(const struct contact *contact);
/* Nothing without a connection, and nothing but the hello before that is said. */
void contact_send(struct contact *contact, struct message *message);
/* Ends the connection, if there is one: `gone` follows in a later turn. */
void contact_hang_up(struct contact *contact, const char *why);
/* The same for good: nothing is heard from now on but `gone`, and nobody is called. */
void contact_end(struct contact *contact, const char *why);

/* What the ws tells of any connection; of others than the coordinator's nothing comes. */
bool contact_opened(struct contact *contact, struct ws_conn *conn); /* whether it is the coordinator's */
void contact_message(struct contact *contact, const struct ws_conn *conn, const char *frame, size_t length);
void contact_closed(struct contact *contact, const struct ws_conn *conn, const char *why);

#endif
