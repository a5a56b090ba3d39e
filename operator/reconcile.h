/* Looks at each job that something happened to, decides (operator/core), has it done, and comes back when
 * there is a reason to: a change, a moment that the plan named, a refusal's back-off.
 *
 * A refusal is told in the job's status at once; what was refused is tried again after 5 s to 5 min (0.5 to
 * 30 s where the server was only busy or away), or as soon as the job's spec changes. Until then the job gets
 * status writes, and deletes of what was not refused, alone. A status that is refused itself is told by an
 * event. How often a status is written: status_pace.h. */
#ifndef RM_OPERATOR_RECONCILE_H
#define RM_OPERATOR_RECONCILE_H

#include "common/kube/recorder.h"
#include "common/net/http.h"
#include "operator/cache.h"
#include "operator/metrics.h"

struct price_file;

struct reconciler_options {
    struct loop *loop;
    struct kube *kube;
    struct http *const *http; /* (https) to coordinators, who share them out */
    int https;
    struct cache *cache;
    struct recorder *recorder;
    struct metrics *metrics;
    const struct price_file *prices; /* NULL: there are none */
    struct op_settings settings;     /* its strings stay */
    int coordinator_port;            /* 0: the one in the pods we make; another in tests */
    bool (*may_write)(void *ctx);    /* do we lead, at this instant? */
    /* Is this namespace another operator's? Its jobs are in the cache and nothing is done for them. Call
     * reconciler_look_at_all when that has changed. */
    bool (*leaves_out)(void *ctx, const char *namespace);
    void *ctx;
};

struct reconciler;
int reconciler_open(struct reconciler **ret, const struct reconciler_options *options, struct error *err);
/* It is freed behind the client, which gives the requests under way up, and before the cache. */
void reconciler_free(struct reconciler *reconciler);

/* Nothing is looked at before this: the caches are complete. */
void reconciler_start(struct reconciler *reconciler);
/* Begins nothing new. */
void reconciler_stop(struct reconciler *reconciler);
int reconciler_in_work(const struct reconciler *reconciler);
int reconciler_queued(const struct reconciler *reconciler); /* that wait, now or for a moment to come */

/* The cache's callbacks. */
void reconciler_changed(struct reconciler *reconciler, struct job_entry *job);
/* The same of a change that a watch told: how long it takes to act on it is measured. */
void reconciler_heard(struct reconciler *reconciler, struct job_entry *job);
void reconciler_removed(struct reconciler *reconciler, struct job_entry *job);
/* All of them: the nodes have become known, say. */
void reconciler_look_at_all(struct reconciler *reconciler);

#endif
