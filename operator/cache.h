/* What the operator knows of the cluster: jobs, their pods, nodes, and which of the objects around them are
 * there. Filled by the reflectors and by the answers to our own writes, so that a plan sees what the one
 * before it did; an older version never replaces a newer one (resourceVersions of one kind are numbers that
 * grow). A pod that was told by an answer alone, and by no watch within 30 s, is forgotten: it was gone
 * before the answer came.
 *
 * Pods are kept by the job that controls them (namespace, name and uid), whichever of the two comes first.
 * Callbacks tell what is to be looked at anew; they come in the middle of a change and only take note. */
#ifndef RM_OPERATOR_CACHE_H
#define RM_OPERATOR_CACHE_H

#include "common/kube/reflector.h"
#include "operator/core/plan.h"
#include "operator/queue.h"
#include "operator/table.h"

enum { CACHE_KEY_MAX = OP_NAMESPACE_MAX + OP_NODE_MAX };

struct owned_pods;
struct work;

struct job_entry {
    struct queue_item item;  /* first: the queue hands it out, and it is the job */
    char key[CACHE_KEY_MAX]; /* "namespace/name" */
    struct job_view view;
    struct op_memo memo;
    struct coordinator_view *coordinator; /* its last answer, NULL: none; owned */
    int64_t answered_ms;                  /* wall clock of that answer; 0: none */
    struct owned_pods *owned;
    bool gone;             /* out of the cache; kept only while it is in work */
    void *reconcile_state; /* the reconciler's own */
    struct work *work;     /* what is being done for it; NULL: nothing */
    uint64_t mark;         /* of the last list that named it */
};

struct cache {
    struct table jobs, pods, nodes; /* by "namespace/name", nodes by name */
    struct table owned;             /* by "namespace/job/uid" */
    struct table on_nodes;          /* by the node's name */
    struct table around[OP_RESOURCES];
    bool nodes_denied; /* we may not see nodes */
    uint64_t mark;     /* of the list under way; one counter for all kinds */
    uint64_t marks[OP_RESOURCES + 1];
    void (*changed)(void *ctx, struct job_entry *job);
    /* It is out of the cache and about to be freed (cache_job_free), by whoever gets this. */
    void (*removed)(void *ctx, struct job_entry *job);
    void *ctx;
};

void cache_clear(struct cache *cache); /* without callbacks; jobs are freed too */
void cache_job_free(struct job_entry *job);

/* A reflector's words, about OP_JOBS, OP_PODS, OP_SERVICES, OP_BUDGETS, OP_POLICIES. */
void cache_listing(struct cache *cache, enum op_resource resource);
void cache_listed(struct cache *cache, enum op_resource resource);
/* false where the object is none of ours or can't be understood; err tells. */
bool cache_object(struct cache *cache, enum op_resource resource, enum kube_change change,
                  const struct js *object, struct error *err);

/* The same about nodes. */
void cache_nodes_listing(struct cache *cache);
void cache_nodes_listed(struct cache *cache);
void cache_node(struct cache *cache, enum kube_change change, const struct js *object);

/* What an answer to our own write told: a pod, or a job. */
void cache_answer(struct cache *cache, enum op_resource resource, const struct js *object, rm_time now);

/* Was this Service, budget or policy seen, and as one that the job controls? */
bool cache_has_own(const struct cache *cache, enum op_resource resource, const struct job_entry *job,
                   const char *name);

/* What an operator before this one applied for the job, and nobody took away, as its annotations tell: this
 * one need not apply it again where it would be the same. */
void cache_recall_applied(const struct cache *cache, struct job_entry *job);

/* The pods of a job, for a plan; valid until the cache changes. Forgets those that no watch has told. */
const struct pod_view *const *cache_pods(struct cache *cache, struct job_entry *job, rm_time now,
                                         int *ret_count);
const struct node_view *cache_find_node(void *cache, const char *name);

#endif
