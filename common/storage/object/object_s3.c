/* A bucket as a store: opens its connections, credentials and place, and has the calls on whole objects;
 * object.c reaches them by the table s3_ops. Ranges, listings and uploads in parts are in the other
 * s3_*.c. */
#include "common/storage/object/object_s3.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/crypto.h"
#include "common/os/secret.h"
#include "common/storage/object/s3.h"

static const struct s3_patience usual_patience = {
    .connect = 5 * RM_S, .silent = 30 * RM_S, .pause = 50 * RM_MS, .pause_most = 20 * RM_S, .tries = 10};

/* --- keys and names --- */

/* --- reading --- */

static int head_key(struct s3_store *store, const char *key, struct object_info *ret, struct error *err)
{
    struct s3_task task = s3_task("HEAD", key);
    int result = s3_once(store, &task, err);
    if (result == 0 && !s3_is_good(&task))
        result = s3_refused(store, &task, err);
    else if (result == 0 && task.length < 0)
        result = err_set(err, ERR_DATA, "%s: an object without a length", store->base.uri);
    else if (result == 0) {
        *ret = (struct object_info){.bytes = task.length, .modified_s = task.modified_s};
        text_copy(ret->tag, sizeof ret->tag, task.tag);
    }
    str_clear(&task.kept);
    return result;
}

static int head(struct object_store *base, const char *name, struct object_info *ret, struct error *err)
{
    struct s3_store *store = (struct s3_store *)base;
    char key[S3_KEY_MAX];
    if (s3_key(store, name, key, err) < 0)
        return -1;
    return head_key(store, key, ret, err);
}

static int get_object(struct object_store *base, const char *name, int64_t most, struct str *out,
                      struct error *err)
{
    struct s3_store *store = (struct s3_store *)base;
    char key[S3_KEY_MAX];
    if (s3_key(store, name, key, err) < 0)
        return -1;
    struct s3_task task = s3_task("GET", key);
    task.request.most = (size_t)most;
    int result = s3_once(store, &task, err);
    if (result == 0 && !s3_is_good(&task))
        result = s3_refused(store, &task, err);
    else if (result == 0 && (int64_t)task.kept.length > most)
        result =
            err_set(err, ERR_DATA, "%s/%s: longer than %lld bytes", store->base.uri, name, (long long)most);
    else if (result == 0)
        str_add(out, str_text(&task.kept), task.kept.length);
    str_clear(&task.kept);
    return result;
}

/* --- writing --- */

/* Is the object there just what we wanted to write? Asked where an earlier try of ours may have done it. */
static int is_ours(struct s3_store *store, const char *key, const struct object_body *body, struct error *err)
{
    struct s3_task task = s3_task("GET", key);
    int64_t bytes = 0;
    for (int i = 0; i < body->runs; i++)
        bytes += (int64_t)body->run[i].count;
    task.request.sink = S3_COMPARE;
    task.request.against = body;
    int result = s3_once(store, &task, err);
    if (result == 0 && !s3_is_good(&task))
        result = s3_refused(store, &task, err);
    else if (result == 0 && task.got != bytes)
        result = err_set(err, ERR_EXISTS, "other bytes");
    str_clear(&task.kept);
    return result;
}

static int put_object(struct object_store *base, const char *name, const struct object_body *body,
                      enum object_mode mode, struct error *err)
{
    struct s3_store *store = (struct s3_store *)base;
    char key[S3_KEY_MAX];
    if (s3_key(store, name, key, err) < 0)
        return -1;
    struct s3_task task = s3_task("PUT", key);
    task.request.body = body;
    task.request.create = mode == OBJECT_CREATE;
    int result = s3_once(store, &task, err);
    if (result == 0 && !s3_is_good(&task)) {
        result = s3_refused(store, &task, err);
        if (mode == OBJECT_CREATE && task.status == 412 && task.failures &&
            is_ours(store, key, body, NULL) == 0)
            result = 0;
    } else if (result == 0)
        s3_count_proof(store, &task);
    str_clear(&task.kept);
    return result;
}

struct deleting {
    int count, at;
    char (*key)[S3_KEY_MAX]; /* (count) */
};

static bool delete_next(void *ctx, struct s3_task *task)
{
    struct deleting *d = ctx;
    if (d->at == d->count)
        return false;
    *task = (struct s3_task){.kept = task->kept, .request = {.method = "DELETE", .key = d->key[d->at++]}};
    return true;
}

static int delete_done(void *ctx, struct s3_store *store, struct s3_task *task, struct error *err)
{
    (void)ctx;
    if (s3_is_good(task) || (task->status == 404 && strcmp(task->refusal.code, "NoSuchBucket") != 0))
        return 0;
    return s3_refused(store, task, err);
}

/* One request for each, many at a time: every store knows it, and not every store the one for many. */
static int delete_some(struct s3_store *store, const char *const *name, int count, struct error *err)
{
    struct deleting d = {.count = count};
    int result = 0;
    d.key = malloc((size_t)count * sizeof *d.key);
    if (!d.key)
        return err_set(err, ERR_MACHINE, "no memory to delete objects");
    for (int i = 0; i < count && result == 0; i++)
        result = s3_key(store, name[i], d.key[i], err);
    if (result == 0)
        result = s3_run(store, &(struct s3_work){delete_next, delete_done, &d}, err);
    free(d.key);
    return result;
}

static int delete (struct object_store *base, const char *const *name, int count, struct error *err)
{
    enum { AT_A_TIME = 256 };
    for (int i = 0; i < count; i += AT_A_TIME)
        if (delete_some((struct s3_store *)base, name + i, count - i < AT_A_TIME ? count - i : AT_A_TIME,
                        err) < 0)
            return -1;
    return 0;
}

/* --- the store --- */

static void s3_free(struct object_store *base)
{
    struct s3_store *store = (struct s3_store *)base;
    if (!store)
        return;
    s3_engine_free(store);
    credentials_free(store->credentials);
    waiter_clear(&store->waiter);
    secret_free(store->key, RM_HASH_BYTES);
    secret_free(store->profile, sizeof *store->profile);
    free(store);
}

static const struct object_ops s3_ops = {
    .free = s3_free,
    .head = head,
    .get = get_object,
    .read = s3_read,
    .list = s3_list,
    .list_folders = s3_list_folders,
    .put = put_object,
    .delete = delete,
    .upload_open = s3_upload_open,
    .upload_parts = s3_upload_parts,
    .upload_list = s3_upload_list,
    .upload_complete = s3_upload_complete,
    .upload_abort = s3_upload_abort,
    .uploads_collect = s3_uploads_collect,
};

static int open_parts(struct s3_store *store, const struct object_options *options, struct error *err)
{
    const char *name;
    store->profile = secret_open(sizeof *store->profile);
    store->key = secret_open(RM_HASH_BYTES);
    if (!store->profile || !store->key)
        return err_set(err, ERR_MACHINE, "no memory for a store");
    if (profile_read(store->profile, &name, err) < 0) {
        err_class(err, CLASS_PASSING); /* the file can be mended */
        return err_person(err);
    }
    if (s3_place_find(&store->place, options, store->profile, err) < 0)
        return -1;
    store->base.clear = !store->place.tls;
    if (waiter_init(&store->waiter, options->cancel, err) < 0 ||
        s3_engine_open(store, options->connections, err) < 0)
        return -1;
    store->waiter.tick = s3_tell_progress;
    store->waiter.ctx = store;
    struct credentials_options credentials = {.waiter = &store->waiter,
                                              .profile = store->profile,
                                              .region = store->place.region,
                                              .ca_file =
                                                  store->place.ca_file[0] ? store->place.ca_file : NULL,
                                              .google = store->place.googles_for_sure};
    return credentials_open(&store->credentials, &credentials, err);
}

int object_s3_open(struct object_store **ret, const struct object_options *options, struct error *err)
{
    struct s3_store *store = calloc(1, sizeof *store);
    if (!store)
        return err_set(err, ERR_MACHINE, "no memory for a store");
    store->base.ops = &s3_ops;
    store->patience = usual_patience;
    store->progress = options->progress;
    store->answering = options->answering;
    store->retrying = options->retrying;
    store->ctx = options->ctx;
    crypto_random(&store->chance, sizeof store->chance);
    text_copy(store->base.uri, sizeof store->base.uri, options->uri);
    for (size_t n = strlen(store->base.uri); n > 5 && store->base.uri[n - 1] == '/'; n--)
        store->base.uri[n - 1] = 0;
    if (open_parts(store, options, err) < 0) {
        s3_free(&store->base);
        return -1;
    }
    *ret = &store->base;
    return 0;
}
