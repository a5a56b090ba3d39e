#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator/cache.h"
#include "operator/cache_parts.h"

static const rm_time told_for = 30 * RM_S; /* an answer's word, without a watch's */

/* --- families --- */

void family_name(const char *namespace, const char *job, const char *uid, char out[FAMILY_NAME_MAX])
{
    snprintf(out, FAMILY_NAME_MAX, "%.*s/%.*s/%.*s", OP_NAMESPACE_MAX - 1, namespace, OP_NAME_MAX - 1, job,
             OP_UID_MAX - 1, uid);
}

struct family *family_get(struct cache *cache, const char *name)
{
    struct family *family = table_get(&cache->families, name);
    if (family)
        return family;
    family = calloc(1, sizeof *family);
    if (!family)
        abort();
    text_copy(family->name, sizeof family->name, name);
    table_put(&cache->families, name, family);
    return family;
}

void family_let_go(struct cache *cache, struct family *family)
{
    if (family->job || family->count)
        return;
    table_remove(&cache->families, family->name);
    free(family->pod);
    free(family->view);
    free(family);
}

static void family_join(struct family *family, struct pod_entry *pod)
{
    if (family->count == family->room) {
        family->room = family->room ? 2 * family->room : 8;
        family->pod = realloc(family->pod, (size_t)family->room * sizeof(struct pod_entry *));
        family->view = realloc(family->view, (size_t)family->room * sizeof(struct pod_view *));
        if (!family->pod || !family->view)
            abort();
    }
    family->view[family->count] = &pod->view;
    family->pod[family->count++] = pod;
    pod->family = family;
}

static void family_leave(struct cache *cache, struct pod_entry *pod)
{
    struct family *family = pod->family;
    for (int i = 0; i < family->count; i++)
        if (family->pod[i] == pod) {
            family->pod[i] = family->pod[--family->count];
            family->view[i] = family->view[family->count];
            break;
        }
    family_let_go(cache, family);
}

/* --- pods --- */

static void tell(struct cache *cache, const struct family *family)
{
    if (family->job)
        cache->changed(cache->ctx, family->job);
}

static void drop_pod(struct cache *cache, struct pod_entry *pod)
{
    struct job_entry *job = pod->family->job;
    table_remove(&cache->pods, pod->key);
    family_leave(cache, pod);
    free(pod);
    if (job)
        cache->changed(cache->ctx, job);
}

static struct pod_entry *new_pod(struct cache *cache, const char *key, const char *family)
{
    struct pod_entry *pod = calloc(1, sizeof *pod);
    if (!pod)
        abort();
    text_copy(pod->key, sizeof pod->key, key);
    family_join(family_get(cache, family), pod);
    table_put(&cache->pods, key, pod);
    return pod;
}

bool pods_put(struct cache *cache, const struct js *object, rm_time told_at, struct error *err)
{
    char key[CACHE_KEY_MAX], family[FAMILY_NAME_MAX];
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
    family_name(object_text(object, "namespace"), view.owner, view.owner_uid, family);
    if (pod && strcmp(pod->family->name, family) != 0) {
        drop_pod(cache, pod);
        pod = NULL;
    }
    if (!pod) {
        pod = new_pod(cache, key, family);
        pod->told_at = told_at;
    }
    pod->view = view;
    pod->mark = cache->marks[OP_PODS];
    text_copy(pod->version, sizeof pod->version, version);
    tell(cache, pod->family);
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
    struct family *family = job->family;
    for (int i = family->count - 1; i >= 0; i--)
        if (family->pod[i]->told_at && now - family->pod[i]->told_at >= told_for)
            drop_pod(cache, family->pod[i]); /* the job keeps the family */
    *ret_count = family->count;
    return family->view;
}

static void free_pod(void *ctx, const char *name, void *value)
{
    (void)ctx, (void)name;
    free(value);
}

static void free_family(void *ctx, const char *name, void *value)
{
    struct family *family = value;
    (void)ctx, (void)name;
    free(family->pod);
    free(family->view);
    free(family);
}

void pods_clear(struct cache *cache)
{
    table_each(&cache->pods, free_pod, NULL);
    table_clear(&cache->pods);
    table_each(&cache->families, free_family, NULL);
    table_clear(&cache->families);
}

/* --- nodes --- */

struct on_node {
    struct cache *cache;
    const char *name;
};

static void tell_of_node(void *ctx, const char *name, void *value)
{
    struct on_node *on = ctx;
    struct pod_entry *pod = value;
    (void)name;
    if (!strcmp(pod->view.node, on->name))
        tell(on->cache, pod->family);
}

static void node_changed(struct cache *cache, const char *name)
{
    table_each(&cache->pods, tell_of_node, &(struct on_node){cache, name});
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
