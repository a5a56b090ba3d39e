/* Folders as stores: file:///folder or a path. Each object is a regular file. Only common/storage/object uses
 * this.
 *
 * What is not finished lies beside the object that it will be, under names that no object may have:
 *
 *   .put-<random>                 a file being written, until it gets its name
 *   .upload-<random>.<name>       the bytes of an upload, each part at its offset
 *   .part-<number>-<random>.<name>   written when the part is on the disk: its offset, bytes and tag
 *
 * Folders appear with the first object in them and go with the last. Writing, listing and deleting never pass
 * through a symbolic link below the store's own folder, and a link is never listed; reading follows them
 * (model caches are made of links). */
#ifndef RM_OBJECT_OBJECT_FILE_H
#define RM_OBJECT_OBJECT_FILE_H

#include "common/storage/object/object_ops.h"

struct object_file {
    struct object_store base;
    char root[OBJECT_URI_MAX]; /* the folder's path */
    const atomic_int *cancel;
    void (*progress)(void *ctx, int64_t bytes_moved);
    void *ctx;
    atomic_llong moved; /* several threads read at once */
};

int object_file_open(struct object_store **ret, const struct object_options *options, struct error *err);

/* --- between object_file*.c --- */

static inline struct object_file *object_file_of(struct object_store *store)
{
    return (struct object_file *)store;
}

static inline bool object_file_cancelled(const struct object_file *store)
{
    return store->cancel && atomic_load_explicit(store->cancel, memory_order_relaxed);
}

static inline int object_file_give_up(struct error *err)
{
    return err_set(err, ERR_ABORTED, "given up");
}

static inline void object_file_moved(struct object_file *store, int64_t bytes)
{
    int64_t before = atomic_fetch_add(&store->moved, bytes);
    if (store->progress)
        store->progress(store->ctx, before + bytes);
}

/* What an object's name comes to: its folder, opened, and its last part (inside `name`). */
struct object_place {
    int folder_fd;
    const char *last;
};
/* make: with the folders above. ERR_NOT_FOUND where one is absent, or is no folder. The caller closes. */
int object_file_place(struct object_file *store, const char *name, bool make, struct object_place *ret,
                      struct error *err);

/* Repeats `work` while the folder that it was given is removed under it: somebody deletes, and folders go
 * with their last file. */
int object_file_within(struct object_file *store, const char *name,
                       int (*work)(void *ctx, const struct object_place *place, struct error *err), void *ctx,
                       struct error *err);

/* Is this the name of something unfinished? */
bool object_file_is_hidden(const char *last);

/* All bytes of a body to one place of a file. sha256 (may be NULL): their hash. */
int object_file_write(struct object_file *store, int fd, int64_t offset, const struct object_body *body,
                      uint8_t *sha256, struct error *err);
/* Tells who asks of bytes that have been taken, from byte `at` of a run on; hash may be NULL. */
struct sha256;
void object_file_tell_taken(const struct object_body *body, int run, size_t at, struct sha256 *hash,
                            size_t count);
/* object_file_direct.c: large ones go to the disk past the memory's pages, where the file system takes that.
 */
bool object_file_lies_in_memory(int fd); /* its file system has no disk */
bool object_file_goes_direct(int fd, const struct object_body *body);
int object_file_write_direct(struct object_file *store, int fd, int64_t offset,
                             const struct object_body *body, struct sha256 *hash, struct error *err);
/* Syncs a file, and lets go of what memory keeps of it, so that whoever reads it next reads the disk. */
int object_file_sync(int fd, struct error *err);
int object_file_sync_folder(int folder_fd, struct error *err);
/* Gives a file its name: over what is there, or only where nothing is (ERR_EXISTS). The first name may stay.
 */
int object_file_give_name(int folder_fd, const char *from, const char *to, enum object_mode mode,
                          struct error *err);
/* object_file_past.c: lets go of what memory keeps of these bytes (0: of all behind offset) of a file that
 * was opened to be read, and turns its descriptor to direct reads where its file system knows them. */
void object_file_let_go(int fd, int64_t offset, int64_t bytes);
/* Up to count bytes at offset from such a descriptor; how many, fewer at the file's end; -1 with errno. */
int64_t object_file_read_past(int fd, void *out, int64_t count, int64_t offset);
/* 16 hex digits by chance. */
void object_file_chance(char out[17]);
/* Removes the folder of this name and those above it, as far as they are empty and below the root. */
void object_file_tidy(struct object_file *store, const char *name);

/* Visits every file below prefix in byte order of the names; hidden: those that are unfinished instead. */
struct object_file_found {
    const char *name;
    int folder_fd;
    const char *last;
    int64_t bytes, modified_s;
    char tag[OBJECT_TAG_MAX];
};
int object_file_walk(struct object_file *store, const char *prefix, bool hidden,
                     int (*visit)(void *ctx, const struct object_file_found *found, struct error *err),
                     void *ctx, struct error *err);

/* object_file_walk.c */
int object_file_folders(struct object_store *store, const char *prefix,
                        int (*visit)(void *ctx, const char *part, struct error *err), void *ctx,
                        struct error *err);

struct stat;
void object_file_tag(const struct stat *st, char out[OBJECT_TAG_MAX]);

/* object_file_upload.c */
int object_file_upload_open(struct object_store *store, const char *name, char ret_id[OBJECT_UPLOAD_MAX],
                            struct error *err);
int object_file_upload_parts(struct object_store *store, const char *name, const char *id,
                             struct object_part *part, int count, struct error *err);
int object_file_upload_list(struct object_store *store, const char *name, const char *id,
                            int (*visit)(void *ctx, const struct object_part_info *part, struct error *err),
                            void *ctx, struct error *err);
int object_file_upload_complete(struct object_store *store, const char *name, const char *id,
                                const struct object_part *part, int count, enum object_mode mode,
                                struct error *err);
int object_file_upload_abort(struct object_store *store, const char *name, const char *id, struct error *err);
int object_file_uploads_collect(struct object_store *store, const char *prefix,
                                bool (*over)(void *ctx, const char *name), void *ctx, int *ret_aborted,
                                struct error *err);

#endif
