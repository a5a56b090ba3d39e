/* WebSockets with text frames, server and client, on a loop (libwebsockets stays inside ws.c).
 *
 * One struct ws listens at one port, or none, and makes any number of outgoing connections. Messages
 * are whole: fragments are put together, and one over RM_FRAME_MAX ends its connection. What is sent leaves
 * in the same turn of the loop where the socket takes it. TCP_NODELAY is set.
 *
 * Callbacks: `opened` once the connection stands (outgoing ones too), then `message`s, then `closed` exactly
 * once; an outgoing connection that never came to stand gets `closed` alone. A connection is valid until its
 * `closed` returns. In callbacks anything may be called but ws_free. Plain HTTP GETs of the server
 * are answered through `get`. Where this process may open no more descriptors, callers wait in the kernel.
 * ws_free comes when loop_run has returned. */
#ifndef RM_NET_WS_H
#define RM_NET_WS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/base/time.h"
#include "common/loop/loop.h"

struct ws;
struct ws_conn;

/* A plain GET. Strings are borrowed for the call. */
struct ws_get {
    const char *path;   /* "/v1/status" */
    const char *query;  /* "after=17&x"; "" where there is none */
    const char *accept; /* the header of that name; "" where there is none, or more than anybody needs */
    rm_time waited;     /* since it was first asked; RM_NEVER: it can't wait, too many do, or too many of its
                           address */
};

struct ws_options {
    const char *address; /* IPv4 or IPv6, to listen on; "::" is any of both; NULL: no server */
    int port;            /* 0: any free one */
    /* Incoming connections at once, each kind by itself (door.h): strangers, which the oldest leaves for
     * a new one; those of plain GETs; those that ws_prove was called for. */
    int strangers_max, watchers_max, proven_max;
    int waiting_max;         /* plain GETs whose answer may wait, of those; 0: 32 */
    int waiting_each;        /* of which so many from one address at most; 0: as many as there may be */
    rm_time stranger_within; /* since it was accepted; who is still a stranger then is closed. 0: 5 s */
    size_t queue_max;        /* bytes that may wait to leave on one connection */
    void (*opened)(void *ctx, struct ws_conn *conn);
    void (*message)(void *ctx, struct ws_conn *conn, const char *text, size_t length); /* NUL-terminated */
    void (*closed)(void *ctx, struct ws_conn *conn, const char *why);
    /* Fills body, sets *type ("application/json") and returns the HTTP status; NULL: all are 404. Where it
     * returns 0 the answer has to wait: it is asked for again by ws_get_again. */
    int (*get)(void *ctx, const struct ws_get *get, struct str *body, const char **type);
    void *ctx;
};

/* A port that is taken is ERR_MACHINE with a sentence that names it. */
int ws_open(struct ws **ret, struct loop *loop, const struct ws_options *options, struct error *err);
int ws_port(const struct ws *ws); /* where it listens; 0 without a server */
/* Asks `get` again for every GET that waits; how many still do then. Not from `get` itself. */
int ws_get_again(struct ws *ws);
int ws_gets_waiting(const struct ws *ws);
/* Closes all connections without further callbacks. Not from a callback of this ws. */
/* Not while anything else on the loop may open descriptors: libwebsockets closes one of its own twice, the
 * second time in a later turn of the loop, and another one's of the same number with it. */
void ws_free(struct ws *ws);
/* Takes nobody in from now on; NULL is fine. */
void ws_deafen(struct ws *ws);

/* Starts an outgoing connection to "host:port" or "[v6]:port". A later failure comes as `closed`. A name is
 * resolved on the spot, and may take long: see resolve.h. */
int ws_connect(struct ws_conn **ret, struct ws *ws, const char *address, struct error *err);

/* Whether anybody is at the address of this outgoing connection: TCP stands, and what is said over it is on
 * its way. */
bool ws_conn_reached(const struct ws_conn *conn);
/* What the other machine does not acknowledge within that long ends this connection (TCP_USER_TIMEOUT), once
 * it is reached: the machine is gone, or the network to it. A program there that only stands still
 * acknowledges, by its kernel, until what it does not read fills its buffer. Less than 1 ms: the system's own
 * patience. */
void ws_conn_patience(const struct ws_conn *conn, rm_time within);

/* -1 (and the connection is closed, `closed` comes in a later turn) where its queue passes queue_max. */
int ws_send(struct ws_conn *conn, const char *text, size_t length);
/* The other side of this incoming connection has shown who it is: it is no stranger any more. false where as
 * many as there may be are known already. */
bool ws_prove(struct ws_conn *conn);
/* Closes after what is queued has left; `closed` comes in a later turn with this reason. */
void ws_close(struct ws_conn *conn, const char *why);

void ws_conn_set(struct ws_conn *conn, void *owner); /* the user's own pointer; NULL at first */
void *ws_conn_get(const struct ws_conn *conn);
const char *ws_conn_peer(const struct ws_conn *conn); /* "127.0.0.1:53122", for logs */
bool ws_conn_incoming(const struct ws_conn *conn);

#endif
