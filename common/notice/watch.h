/* What to ask a machine's metadata next and when, and what its answers come to: which cloud it is, then that
 * cloud's questions, over and over. Pure: the shell (agent/notice/metadata_watch.h) asks and tells the time.
 *
 * AWS: a token by PUT (IMDSv2; a 401 asks for another one, and so does a 404 that would withdraw
 * a notice: it counts where the server has given a new one, as others have no such path at all), then
 * spot/instance-action every second, rebalance and maintenance every 5 s. GCE: preempted and
 * maintenance-event, each by a GET that waits for a change. Azure: its own name, then Scheduled Events every
 * second. Paths are the vendors' (docs/kubernetes.md names them).
 *
 * Only a whole answer of the vendor's form changes what is known: whatever else comes (nobody there, a token
 * refused, a redirect, an error, silence, too much, no JSON) is one sentence, until it is over or another
 * one, and the question is asked again with growing pauses. A sentence that comes again and again is said
 * ever more rarely (repeats.h). Where all questions fail again and again the cloud is looked for anew.
 * Moments are converted by the answer's own Date; one that is long past is no notice. What is odd about an
 * answer is a sentence, too, until it is over: a moment that is long past, one further ahead than is believed
 * (notice_most), one that is put off, which stays where it was first, and a Date that is more than 5 s away
 * from this machine's own clock. */
#ifndef RM_NOTICE_WATCH_H
#define RM_NOTICE_WATCH_H

#include <stddef.h>

#include "common/notice/notice.h"
#include "common/notice/pool.h"
#include "common/notice/repeats.h"

enum watch_cloud { WATCH_UNKNOWN, WATCH_AWS, WATCH_GCE, WATCH_AZURE };
const char *watch_cloud_name(enum watch_cloud cloud); /* "aws"; "" for WATCH_UNKNOWN */

enum {
    WATCH_SLOTS = 3, /* questions under way at a time */
    WATCH_ETAG_MAX = 72,
    WATCH_TOKEN_MAX = 256,
    WATCH_PATH_MAX = 256,
    WATCH_HEADER_MAX = 320,
    WATCH_SAY_MAX = 400
};

struct watch_question {
    int slot;
    const char *method; /* GET or PUT, without a body */
    char path[WATCH_PATH_MAX];
    char header[WATCH_HEADER_MAX];
    rm_time within; /* for all of the answer */
};

struct watch_answer {
    int status;      /* 0: none came */
    const char *why; /* where none came */
    const char *body;
    size_t length;
    char etag[WATCH_ETAG_MAX];
    bool google;     /* "Metadata-Flavor: Google" was among its headers */
    int64_t said_ms; /* its Date, in ms since the epoch; 0: it has none */
    int64_t wall_ms; /* this machine's own clock */
};

struct watch_slot {
    int topic;
    int asked;  /* what is under way here, a topic too; 0: nothing */
    bool hangs; /* that is to wait for a change */
    rm_time at; /* when it is asked next; RM_NEVER: nothing is */
    int failures;
    char etag[WATCH_ETAG_MAX];
    char trouble[WATCH_SAY_MAX]; /* said, and not over */
    rm_time asked_at;
    bool heard;   /* an answer to rely on */
    bool denied;  /* by a 404 that would withdraw a notice: the next one has a newer token */
    unsigned odd; /* what was odd about the newest answer, and said */
};

struct watch {
    enum watch_cloud cloud;
    char token[WATCH_TOKEN_MAX]; /* of AWS; "" none */
    char machine[128];           /* its own name, of Azure */
    struct watch_slot slot[WATCH_SLOTS];
    struct machine_pool pool;       /* asked for beside all this: pool.h */
    int looked;                     /* rounds of all clouds without an answer */
    struct repeats troubles, words; /* what was said of either; notices have room of their own */
    struct notices notices;
    bool shows;          /* they came to something when the revision grew last: */
    struct notice shown; /* this */
    bool skewed;         /* by the newest Date this machine's clock is wrong, and that was said */
    bool complete;       /* of each question there was an answer to rely on: what is not known is not so */
    int64_t revision;    /* grows with each change of the notices, and with the first complete word */
};

/* revision: what it begins with, so that who asks a new watcher with an older one's does not wait. */
void watch_init(struct watch *w, int64_t revision, rm_time now);

/* The next question that is due; false: there is none. Each has to be answered. */
bool watch_ask(struct watch *w, rm_time now, struct watch_question *ret);

/* What its cloud wants to have with each question. */
void watch_header(const struct watch *w, char ret[WATCH_HEADER_MAX]);

/* say: for a person, what is new, a sentence or several of them; else "". */
void watch_answer(struct watch *w, int slot, const struct watch_answer *answer, rm_time now,
                  char say[WATCH_SAY_MAX]);

/* When watch_ask is to be called again. */
rm_time watch_deadline(const struct watch *w);

#endif
