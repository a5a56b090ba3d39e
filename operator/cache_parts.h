/* What the parts of the cache know of each other. */
#ifndef RM_OPERATOR_CACHE_PARTS_H
#define RM_OPERATOR_CACHE_PARTS_H

#include "operator/cache.h"

struct pod_entry {
    struct pod_view view;
    char key[CACHE_KEY_MAX];
    char version[OP_VERSION_MAX];
    struct owned_pods *owned;
    struct on_node *on;               /* NULL: it has no node yet */
    struct pod_entry *beside, **link; /* the next one there; link points at what points here */
    rm_time told_at;                  /* by an answer alone, then; 0: a watch has told of it */
    uint64_t mark;
};

enum { OWNED_PODS_NAME_MAX = OP_NAMESPACE_MAX + OP_NAME_MAX + OP_UID_MAX };

/* A job's pods, whether the job is there yet or not. A pod belongs to those that its namespace and
 * its controller name together: nothing in another namespace, and no namesake's pod, ever gets in. */
struct owned_pods {
    char name[OWNED_PODS_NAME_MAX]; /* "namespace/job/uid of the job" */
    struct job_entry *job;
    struct pod_entry **pod;
    const struct pod_view **view; /* the same pods, for plans; as many places */
    int count, room;
};

/* The pods on a node, whether the node is known or not: of a hundred thousand pods nobody looks for these. */
struct on_node {
    char name[OP_NODE_MAX];
    struct pod_entry *first;
};

struct node_entry {
    struct node_view view;
    uint64_t mark;
};

/* Is version `a` newer than `b`? "" is older than all. */
bool version_newer(const char *a, const char *b);
const char *object_text(const struct js *object, const char *key); /* of metadata; "" */
void object_key_of(const struct js *object, char out[CACHE_KEY_MAX]);

void owned_pods_name(const char *namespace, const char *job, const char *uid, char out[OWNED_PODS_NAME_MAX]);
struct owned_pods *owned_pods_get(struct cache *cache, const char *name); /* made where there is none */
void owned_pods_let_go(struct cache *cache, struct owned_pods *owned);    /* freed where nobody is in it */

/* told_at: when, of an answer; 0: a watch tells. */
bool pods_put(struct cache *cache, const struct js *object, rm_time told_at, struct error *err);
void pods_remove(struct cache *cache, const struct js *object);
void pods_sweep(struct cache *cache);
void pods_clear(struct cache *cache);

#endif
