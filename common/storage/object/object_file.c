/* A folder as a store: objects are regular files, written under another name first, so that a name stands for
 * a whole object or for none. */
#include "common/storage/object/object_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/err_system.h"
#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "common/os/uri.h"

enum { CHUNK = 1 << 20, PLACE_TRIES = 16, FLUSHED = 64 << 20 };

/* --- folders --- */

/* --- reading --- */

static int open_object(struct object_file *store, const char *name, struct stat *st, struct error *err)
{
    char path[OBJECT_URI_MAX + OBJECT_NAME_MAX];
    snprintf(path, sizeof path, "%s/%s", store->root, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_system(err, errno == ENOENT || errno == ENOTDIR ? ERR_NOT_FOUND : ERR_MACHINE, "%s", path);
    if (fstat(fd, st) < 0)
        err_system(err, ERR_MACHINE, "%s", path);
    else if (!S_ISREG(st->st_mode))
        err_set(err, S_ISDIR(st->st_mode) ? ERR_NOT_FOUND : ERR_DATA, "%s: this is no file", path);
    else {
        return fd;
    }
    close(fd);
    return -1;
}

static int file_head(struct object_store *base, const char *name, struct object_info *ret, struct error *err)
{
    struct stat st;
    int fd = open_object(object_file_of(base), name, &st, err);
    if (fd < 0)
        return -1;
    close(fd);
    *ret = (struct object_info){.bytes = st.st_size, .modified_s = st.st_mtim.tv_sec};
    object_file_tag(&st, ret->tag);
    object_file_moved(object_file_of(base), 0); /* a folder that answers */
    return 0;
}

/* Up to count bytes at offset; how many, fewer at the file's end; -1. */
static int64_t read_at(const struct object_file *store, int fd, void *out, int64_t count, int64_t offset)
{
    int64_t had = 0;
    if (FAULT_FAILS("file-read", EIO))
        return -1;
    if (store->base.past_caches)
        return object_file_read_past(fd, out, count, offset);
    while (had < count) {
        ssize_t n = pread(fd, (char *)out + had, (size_t)(count - had), offset + had);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        had += n;
    }
    return had;
}

static int file_get(struct object_store *base, const char *name, int64_t most, struct str *out,
                    struct error *err)
{
    struct stat st;
    char *bytes = NULL;
    int fd = open_object(object_file_of(base), name, &st, err);
    if (fd < 0)
        return -1;
    int64_t size = st.st_size, had = -1;
    if (base->past_caches)
        object_file_let_go(fd, 0, 0);
    if (size <= most && (bytes = malloc((size_t)size + 1)))
        had = read_at(object_file_of(base), fd, bytes, size, 0);
    object_file_moved(object_file_of(base), had > 0 ? had : 0);
    if (size > most)
        err_set(err, ERR_DATA, "%s/%s: it is longer than %lld bytes", base->uri, name, (long long)most);
    else if (!bytes)
        err_set(err, ERR_MACHINE, "%s/%s: out of memory", base->uri, name);
    else if (had < 0)
        err_system(err, ERR_MACHINE, "%s/%s: reading failed", base->uri, name);
    else
        str_add(out, bytes, (size_t)had);
    free(bytes);
    close(fd);
    return had < 0 ? -1 : 0;
}

/* `into` has room for a chunk. */
static int read_chunk(struct object_file *store, int fd, const struct object_range *range, int64_t at,
                      char *into, struct error *err)
{
    int64_t here = range->bytes - at < CHUNK ? range->bytes - at : CHUNK;
    if (object_file_cancelled(store))
        return object_file_give_up(err);
    int64_t had = read_at(store, fd, into, here, range->offset + at);
    if (had < 0)
        return err_system(err, ERR_MACHINE, "%s/%s: reading failed", store->root, range->name);
    if (had < here)
        return err_set(err, ERR_DATA, "%s/%s: the file ends at byte %lld, %lld bytes too early", store->root,
                       range->name, (long long)(range->offset + at + had),
                       (long long)(range->bytes - at - had));
    if (range->came)
        range->came(range->ctx, into, (size_t)here);
    object_file_moved(store, here);
    return 0;
}

static int read_to_file(struct object_file *store, int fd, const struct object_range *range,
                        struct error *err)
{
    char *chunk = malloc(CHUNK);
    int result = chunk ? 0 : err_set(err, ERR_MACHINE, "%s/%s: out of memory", store->root, range->name);
    for (int64_t at = 0; at < range->bytes && result == 0; at += CHUNK) {
        int64_t here = range->bytes - at < CHUNK ? range->bytes - at : CHUNK;
        result = read_chunk(store, fd, range, at, chunk, err);
        struct object_body body = {.runs = 1, .run = {{chunk, (size_t)here}}};
        if (result == 0)
            result = object_file_write(store, range->file, range->at + at, &body, NULL, err);
    }
    free(chunk);
    return result;
}

static int read_to_memory(struct object_file *store, int fd, const struct object_range *range,
                          struct error *err)
{
    int result = 0;
    for (int64_t at = 0; at < range->bytes && result == 0; at += CHUNK)
        result = read_chunk(store, fd, range, at, (char *)range->into + at, err);
    return result;
}

static int read_range(struct object_file *store, const struct object_range *range, struct error *err)
{
    struct stat st;
    char tag[OBJECT_TAG_MAX];
    int fd = open_object(store, range->name, &st, err), result;
    if (fd < 0)
        return -1;
    object_file_tag(&st, tag);
    if (store->base.past_caches)
        object_file_let_go(fd, range->offset, range->bytes);
    if (range->tag && strcmp(range->tag, tag) != 0)
        result = err_set(err, ERR_DATA, "%s/%s: it has been replaced meanwhile", store->root, range->name);
    else if (range->into)
        result = read_to_memory(store, fd, range, err);
    else
        result = read_to_file(store, fd, range, err);
    close(fd);
    return result;
}

static int file_read_ranges(struct object_store *base, const struct object_range *range, int count,
                            struct error *err)
{
    for (int i = 0; i < count; i++)
        if (read_range(object_file_of(base), &range[i], err) < 0)
            return -1;
    return 0;
}

/* --- writing --- */

struct putting {
    struct object_file *store;
    const struct object_body *body;
    enum object_mode mode;
};

static int fill_file(const struct putting *p, int folder_fd, const char *temporary, struct error *err)
{
    int fd = openat(folder_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_system(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_MACHINE, "the file can't be made");
    int result = object_file_write(p->store, fd, 0, p->body, NULL, err);
    if (result == 0)
        result = object_file_sync(fd, err);
    close(fd);
    return result;
}

static int put_in(void *ctx, const struct object_place *place, struct error *err)
{
    const struct putting *p = ctx;
    char temporary[32] = ".put-";
    object_file_chance(temporary + 5);
    int result = fill_file(p, place->folder_fd, temporary, err);
    if (result == 0)
        FAULT("object-temp");
    if (result == 0)
        result = object_file_give_name(place->folder_fd, temporary, place->last, p->mode, err);
    unlinkat(place->folder_fd, temporary, 0); /* renamed already: there is nothing left to remove */
    return result == 0 ? object_file_sync_folder(place->folder_fd, err) : -1;
}

/* The folders' own names must be on the disk too. */
static void sync_above(struct object_file *store, const char *name)
{
    char above[OBJECT_NAME_MAX];
    text_copy(above, sizeof above, name);
    for (char *slash; (slash = strrchr(above, '/'));) {
        struct object_place place;
        *slash = 0;
        if (object_file_place(store, above, false, &place, NULL) < 0)
            return;
        object_file_sync_folder(place.folder_fd, NULL);
        close(place.folder_fd);
    }
}

static int file_put(struct object_store *base, const char *name, const struct object_body *body,
                    enum object_mode mode, struct error *err)
{
    struct putting p = {object_file_of(base), body, mode};
    if (object_file_within(p.store, name, put_in, &p, err) < 0)
        return -1;
    sync_above(p.store, name);
    return 0;
}

static int delete_one(struct object_file *store, const char *name, struct error *err)
{
    struct object_place place;
    struct error why = {0};
    if (object_file_place(store, name, false, &place, &why) < 0)
        return why.code == ERR_NOT_FOUND ? 0 : err_from(err, &why, "%s/%s: %s", store->root, name, why.text);
    int result = unlinkat(place.folder_fd, place.last, 0);
    if (result == 0)
        FAULT("file-removed");
    if (result < 0 && errno == ENOENT)
        result = 0;
    else if (result < 0)
        err_system(err, ERR_MACHINE, "%s/%s can't be removed", store->root, name);
    else
        result = object_file_sync_folder(place.folder_fd, err);
    close(place.folder_fd);
    if (result == 0)
        object_file_tidy(store, name);
    return result;
}

static int file_delete(struct object_store *base, const char *const *name, int count, struct error *err)
{
    for (int i = 0; i < count; i++) {
        if (delete_one(object_file_of(base), name[i], err) < 0)
            return -1;
        object_file_moved(object_file_of(base), 0);
    }
    return 0;
}

/* --- opening --- */

static void file_free(struct object_store *base)
{
    free(object_file_of(base));
}

struct listing {
    struct object_file *store;
    int (*visit)(void *ctx, const struct object_entry *entry, struct error *err);
    void *ctx;
};

static int list_one(void *ctx, const struct object_file_found *found, struct error *err)
{
    const struct listing *l = ctx;
    struct object_entry entry = {.name = found->name,
                                 .info = {.bytes = found->bytes, .modified_s = found->modified_s}};
    text_copy(entry.info.tag, sizeof entry.info.tag, found->tag);
    object_file_moved(l->store, 0);
    return l->visit(l->ctx, &entry, err);
}

static int file_list(struct object_store *base, const char *prefix,
                     int (*visit)(void *ctx, const struct object_entry *entry, struct error *err), void *ctx,
                     struct error *err)
{
    struct listing l = {object_file_of(base), visit, ctx};
    return object_file_walk(object_file_of(base), prefix, false, list_one, &l, err);
}

static const struct object_ops file_ops = {
    .free = file_free,
    .local = true,
    .head = file_head,
    .get = file_get,
    .read = file_read_ranges,
    .list = file_list,
    .list_folders = object_file_folders,
    .put = file_put,
    .delete = file_delete,
    .upload_open = object_file_upload_open,
    .upload_parts = object_file_upload_parts,
    .upload_list = object_file_upload_list,
    .upload_complete = object_file_upload_complete,
    .upload_abort = object_file_upload_abort,
    .uploads_collect = object_file_uploads_collect,
};

int object_file_open(struct object_store **ret, const struct object_options *options, struct error *err)
{
    struct object_file *store = calloc(1, sizeof *store);
    if (!store)
        return err_set(err, ERR_MACHINE, "%.200s: out of memory", options->uri);
    *store = (struct object_file){.base = {.ops = &file_ops},
                                  .cancel = options->cancel,
                                  .progress = options->progress,
                                  .ctx = options->ctx};
    if (uri_path(options->uri, store->root, sizeof store->root, err) < 0) {
        free(store);
        return -1;
    }
    for (size_t n = strlen(store->root); n > 1 && store->root[n - 1] == '/'; n--)
        store->root[n - 1] = 0;
    text_copy(store->base.uri, sizeof store->base.uri, options->uri);
    for (size_t n = strlen(store->base.uri); n > 1 && store->base.uri[n - 1] == '/'; n--)
        store->base.uri[n - 1] = 0;
    *ret = &store->base;
    return 0;
}
