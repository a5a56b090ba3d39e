/* The calls of object.h: names and ranges are checked here, once for all stores, and then the store's own
 * table of functions does the work (object_file.c, object_s3.c). */
#include "common/storage/object/object.h"

#include <string.h>

#include "common/storage/object/object_file.h"
#include "common/storage/object/object_ops.h"
#include "common/storage/object/object_s3.h"

int object_open(struct object_store **ret, const struct object_options *options, struct error *err)
{
    const char *uri = options->uri;
    if (strlen(uri) >= OBJECT_URI_MAX)
        return err_set(err, ERR_USAGE, "%.64s...: the URI is longer than %d bytes", uri, OBJECT_URI_MAX - 1);
    if (!strncmp(uri, "s3://", 5))
        return object_s3_open(ret, options, err);
    if (!strncmp(uri, "file://", 7) || !strstr(uri, "://"))
        return object_file_open(ret, options, err);
    return err_set(err, ERR_USAGE, "%.200s: write s3://bucket/prefix, file:///folder or a path", uri);
}

void object_free(struct object_store *store)
{
    if (store)
        store->ops->free(store);
}

const char *object_uri(const struct object_store *store)
{
    return store->uri;
}

bool object_is_local(const struct object_store *store)
{
    return store->ops->local;
}

bool object_is_clear(const struct object_store *store)
{
    return store->clear;
}

void object_pass_caches(struct object_store *store, bool pass)
{
    store->past_caches = pass;
}

/* --- what callers may ask for --- */

static bool is_part(const char *part, size_t length)
{
    bool dot = length == 1 && part[0] == '.', up = length == 2 && part[0] == '.' && part[1] == '.';
    return length && !dot && !up;
}

static bool are_parts(const char *text, bool open_end)
{
    for (;;) {
        size_t length = strcspn(text, "/");
        bool last = !text[length];
        if (last && open_end)
            return true;
        if (!is_part(text, length))
            return false;
        if (last)
            return true;
        text += length + 1;
    }
}

static int check_name(const struct object_store *store, const char *name, struct error *err)
{
    if (strlen(name) < OBJECT_NAME_MAX && are_parts(name, false))
        return 0;
    return err_set(err, ERR_USAGE, "%s: \"%.64s\" is no object's name", store->uri, name);
}

/* A prefix may end within a part. */
static int check_prefix(const struct object_store *store, const char *prefix, struct error *err)
{
    if (strlen(prefix) < OBJECT_NAME_MAX && are_parts(prefix, true))
        return 0;
    return err_set(err, ERR_USAGE, "%s: \"%.64s\" is no beginning of an object's name", store->uri, prefix);
}

static int check_parts(const struct object_store *store, const struct object_part *part, int count,
                       struct error *err)
{
    for (int i = 0; i < count; i++)
        if (part[i].number < 1 || part[i].number > OBJECT_PARTS_MAX || part[i].body.runs < 0 ||
            part[i].body.runs > OBJECT_RUNS_MAX)
            return err_set(err, ERR_USAGE, "%s: there is no part %d", store->uri, part[i].number);
    return 0;
}

/* --- dispatch --- */

int object_head(struct object_store *store, const char *name, struct object_info *ret, struct error *err)
{
    return check_name(store, name, err) < 0 ? -1 : store->ops->head(store, name, ret, err);
}

int object_get(struct object_store *store, const char *name, int64_t most, struct str *out, struct error *err)
{
    return check_name(store, name, err) < 0 ? -1 : store->ops->get(store, name, most, out, err);
}

int object_read(struct object_store *store, const struct object_range *range, int count, struct error *err)
{
    for (int i = 0; i < count; i++) {
        if (check_name(store, range[i].name, err) < 0)
            return -1;
        if (range[i].offset < 0 || range[i].bytes < 0)
            return err_set(err, ERR_USAGE, "%s/%s: there is no such range", store->uri, range[i].name);
    }
    return store->ops->read(store, range, count, err);
}

int object_list(struct object_store *store, const char *prefix,
                int (*visit)(void *ctx, const struct object_entry *entry, struct error *err), void *ctx,
                struct error *err)
{
    return check_prefix(store, prefix, err) < 0 ? -1 : store->ops->list(store, prefix, visit, ctx, err);
}

int object_list_folders(struct object_store *store, const char *prefix,
                        int (*visit)(void *ctx, const char *part, struct error *err), void *ctx,
                        struct error *err)
{
    size_t length = strlen(prefix);
    if (check_prefix(store, prefix, err) < 0)
        return -1;
    if (length && prefix[length - 1] != '/')
        return err_set(err, ERR_USAGE, "%s: \"%.64s\" is no folder", store->uri, prefix);
    return store->ops->list_folders(store, prefix, visit, ctx, err);
}

int object_put(struct object_store *store, const char *name, const struct object_body *body,
               enum object_mode mode, struct error *err)
{
    if (check_name(store, name, err) < 0)
        return -1;
    if (body->runs < 0 || body->runs > OBJECT_RUNS_MAX)
        return err_set(err, ERR_USAGE, "%s/%s: %d runs", store->uri, name, body->runs);
    return store->ops->put(store, name, body, mode, err);
}

bool object_passes_caches(const struct object_store *store)
{
    return store->past_caches;
}

int64_t object_unproven(const struct object_store *store)
{
    return store->unproven;
}

int object_delete(struct object_store *store, const char *const *name, int count, struct error *err)
{
    for (int i = 0; i < count; i++)
        if (check_name(store, name[i], err) < 0)
            return -1;
    return store->ops->delete (store, name, count, err);
}

int object_upload_open(struct object_store *store, const char *name, char ret_id[OBJECT_UPLOAD_MAX],
                       struct error *err)
{
    return check_name(store, name, err) < 0 ? -1 : store->ops->upload_open(store, name, ret_id, err);
}

int object_upload_parts(struct object_store *store, const char *name, const char *id,
                        struct object_part *part, int count, struct error *err)
{
    if (check_name(store, name, err) < 0 || check_parts(store, part, count, err) < 0)
        return -1;
    return store->ops->upload_parts(store, name, id, part, count, err);
}

int object_upload_list(struct object_store *store, const char *name, const char *id,
                       int (*visit)(void *ctx, const struct object_part_info *part, struct error *err),
                       void *ctx, struct error *err)
{
    return check_name(store, name, err) < 0 ? -1 : store->ops->upload_list(store, name, id, visit, ctx, err);
}

int object_upload_complete(struct object_store *store, const char *name, const char *id,
                           const struct object_part *part, int count, enum object_mode mode,
                           struct error *err)
{
    if (check_name(store, name, err) < 0 || check_parts(store, part, count, err) < 0)
        return -1;
    return store->ops->upload_complete(store, name, id, part, count, mode, err);
}

int object_upload_abort(struct object_store *store, const char *name, const char *id, struct error *err)
{
    return check_name(store, name, err) < 0 ? -1 : store->ops->upload_abort(store, name, id, err);
}

int object_uploads_collect(struct object_store *store, const char *prefix,
                           bool (*over)(void *ctx, const char *name), void *ctx, int *ret_aborted,
                           struct error *err)
{
    if (check_prefix(store, prefix, err) < 0)
        return -1;
    return store->ops->uploads_collect(store, prefix, over, ctx, ret_aborted, err);
}
