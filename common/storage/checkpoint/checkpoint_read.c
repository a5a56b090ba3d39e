/* Finds and reads a checkpoint's manifest, and what it has to fit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/image.h"
#include "common/storage/checkpoint/checkpoint.h"
#include "common/storage/checkpoint/files.h"
#include "common/storage/checkpoint/share.h"
#include "common/storage/checkpoint/verify.h"

int checkpoint_manifest(struct object_store *store, const char *name, struct manifest *ret, struct error *err)
{
    if (strcmp(name, "final") != 0 && files_step(name) < 0)
        return err_set(err, ERR_NOT_FOUND,
                       "checkpoint %s: this is no checkpoint's name (step-00000200, final)", name);
    if (files_manifest(store, name, ret, err) < 0)
        return err_wrap(err, "checkpoint %s", name);
    return 0;
}

static int check_shape(const struct manifest *m, const struct model_shape *shape, struct error *err)
{
    const struct model_shape *is = &m->shape;
    if (is->layers == shape->layers && is->heads == shape->heads && is->width == shape->width &&
        is->context == shape->context && is->vocabulary == shape->vocabulary &&
        image_bytes(is) == image_bytes(shape))
        return 0;
    if (image_bytes(is) || image_bytes(shape))
        return err_set(err, ERR_USAGE,
                       "the state is an image of %lld bytes here, and of %lld in the checkpoint (0: that of "
                       "another kind of job): the program's model or optimizer is another one",
                       (long long)image_bytes(shape), (long long)image_bytes(is));
    return err_set(
        err, ERR_USAGE,
        "the model has %d layers, %d heads, width %d, context %d, vocabulary %d here, but %d, %d, %d, "
        "%d, %d in the checkpoint",
        shape->layers, shape->heads, shape->width, shape->context, shape->vocabulary, is->layers, is->heads,
        is->width, is->context, is->vocabulary);
}

/* Deleting takes the manifest first: without it, what is missing is not damage. */
static bool is_gone(struct object_store *store, const char *name)
{
    struct object_info info;
    struct error why = {0};
    char manifest[FILES_NAME_MAX];
    files_object(manifest, name, MANIFEST_NAME);
    return object_head(store, manifest, &info, &why) < 0 && why.code == ERR_NOT_FOUND;
}

static int explain(struct object_store *store, const char *name, const struct error *why, struct error *err)
{
    if (why->code == ERR_DATA && is_gone(store, name)) {
        err_set(err, ERR_NOT_FOUND, "checkpoint %s/%s was deleted while it was read", object_uri(store),
                name);
        return err_class(err, CLASS_OBJECT);
    }
    return err_from(err, why, "checkpoint %s/%s: %s", object_uri(store), name, why->text);
}

/* layout NULL: any shape. */
static int read_checked(struct object_store *store, const char *name, const struct model_layout *layout,
                        float *state, struct manifest *m, struct error *err)
{
    struct error why = {0};
    if (checkpoint_manifest(store, name, m, err) < 0)
        return -1;
    int result = layout ? check_shape(m, &layout->shape, &why) : 0;
    if (result == 0)
        result = verify_all(store, name, m, state, &why);
    return result == 0 ? 0 : explain(store, name, &why, err);
}

int checkpoint_load(struct object_store *store, const char *name, const struct model_layout *layout,
                    float *state, struct manifest *ret, struct error *err)
{
    struct manifest *m = malloc(sizeof *m);
    if (!m)
        return err_set(err, ERR_MACHINE, "checkpoint: out of memory");
    int result = read_checked(store, name, layout, state, m, err);
    if (result == 0 && ret)
        *ret = *m;
    free(m);
    return result;
}

/* A bucket shows the same to everybody. A folder that this machine sees without the checkpoint may be shown
 * by a server a moment late, or be another one. */
static int none_here(const struct checkpoint_share *share, struct error *err)
{
    bool local = object_is_local(share->store);
    err_set(err, ERR_NOT_FOUND, "checkpoints %s: none of step %lld and this history%s",
            object_uri(share->store), (long long)share->step,
            local ? " is seen here: is this the folder that the other machines see?" : "");
    if (local)
        err_person(err);
    return err_class(err, local ? CLASS_PASSING : CLASS_OBJECT);
}

/* The checkpoint of that state, under one of the two names that it may have. */
static int find_state(const struct checkpoint_share *share, char name[CHECKPOINT_NAME_MAX],
                      struct manifest *m, struct error *err)
{
    struct error damaged = {0};
    for (int final = 0; final < 2; final++) {
        struct error why = {0};
        checkpoint_name(name, share->step, final);
        bool same = checkpoint_manifest(share->store, name, m, &why) == 0 && m->step == share->step &&
                    !memcmp(m->lineage, share->lineage, RM_HASH_BYTES);
        if (same)
            return 0;
        if (why.code == ERR_DATA)
            damaged = why;
        else if (why.code != ERR_NONE && why.code != ERR_NOT_FOUND)
            return err_from(err, &why, "%s", why.text);
    }
    return damaged.code ? err_from(err, &damaged, "%s", damaged.text) : none_here(share, err);
}

/* As read_checked, of some shares. */
static int read_share(const struct checkpoint_share *share, const char *name, const struct manifest *m,
                      struct error *err)
{
    struct error why = {0};
    if (check_shape(m, &share->layout->shape, &why) == 0 && share_read(share, name, m, &why) == 0)
        return 0;
    return explain(share->store, name, &why, err);
}

static int load_share(const struct checkpoint_share *share, struct model_range range[MODEL_ARRAYS_MAX],
                      struct manifest *m, struct error *err)
{
    char name[CHECKPOINT_NAME_MAX];
    if (find_state(share, name, m, err) < 0 || read_share(share, name, m, err) < 0)
        return -1;
    return share_ranges(m, share->layout, share->parts, share->shares, range, err);
}

int checkpoint_load_share(const struct checkpoint_share *share,
                          struct model_range ret_range[MODEL_ARRAYS_MAX], struct manifest *ret,
                          struct error *err)
{
    struct manifest *m = malloc(sizeof *m);
    if (!m)
        return err_set(err, ERR_MACHINE, "checkpoint: out of memory");
    int result = load_share(share, ret_range, m, err);
    if (result == 0 && ret)
        *ret = *m;
    free(m);
    return result;
}

int checkpoint_verify(struct object_store *store, const char *name, struct manifest *ret, struct error *err)
{
    struct manifest *m = malloc(sizeof *m);
    if (!m)
        return err_set(err, ERR_MACHINE, "checkpoint: out of memory");
    int result = read_checked(store, name, NULL, NULL, m, err);
    if (result == 0 && ret)
        *ret = *m;
    free(m);
    return result;
}
