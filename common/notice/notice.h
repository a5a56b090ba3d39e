/* What is told of a machine's end before it comes, from whatever source, and what it comes to when several
 * speak.
 *
 * A notice says whether the machine *will* go or *may* go, and until when it is sure to be there. A `may` is
 * a proposal: it may come to nothing (a replacement that can't be had, an event that is cancelled), so it is
 * never a reason to train with fewer; a `will` is. Who is told twice of one event, by the cloud's metadata
 * and by a taint that stands for it, has one notice: the surer word, and of two times the earlier one.
 *
 * What a new source needs: CONTRIBUTING.md, "Where a new thing goes".
 *
 * Times are the caller's clock (rm_time); notice_until makes them of what a source's clock says. Pure. */
#ifndef RM_NOTICE_H
#define RM_NOTICE_H

#include <stdbool.h>

#include "common/base/time.h"

/* By how much one moment that is told twice may differ: sources have whole seconds, clocks are read anew. */
#define NOTICE_SAME_MOMENT (2 * RM_S)

enum notice_certainty { NOTICE_MAY, NOTICE_WILL };

/* What happens to the machine. Several sources tell of one cause. */
enum notice_cause {
    NOTICE_CAUSE_RECLAIM,     /* the provider takes a spot machine back */
    NOTICE_CAUSE_MAINTENANCE, /* its host is serviced, or broken */
    NOTICE_CAUSE_SCALE_DOWN,  /* an autoscaler does without it, or puts another in its place */
    NOTICE_CAUSE_DRAIN,       /* a person or a controller empties it */
    NOTICE_CAUSES
};

/* What the cluster says of a pod's end, or of a Node's that has begun, has no row: it is no word that comes
 * before another one and may be merged with it, but is acted on where it is seen. A Node that is deleted, an
 * eviction (DisruptionTarget) and a kubelet that shuts its machine down: operator/core (view.h, account.h).
 * SIGTERM, which each of them ends in: the worker's own core (AGENT_TERM). */
enum notice_source {
    /* the machine's own metadata (metadata.h) */
    NOTICE_AWS_SPOT,
    NOTICE_AWS_REBALANCE,
    NOTICE_AWS_MAINTENANCE,
    NOTICE_GCE_PREEMPTED,
    NOTICE_GCE_MAINTENANCE,
    NOTICE_AZURE,
    /* taints of its Node (taint.h) */
    NOTICE_NTH_SPOT,
    NOTICE_NTH_REBALANCE,
    NOTICE_NTH_ASG,
    NOTICE_NTH_MAINTENANCE,
    NOTICE_KARPENTER,
    NOTICE_AUTOSCALER,
    NOTICE_AUTOSCALER_CANDIDATE,
    NOTICE_GKE,
    NOTICE_AKS,
    NOTICE_OUT_OF_SERVICE,
    NOTICE_CORDON, /* a taint of Kubernetes' own */
    NOTICE_SOURCES
};

/* One row a source. */
struct notice_kind {
    const char *name; /* as events and the status say it: "aws-spot" */
    enum notice_cause cause;
    enum notice_certainty certainty; /* where its word does not say which */
    rm_time lead;                    /* what its vendor promises; 0: nothing */
};
const struct notice_kind *notice_kind(enum notice_source source);
/* NOTICE_SOURCES where there is none of that name. */
enum notice_source notice_source_named(const char *name);
const char *notice_cause_name(enum notice_cause cause);
/* NOTICE_CAUSES where there is none of that name. */
enum notice_cause notice_cause_named(const char *name);
const char *notice_certainty_name(enum notice_certainty certainty); /* "may", "will" */

enum { NOTICE_ID_MAX = 64 };

struct notice {
    enum notice_source source;
    enum notice_cause cause; /* the source's, where its word says no other */
    enum notice_certainty certainty;
    rm_time until;          /* the machine is there until then; RM_NEVER: no time was told */
    char id[NOTICE_ID_MAX]; /* of the event, where its source names events; else "" */
    bool startable;         /* it may be told to begin, by its id: start_request.h */
};

/* How far ahead a source's moment is believed to be: twice what its vendor promises, and where that is
 * nothing an hour. */
rm_time notice_most(enum notice_source source);

/* When a source's moment comes by the caller's clock. at_ms: the moment, said_ms: the source's own clock when
 * it answered (its Date header), both milliseconds since the epoch. Never in the past, and never further
 * ahead than notice_most: clocks differ, and a liar must not keep a machine that goes. */
rm_time notice_until(enum notice_source source, int64_t at_ms, int64_t said_ms, rm_time now);

enum { NOTICES_MAX = 16 };

struct notices {
    int count;
    struct notice at[NOTICES_MAX]; /* in the order in which they came */
};

enum notice_news {
    NOTICE_SAME,   /* nothing that was not known */
    NOTICE_NEW,    /* nobody has told of this cause */
    NOTICE_SURER,  /* what may come will come */
    NOTICE_SOONER, /* the time is nearer than it was */
    /* of notice_change alone */
    NOTICE_LATER,
    NOTICE_MILDER,  /* what would come only may: the surer word is withdrawn */
    NOTICE_INSTEAD, /* another cause, that is less urgent: the word before is withdrawn */
    NOTICE_GONE,    /* nothing is told any more */
};

/* Takes a word in, and says what it changes for its cause. One of a source and id that is known is merged
 * into it: a time only comes nearer, and `will` stays until it is withdrawn. Where there is no room the least
 * urgent goes. */
enum notice_news notices_take(struct notices *n, const struct notice *told);

/* The source no longer tells of it (its taint is gone, its event cancelled). True where that ends what was
 * known of its cause, of which *ret (NULL: nobody asks) was the word that is gone. */
bool notices_withdraw(struct notices *n, enum notice_source source, const char *id, struct notice *ret);

/* All that a source of words now tells. whole: what is not among them is not so; else it only adds to what is
 * known, as of one that has just begun and has not asked everybody yet. */
void notices_hear(struct notices *n, const struct notices *told, bool whole);

/* What is new for who knew *was as all that was told (notices_first) and now hears *is; NULL: nothing.
 * Another source or cause is NOTICE_NEW, where the word before may still stand. Moments that are told again
 * differ by a second or two, which is no news. */
enum notice_news notice_change(const struct notice *was, const struct notice *is);

/* What all of them come to: a `will` before a `may`, then the nearest time. NULL: there is none. */
const struct notice *notices_first(const struct notices *n);

#endif
