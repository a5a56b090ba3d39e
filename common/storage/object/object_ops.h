/* What one kind of store does: the other side of object.h. object.c chooses by the URI and dispatches; nobody
 * else includes this but the implementations and their tests.
 *
 * An implementation puts struct object_store first in its own struct, fills `ops` and `uri`, and gets calls
 * whose arguments object.c has checked: names fit OBJECT_NAME_MAX and have no empty, "." or ".." part, part
 * numbers are in 1..OBJECT_PARTS_MAX, runs in 0..OBJECT_RUNS_MAX, counts are not negative. Each function does
 * what the one of the same name in object.h says. */
#ifndef RM_OBJECT_OBJECT_OPS_H
#define RM_OBJECT_OBJECT_OPS_H

#include "common/storage/object/object.h"

enum { OBJECT_URI_MAX = 2048 }; /* with its NUL */

struct object_ops {
    void (*free)(struct object_store *store);
    bool local;

    int (*head)(struct object_store *store, const char *name, struct object_info *ret, struct error *err);
    int (*get)(struct object_store *store, const char *name, int64_t most, struct str *out,
               struct error *err);
    int (*read)(struct object_store *store, const struct object_range *range, int count, struct error *err);
    int (*list)(struct object_store *store, const char *prefix,
                int (*visit)(void *ctx, const struct object_entry *entry, struct error *err), void *ctx,
                struct error *err);
    int (*list_folders)(struct object_store *store, const char *prefix,
                        int (*visit)(void *ctx, const char *part, struct error *err), void *ctx,
                        struct error *err);

    int (*put)(struct object_store *store, const char *name, const struct object_body *body,
               enum object_mode mode, struct error *err);
    int (*delete)(struct object_store *store, const char *const *name, int count, struct error *err);

    int (*upload_open)(struct object_store *store, const char *name, char ret_id[OBJECT_UPLOAD_MAX],
                       struct error *err);
    int (*upload_parts)(struct object_store *store, const char *name, const char *id,
                        struct object_part *part, int count, struct error *err);
    int (*upload_list)(struct object_store *store, const char *name, const char *id,
                       int (*visit)(void *ctx, const struct object_part_info *part, struct error *err),
                       void *ctx, struct error *err);
    int (*upload_complete)(struct object_store *store, const char *name, const char *id,
                           const struct object_part *part, int count, enum object_mode mode,
                           struct error *err);
    int (*upload_abort)(struct object_store *store, const char *name, const char *id, struct error *err);
    int (*uploads_collect)(struct object_store *store, const char *prefix,
                           bool (*over)(void *ctx, const char *name), void *ctx, int *ret_aborted,
                           struct error *err);
};

struct object_store {
    const struct object_ops *ops;
    bool clear;               /* object_is_clear */
    bool past_caches;         /* object_pass_caches */
    int64_t unproven;         /* object_unproven */
    char uri[OBJECT_URI_MAX]; /* as a person wrote it, without "/" at its end: errors name it */
};

#endif
