/* Asks one job's coordinator for its status, again and again:
 * GET http://IP:7070/v1/status?after=REVISION&told=SEQUENCE.
 *
 * The answer waits at the coordinator until something changes (up to 25 s). What comes is a tenant's word: no
 * redirects, 64 KiB at most, of the right job and term or it is dropped. Two questions lie at least half a
 * second apart, and stand in line with those to others; one that failed is asked again after 1 to 10 s. */
#ifndef RM_OPERATOR_POLLER_H
#define RM_OPERATOR_POLLER_H

#include "common/kube/bucket.h"
#include "common/loop/loop.h"
#include "common/net/http.h"
#include "operator/answers.h"
#include "operator/core/plan.h"

struct poller_options {
    struct http *http;
    struct answers *answers; /* the line in which those of all pollers are read */
    struct bucket *pace;     /* of the questions of all pollers together, in a line; NULL: there is none */
    int port;                /* of all coordinators; 0: OP_COORDINATOR_PORT */
    /* A new answer; view is the caller's to free. */
    void (*told)(void *ctx, struct coordinator_view *view);
    /* A question that was asked then got no answer. NULL: nobody listens. */
    void (*failed)(void *ctx, rm_time asked_at, const char *why);
    void *ctx;
};

struct poller;
int poller_open(struct poller **ret, struct loop *loop, const struct poller_options *options,
                struct error *err);
void poller_free(struct poller *poller);

/* Whom to ask: of which job (name_identity), at which address and term. The same again changes nothing; "" is
 * nobody. */
void poller_ask(struct poller *poller, const char *job, const char *ip, int term);
/* What to say with each question ("relieve=2.1&stay=3"; "": nothing): at once where it is something else than
 * was said last, before all who stand in line. Behind such a word nothing is said as "relieve=", which takes
 * it back. */
void poller_say(struct poller *poller, const char *relief);
/* The newest of that term's events that need not come again; older coordinators give them all the same. */
void poller_told(struct poller *poller, int term, int64_t sequence);
/* When the first question was asked since which none was answered, whatever was said anew meanwhile; 0: none
 * is without an answer, though the next one may be due. NULL: 0. */
rm_time poller_in_vain_since(const struct poller *poller);

#endif
