/* The pods and nodes of the operator's cache: kept by the job that controls them, forgotten when nothing
 * tells of them any more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator/cache.h"
#include "operator/cache_parts.h"

static const rm_time told_for = 30 * RM_S; /* an answer's word, without a watch's */

/* --- the pods of a job --- */

void owned_pods_name(const char *namespace, const char *job, const char *uid, char out[OWNED_PODS_NAME_MAX])
{
    snprintf(out, OWNED_PODS_NAME_MAX, "%.*s/%.*s/%.*s", OP_NAMESPACE_MAX - 1, namespace, OP_NAME_MAX - 1,
             job, OP_UID_MAX - 1, uid);
}

struct owned_pods *owned_pods_get(struct cache *cache, const char *name)
{
    struct owned_pods *owned = table_get(&cache->owned, name);
    if (owned)
        return owned;
    owned = calloc(1, sizeof *owned);
    if (!owned)
        abort();
    text_copy(owned->name, sizeof owned->name, name);
    table_put(&cache->owned, name, owned);
    return owned;
}

void owned_pods_let_go(struct cache *cache, struct owned_pods *owned)
{
    if (owned->job || owned->count)
        return;
    table_remove(&cache->owned, owned->name);
    free(owned->pod);
    free(owned->view);
    free(owned);
}

static void owned_pods_join(struct owned_pods *owned, struct pod_entry *pod)
{
    if (owned->count == owned->room) {
        owned->room = owned->room ? 2 * owned->room : 8;
        owned->pod = realloc(owned->pod, (size_t)owned->room * sizeof(struct pod_entry *));
        owned->view = realloc(owned->view, (size_t)owned->room * sizeof(struct pod_view *));
        if (!owned->pod || !owned->view)
            abort();
    }
    owned->view[owned->count] = &pod->view;
    owned->pod[owned->count++] = pod;
    pod->owned = owned;
}

static void owned_pods_leave(struct cache *cache, struct pod_entry *pod)
{
    struct owned_pods *owned = pod->owned;
    for (int i = 0; i < owned->count; i++)
        if (owned->pod[i] == pod) {
            owned->pod[i] = owned->pod[--owned->count];
            owned->view[i] = owned->view[owned->count];
            break;
        }
    owned_pods_let_go(cache, owned);
}

/* --- the pods on a node --- */

static void join_node(struct cache *cache, struct pod_entry *pod)
{
    if (!*pod->view.node)
        return;
    struct on_node *on = table_get(&cache->on_nodes, pod->view.node);
    if (!on) {
        on = calloc(1, sizeof *on);
        if (!on)
            abort();
        text_copy(on->name, sizeof on->name, pod->view.node);
        table_put(&cache->on_nodes, on->name, on);
    }
    pod->on = on;
    pod->beside = on->first;
    pod->link = &on->first;
    if (on->first)
        on->first->link = &pod->beside;
    on->first = pod;
}

static void leave_node(struct cache *cache, struct pod_entry *pod)
{
    struct on_node *on = pod->on;
    if (!on)
        return;
    *pod->link = pod->beside;
    if (pod->beside)
        pod->beside->link = pod->link;
    pod->on = NULL;
    pod->beside = NULL;
    if (on->first)
        return;
    table_remove(&cache->on_nodes, on->name);
    free(on);
}

/* --- pods --- */

static void tell_job(struct cache *cache, const struct owned_pods *owned)
{
    if (owned->job)
        cache->changed(cache->ctx, owned->job);
}

static void drop_pod(struct cache *cache, struct pod_entry *pod)
{
    struct job_entry *job = pod->owned->job;
    table_remove(&cache->pods, pod->key);
    leave_node(cache, pod);
    owned_pods_leave(cache, pod);
    free(pod);
    if (job)
        cache->changed(cache->ctx, job);
}

static struct pod_entry *new_pod(struct cache *cache, const char *key, const char *owned)
{
    struct pod_entry *pod = calloc(1, sizeof *pod);
    if (!pod)
        abort();
    text_copy(pod->key, sizeof pod->key, key);
    owned_pods_join(owned_pods_get(cache, owned), pod);
    table_put(&cache->pods, key, pod);
    return pod;
}

bool pods_put(struct cache *cache, const struct js *object, rm_time told_at, struct error *err)
{
    char key[CACHE_KEY_MAX], owned[OWNED_PODS_NAME_MAX];
    struct pod_view view;
    const char *version = object_text(object, "resourceVersion");
    object_key_of(object, key);
    struct pod_entry *pod = table_get(&cache->pods, key);
    if (pod) {
        pod->mark = cache->marks[OP_PODS];
        pod->told_at = told_at ? pod->told_at : 0;
    }
    if (pod && !version_newer(version, pod->version))
        return true;
    if (!pod && told_at && *object_text(object, "deletionTimestamp"))
        return true; /* the watch has told of its end before the answer to its deletion came */
    if (pod_project(object, &view, err) < 0)
        return false;
    owned_pods_name(object_text(object, "namespace"), view.owner, view.owner_uid, owned);
    if (pod && strcmp(pod->owned->name, owned) != 0) {
        drop_pod(cache, pod);
        pod = NULL;
    }
    if (!pod) {
        pod = new_pod(cache, key, owned);
        pod->told_at = told_at;
    }
    bool moves = strcmp(pod->view.node, view.node) != 0;
    if (moves)
        leave_node(cache, pod);
    pod->view = view;
    if (moves)
        join_node(cache, pod);
    pod->mark = cache->marks[OP_PODS];
    text_copy(pod->version, sizeof pod->version, version);
    tell_job(cache, pod->owned);
    return true;
}

void pods_remove(struct cache *cache, const struct js *object)
{
    char key[CACHE_KEY_MAX];
    object_key_of(object, key);
    struct pod_entry *pod = table_get(&cache->pods, key);
    if (pod && !strcmp(pod->view.uid, object_text(object, "uid")))
        drop_pod(cache, pod);
}

static void sweep_pod(void *ctx, const char *name, void *value)
{
    struct cache *cache = ctx;
    struct pod_entry *pod = value;
    (void)name;
    if (pod->mark != cache->marks[OP_PODS])
        drop_pod(cache, pod);
}

void pods_sweep(struct cache *cache)
{
    table_each(&cache->pods, sweep_pod, cache);
}

const struct pod_view *const *cache_pods(struct cache *cache, struct job_entry *job, rm_time now,
                                         int *ret_count)
{
    struct owned_pods *owned = job->owned;
    for (int i = owned->count - 1; i >= 0; i--)
        if (owned->pod[i]->told_at && now - owned->pod[i]->told_at >= told_for)
            drop_pod(cache, owned->pod[i]); /* the job keeps its list */
    *ret_count = owned->count;
    return owned->view;
}

static void free_entry(void *ctx, const char *name, void *value)
{
    (void)ctx, (void)name;
    free(value);
}

static void free_owned_pods(void *ctx, const char *name, void *value)
{
    struct owned_pods *owned = value;
    (void)ctx, (void)name;
    free(owned->pod);
    free(owned->view);
    free(owned);
}

void pods_clear(struct cache *cache)
{
    table_each(&cache->pods, free_entry, NULL);
    table_clear(&cache->pods);
    table_each(&cache->owned, free_owned_pods, NULL);
    table_clear(&cache->owned);
    table_each(&cache->on_nodes, free_entry, NULL);
    table_clear(&cache->on_nodes);
}

/* --- nodes --- */

static void node_changed(struct cache *cache, const char *name)
{
    const struct on_node *on = table_get(&cache->on_nodes, name);
    for (const struct pod_entry *pod = on ? on->first : NULL; pod; pod = pod->beside)
        tell_job(cache, pod->owned);
}

static void drop_node(struct cache *cache, struct node_entry *node)
{
    table_remove(&cache->nodes, node->view.name);
    node_changed(cache, node->view.name);
    free(node);
}

void cache_nodes_listing(struct cache *cache)
{
    cache->marks[OP_RESOURCES] = ++cache->mark;
}

static void sweep_node(void *ctx, const char *name, void *value)
{
    struct cache *cache = ctx;
    struct node_entry *node = value;
    (void)name;
    if (node->mark != cache->marks[OP_RESOURCES])
        drop_node(cache, node);
}

void cache_nodes_listed(struct cache *cache)
{
    cache->nodes_denied = false;
    table_each(&cache->nodes, sweep_node, cache);
}

/* A node reports every few seconds; only what a plan looks at wakes anybody. */
void cache_node(struct cache *cache, enum kube_change change, const struct js *object)
{
    struct node_view view = {0};
    struct node_entry *node = table_get(&cache->nodes, object_text(object, "name"));
    if (change == KUBE_DELETED) {
        if (node)
            drop_node(cache, node);
        return;
    }
    if (node_project(object, &view, NULL) < 0)
        return;
    if (!node) {
        node = calloc(1, sizeof *node);
        if (!node)
            abort();
        table_put(&cache->nodes, view.name, node);
    }
    bool same = node->view.ready == view.ready && !strcmp(node->view.leave, view.leave) &&
                !strcmp(node->view.may_leave, view.may_leave) && *node->view.name;
    node->view = view;
    node->mark = cache->marks[OP_RESOURCES];
    if (!same)
        node_changed(cache, view.name);
}

const struct node_view *cache_find_node(void *cache, const char *name)
{
    struct node_entry *node = table_get(&((struct cache *)cache)->nodes, name);
    return node ? &node->view : NULL;
}
