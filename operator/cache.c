/* Keeps jobs and the objects around them; pods and nodes are kept by cache_pods.c. */
#include "operator/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator/cache_parts.h"

/* A Service or the like that is there: whose it is, and when it goes. */
struct around_entry {
    char
        owner_uid[OP_UID_MAX]; /* of the TrainingJob of the name below that controls it; "" where none does */
    char job[CACHE_KEY_MAX];   /* whose it is */
    char name[OP_NAME_MAX];
    uint64_t applied; /* what was applied, by its annotation; 0: it does not say */
    uint64_t mark;
};

bool version_newer(const char *a, const char *b)
{
    size_t length_a = strlen(a), length_b = strlen(b);
    return length_a != length_b ? length_a > length_b : strcmp(a, b) > 0;
}

const char *object_text(const struct js *object, const char *key)
{
    const char *text = js_as_string(js_get(js_get(object, "metadata"), key));
    return text ? text : "";
}

void object_key_of(const struct js *object, char out[CACHE_KEY_MAX])
{
    snprintf(out, CACHE_KEY_MAX, "%.*s/%.*s", OP_NAMESPACE_MAX - 1, object_text(object, "namespace"),
             OP_NODE_MAX - 2, object_text(object, "name"));
}

/* --- jobs --- */

void cache_job_free(struct job_entry *job)
{
    job_clear(&job->view);
    free(job->coordinator);
    free(job);
}

static void drop_job(struct cache *cache, struct job_entry *job)
{
    table_remove(&cache->jobs, job->key);
    job->gone = true;
    job->owned->job = NULL;
    owned_pods_let_go(cache, job->owned);
    job->owned = NULL;
    cache->removed(cache->ctx, job);
}

static struct job_entry *new_job(struct cache *cache, const char *key, const struct job_view *view)
{
    char owned[OWNED_PODS_NAME_MAX];
    struct job_entry *job = calloc(1, sizeof *job);
    if (!job)
        abort();
    text_copy(job->key, sizeof job->key, key);
    owned_pods_name(view->namespace_name, view->name, view->uid, owned);
    job->owned = owned_pods_get(cache, owned);
    job->owned->job = job;
    table_put(&cache->jobs, key, job);
    return job;
}

/* A namesake with another uid is another job: nothing of the old one is kept. */
static bool put_job(struct cache *cache, const struct js *object, struct error *err)
{
    char key[CACHE_KEY_MAX];
    struct job_view view;
    object_key_of(object, key);
    struct job_entry *job = table_get(&cache->jobs, key);
    bool same = job && !strcmp(job->view.uid, object_text(object, "uid"));
    if (same)
        job->mark = cache->marks[OP_JOBS];
    if (same && !version_newer(object_text(object, "resourceVersion"), job->view.resource_version))
        return true;
    if (job_project(object, &view, err) < 0)
        return false;
    if (job && !same) {
        drop_job(cache, job);
        job = NULL;
    }
    if (!job)
        job = new_job(cache, key, &view);
    job_clear(&job->view);
    job->view = view;
    job->mark = cache->marks[OP_JOBS];
    cache->changed(cache->ctx, job);
    return true;
}

static void remove_job(struct cache *cache, const struct js *object)
{
    char key[CACHE_KEY_MAX];
    object_key_of(object, key);
    struct job_entry *job = table_get(&cache->jobs, key);
    if (job && !strcmp(job->view.uid, object_text(object, "uid")))
        drop_job(cache, job);
}

static void sweep_job(void *ctx, const char *name, void *value)
{
    struct cache *cache = ctx;
    struct job_entry *job = value;
    (void)name;
    if (job->mark != cache->marks[OP_JOBS])
        drop_job(cache, job);
}

/* --- Services, budgets, policies --- */

/* Which hash of the memo stands for this object. */
static int applied_of(enum op_resource resource, const char *name)
{
    size_t length = strlen(name);
    bool workers = length > 8 && !strcmp(name + length - 8, "-workers");
    return resource == OP_SERVICES  ? OP_APPLIED_SERVICE
           : resource == OP_BUDGETS ? OP_APPLIED_BUDGET
           : workers                ? OP_APPLIED_WORKERS
                                    : OP_APPLIED_COORDINATOR;
}

/* What we applied is gone: it is to be applied again. */
static void forget_applied(struct cache *cache, enum op_resource resource, const struct around_entry *entry)
{
    struct job_entry *job = table_get(&cache->jobs, entry->job);
    if (!job)
        return;
    job->memo.applied[applied_of(resource, entry->name)] = 0;
    cache->changed(cache->ctx, job);
}

static uint64_t applied_hash(const struct js *object)
{
    const char *text =
        js_as_string(js_get(js_get(js_get(object, "metadata"), "annotations"), OP_NOTE_APPLIED));
    return text ? strtoull(text, NULL, 16) : 0;
}

static void put_around(struct cache *cache, enum op_resource resource, const struct js *object)
{
    char key[CACHE_KEY_MAX];
    const char *job = js_as_string(js_get(js_get(js_get(object, "metadata"), "labels"), OP_LABEL_JOB));
    object_key_of(object, key);
    struct around_entry *entry = table_get(&cache->around[resource], key);
    if (!entry && job) {
        entry = calloc(1, sizeof *entry);
        if (!entry)
            abort();
        snprintf(entry->job, sizeof entry->job, "%.*s/%.*s", OP_NAMESPACE_MAX - 1,
                 object_text(object, "namespace"), OP_NAME_MAX - 1, job);
        text_copy(entry->name, sizeof entry->name, object_text(object, "name"));
        table_put(&cache->around[resource], key, entry);
    }
    if (!entry)
        return;
    char owner[OP_NAME_MAX];
    object_controller(object, owner, entry->owner_uid);
    if (!job || strcmp(owner, job) != 0)
        *entry->owner_uid = 0;
    entry->applied = applied_hash(object);
    entry->mark = cache->marks[resource];
}

static const struct around_entry *find_own(const struct cache *cache, enum op_resource resource,
                                           const struct job_entry *job, const char *name)
{
    char key[CACHE_KEY_MAX];
    snprintf(key, sizeof key, "%.*s/%.*s", OP_NAMESPACE_MAX - 1, job->view.namespace_name, OP_NAME_MAX - 1,
             name);
    const struct around_entry *entry = table_get(&cache->around[resource], key);
    bool own = entry && !strcmp(entry->owner_uid, job->view.uid) && *entry->owner_uid;
    return own ? entry : NULL;
}

bool cache_has_own(const struct cache *cache, enum op_resource resource, const struct job_entry *job,
                   const char *name)
{
    return find_own(cache, resource, job, name) != NULL;
}

void cache_recall_applied(const struct cache *cache, struct job_entry *job)
{
    for (int i = 0; i < OP_APPLIED; i++) {
        char name[OP_NAME_MAX];
        if (job->memo.applied[i])
            continue;
        enum op_resource resource = op_applied_name(job->view.name, (enum op_applied)i, name);
        const struct around_entry *entry = find_own(cache, resource, job, name);
        if (entry)
            job->memo.applied[i] = entry->applied;
    }
}

static void remove_around(struct cache *cache, enum op_resource resource, const struct js *object)
{
    char key[CACHE_KEY_MAX];
    object_key_of(object, key);
    struct around_entry *entry = table_remove(&cache->around[resource], key);
    if (entry)
        forget_applied(cache, resource, entry);
    free(entry);
}

struct sweep {
    struct cache *cache;
    enum op_resource resource;
};

static void sweep_around(void *ctx, const char *name, void *value)
{
    struct sweep *sweep = ctx;
    struct around_entry *entry = value;
    if (entry->mark == sweep->cache->marks[sweep->resource])
        return;
    table_remove(&sweep->cache->around[sweep->resource], name);
    forget_applied(sweep->cache, sweep->resource, entry);
    free(entry);
}

static void look_for(struct sweep *sweep, struct job_entry *job, enum op_applied which, const char *name)
{
    uint64_t *applied = &job->memo.applied[which];
    if (!*applied || cache_has_own(sweep->cache, sweep->resource, job, name))
        return;
    *applied = 0;
    sweep->cache->changed(sweep->cache->ctx, job);
}

/* What this operator applied, and what went before any list or watch told that it was there: of its end
 * nobody tells. */
static void look_for_applied(void *ctx, const char *key, void *value)
{
    struct sweep *sweep = ctx;
    struct job_entry *job = value;
    char name[OP_NAME_MAX];
    (void)key;
    for (int i = 0; i < OP_APPLIED; i++)
        if (op_applied_name(job->view.name, (enum op_applied)i, name) == sweep->resource)
            look_for(sweep, job, (enum op_applied)i, name);
}

static void around_listed(struct sweep *sweep)
{
    table_each(&sweep->cache->around[sweep->resource], sweep_around, sweep);
    table_each(&sweep->cache->jobs, look_for_applied, sweep);
}

/* --- from outside --- */

void cache_listing(struct cache *cache, enum op_resource resource)
{
    cache->marks[resource] = ++cache->mark;
}

void cache_listed(struct cache *cache, enum op_resource resource)
{
    if (resource == OP_JOBS)
        table_each(&cache->jobs, sweep_job, cache);
    else if (resource == OP_PODS)
        pods_sweep(cache);
    else
        around_listed(&(struct sweep){cache, resource});
}

static void remove_object(struct cache *cache, enum op_resource resource, const struct js *object)
{
    if (resource == OP_JOBS)
        remove_job(cache, object);
    else if (resource == OP_PODS)
        pods_remove(cache, object);
    else
        remove_around(cache, resource, object);
}

bool cache_object(struct cache *cache, enum op_resource resource, enum kube_change change,
                  const struct js *object, struct error *err)
{
    if (change == KUBE_DELETED)
        remove_object(cache, resource, object);
    else if (resource == OP_JOBS)
        return put_job(cache, object, err);
    else if (resource == OP_PODS)
        return pods_put(cache, object, 0, err);
    else
        put_around(cache, resource, object);
    return true;
}

/* A job that is no longer in the cache does not come back by a late answer. */
void cache_answer(struct cache *cache, enum op_resource resource, const struct js *object, rm_time now)
{
    char key[CACHE_KEY_MAX];
    if (resource == OP_PODS)
        pods_put(cache, object, now, NULL);
    if (resource != OP_JOBS)
        return;
    object_key_of(object, key);
    struct job_entry *job = table_get(&cache->jobs, key);
    if (job && !strcmp(job->view.uid, object_text(object, "uid")))
        put_job(cache, object, NULL);
}

static void free_job(void *ctx, const char *name, void *value)
{
    (void)ctx, (void)name;
    cache_job_free(value);
}

static void free_entry(void *ctx, const char *name, void *value)
{
    (void)ctx, (void)name;
    free(value);
}

void cache_clear(struct cache *cache)
{
    pods_clear(cache);
    table_each(&cache->jobs, free_job, NULL);
    table_clear(&cache->jobs);
    table_each(&cache->nodes, free_entry, NULL);
    table_clear(&cache->nodes);
    for (int i = 0; i < OP_RESOURCES; i++) {
        table_each(&cache->around[i], free_entry, NULL);
        table_clear(&cache->around[i]);
    }
}
