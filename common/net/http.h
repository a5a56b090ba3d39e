/* HTTP on a loop (libcurl stays inside http.c): any number of requests at once, connections kept for the
 * next, HTTP/1.1, or HTTP/2 where asked for and offered. Nothing is retried and no redirect is followed: what
 * happened is told, the caller decides. Bodies go out from the caller's memory through one buffer of fixed
 * size, and come in as runs of bytes on the way from the socket; a request takes the same memory whatever it
 * moves. */
#ifndef RM_NET_HTTP_H
#define RM_NET_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/loop/loop.h"

struct http;

int http_open(struct http **ret, struct loop *loop, struct error *err);
/* Keeps a connection to each peer, however many they are: of one who asks thousands by turns. Others keep
 * some. */
void http_keep_all(struct http *http);
/* Gives up what is under way, without callbacks. Not from a callback. */
void http_free(struct http *http);

enum http_outcome {
    HTTP_ANSWERED,      /* with a status, whatever it is, and a whole body */
    HTTP_NO_CONNECTION, /* no such host, nobody listens, no connection in time */
    HTTP_SILENT,        /* nothing moved for silent_within, or not done within the time for all of it */
    HTTP_BROKEN,        /* cut in the middle, fewer bytes than announced, not HTTP */
    HTTP_UNTRUSTED,     /* the certificate doesn't hold, or ca_file can't be read */
    HTTP_DECLINED,      /* body_came said no, or the request itself can't be */
};

struct http_answer {
    enum http_outcome outcome;
    int status;      /* 0 where none came */
    const char *why; /* "" where answered; a sentence without the URL's query; borrowed for the call */
};

struct http_run {
    const void *bytes;
    size_t count;
};

/* Who to trust and who to be, as PEM text in memory; NULL: none of it. Stays until the request is done. */
struct http_identity {
    const char *ca;         /* instead of the system's certificates */
    const char *cert, *key; /* the client's own, both or none */
};

/* All of it is copied but the identity and the bytes of the body, which stay until done or http_cancel. */
struct http_request {
    const char *method;          /* GET, HEAD, PUT, POST, PATCH, DELETE */
    const char *url;             /* http:// or https://, encoded; sent as it is written */
    const char *const *header;   /* (headers) "Name: value"; a value may be empty */
    int headers;                 /* Host, Content-Length come by themselves */
    const struct http_run *body; /* (runs) one behind the other; PUT and POST send an empty one too */
    int runs;
    rm_time connect_within;               /* 0: 10 s */
    rm_time silent_within;                /* 0: no limit; exact to a few seconds */
    rm_time within;                       /* for all of it; 0: no limit */
    const char *ca_file;                  /* certificates to trust; NULL: the system's */
    const struct http_identity *identity; /* NULL: nobody in particular */
    rm_time
        lost_within; /* a peer whose machine answers no probe so long is gone (TCP's own); 0: the system's */
    int buffer;      /* bytes, each way; 0: 256 KiB, for those who move much */
    bool http2;      /* where TLS offers it: requests to one server share one connection */
    bool fresh;      /* on a new connection to what the name means by now, not on one that was kept: that
                      * may lead to another one, or be dead, and is then sent to twice, unseen. It is closed
                      * behind the answer: one for each piece of a checkpoint would be thousands */
    bool address;    /* the host is an address: there is nothing to look up, nor to keep of that */
    bool proxy;      /* as HTTPS_PROXY, HTTP_PROXY and NO_PROXY say */
    bool secret;     /* wipe the bytes of the answer behind body_came */
    /* Each header line of the answer; NULL: nobody asks. Lines over 2 KiB are left out. */
    void (*header_came)(void *ctx, int status, const char *name, const char *value);
    /* The body's bytes, in order; -1 ends the request as declined. NULL: dropped. */
    int (*body_came)(void *ctx, int status, const void *bytes, size_t count);
    /* Exactly once, in a later turn, unless cancelled; the call is gone then. May start and cancel others. */
    void (*done)(void *ctx, const struct http_answer *answer);
    void *ctx;
};

/* Is "HOST" or "HOST:PORT", with or without a path behind it, this machine, to which no proxy leads? By its
 * name alone. */
bool http_is_own_machine(const char *host);

struct http_call;
int http_start(struct http *http, struct http_call **ret, const struct http_request *request,
               struct error *err);
/* Ends it without done. Not from header_came or body_came. */
void http_cancel(struct http_call *call);
/* Bytes of the body that have been handed to the connection. */
int64_t http_sent(const struct http_call *call);

/* The same for small answers of our own programs: status pages and the like. */
struct http_get {
    const char *url; /* http:// only; redirects are not followed, no proxy is asked */
    rm_time within;  /* ns for all of it */
    size_t body_max; /* a longer answer is an error */
    bool fresh;      /* as in http_request */
    /* Exactly once, in a later turn. status 0: nothing came, why says what happened. Otherwise the answer's
     * status and its body, NUL-terminated, borrowed for the call; why is "". */
    void (*done)(void *ctx, int status, const char *body, size_t length, const char *why);
    void *ctx;
};
int http_get(struct http *http, const struct http_get *request, struct error *err);

#endif
