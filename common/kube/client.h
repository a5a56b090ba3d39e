/* Requests to the Kubernetes API server, on a loop.
 *
 * Reads and writes go over one connection (HTTP/2 where the server has it), watches over another: a watch of
 * a big cluster can't hold up a write, nor a lost connection break both. Nothing is sent twice by itself and
 * no redirect is followed: what happened is told with the server's reason and sentence, and the caller, who
 * knows what it wants in the end, decides. A connection whose other end answers no probe for 20 s is closed
 * (TCP keep-alive and user timeout), as is a request that takes over 30 s.
 *
 * All requests but watches and urgent ones pass one token bucket, wait in the order they came, and are sent
 * while fewer than 48 are under way; a late one goes when none of the others waits, or once in 32 requests.
 * Pure data in, borrowed JSON out: whoever asked projects what it needs into a struct of its own and keeps no
 * tree. */
#ifndef RM_KUBE_CLIENT_H
#define RM_KUBE_CLIENT_H

#include <stdbool.h>

#include "common/kube/answer.h"
#include "common/kube/config.h"
#include "common/kube/resource.h"
#include "common/loop/loop.h"

struct kube;
struct kube_call;
struct kube_request;

struct kube_options {
    struct kube_config *config; /* stays; its token is refreshed here */
    const char *manager;        /* field manager of what is written: "ringmaster-operator" */
    double per_second, burst;   /* of the bucket; 0: 50 and 100 */
    /* For each answer: what a program counts. NULL: nobody does. */
    void (*answered)(void *ctx, const struct kube_request *request, const struct kube_answer *answer,
                     rm_time took);
    void *ctx;
};

int kube_open(struct kube **ret, struct loop *loop, const struct kube_options *options, struct error *err);
void kube_free(struct kube *kube); /* gives up what is under way, without callbacks */

enum kube_verb {
    KUBE_GET,
    KUBE_LIST,
    KUBE_WATCH,
    KUBE_CREATE, /* POST */
    KUBE_APPLY,  /* server-side apply, as the owner of the fields named in the body, by force */
    KUBE_MERGE,  /* a JSON merge patch */
    KUBE_UPDATE, /* PUT: the body holds the resourceVersion that it replaces */
    KUBE_DELETE,
};
const char *kube_verb_name(enum kube_verb verb); /* as RBAC calls it: "create", "patch" */

/* Zero is a good default for what is not needed. Strings are copied. */
struct kube_request {
    enum kube_verb verb;
    const struct kube_resource *resource;
    const char *namespace;   /* NULL: all, or the resource has none */
    const char *name;        /* NULL for LIST, WATCH; of CREATE only read_existing wants it */
    const char *subresource; /* "status", "scale", "eviction" */
    const char *body;        /* JSON text; not for GET, LIST, WATCH, DELETE */
    bool dry_run;            /* all checks, nothing kept */
    bool read_existing;      /* CREATE: on KUBE_EXISTS the answer's object is what is there */
    bool urgent;             /* past the token bucket */
    bool late;               /* behind all that are not: nobody waits for it */
    const char *labels;      /* LIST, WATCH: selector */
    int limit;               /* LIST: objects of one page */
    const char *from;        /* LIST: metadata.continue of the page before */
    const char *version;     /* WATCH: resourceVersion to go on from */
    int seconds;             /* WATCH: how long the server should keep it up */
    const char *uid;         /* DELETE: only this very object; else KUBE_CONFLICT */
    int grace_s;             /* DELETE: grace; 0: the object's own */
    rm_time silent_within;   /* WATCH: not one byte for so long ends it */
    rm_time within;          /* for all of it; 0: 30 s; not for WATCH */
    /* LIST, WATCH: the bytes of an answer with status 200, instead of a parsed object; -1 ends it. Not to
     * cancel from. */
    int (*bytes)(void *ctx, const char *bytes, size_t count);
    /* Exactly once, in a later turn, unless cancelled. May send and cancel others. NULL: nobody waits. */
    void (*done)(void *ctx, const struct kube_answer *answer);
    void *ctx;
};

int kube_send(struct kube *kube, struct kube_call **ret, const struct kube_request *request,
              struct error *err);
void kube_cancel(struct kube_call *call); /* without done; NULL is fine */

/* Requests that wait for a token, and those sent and not answered (without watches). */
int kube_waiting(const struct kube *kube);
int kube_in_flight(const struct kube *kube);

#endif
