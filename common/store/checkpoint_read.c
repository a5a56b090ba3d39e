#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/fault.h"
#include "common/store/checkpoint.h"
#include "common/store/files.h"
#include "common/store/folder.h"
#include "common/store/verify.h"

/* Opens a checkpoint's folder and reads its manifest. Sentences are whole. */
static int open_checkpoint(const char *uri, const char *name, enum folder_hold how, struct manifest *m,
                           int *ret_fd, struct error *err)
{
    char path[RM_URI_MAX];
    int fd;
    if (strcmp(name, "final") != 0 && files_step(name) < 0)
        return err_set(err, ERR_NOT_FOUND,
                       "checkpoint %s: this is no checkpoint's name (step-00000200, final)", name);
    if (files_path(path, uri, name, err) < 0)
        return -1;
    if (folder_hold(path, how, false, &fd, err) < 0)
        return err_wrap(err, "checkpoint");
    if (files_manifest(fd, name, m, err) < 0) {
        close(fd);
        return err_wrap(err, "checkpoint %s", path);
    }
    *ret_fd = fd;
    return 0;
}

int checkpoint_manifest(const char *uri, const char *name, struct manifest *ret, struct error *err)
{
    int fd;
    if (open_checkpoint(uri, name, FOLDER_UNHELD, ret, &fd, err) < 0)
        return -1;
    close(fd);
    return 0;
}

static int check_shape(const struct manifest *m, const struct model_shape *shape, struct error *err)
{
    const struct model_shape *is = &m->shape;
    if (is->layers == shape->layers && is->heads == shape->heads && is->width == shape->width &&
        is->context == shape->context && is->vocabulary == shape->vocabulary)
        return 0;
    return err_set(
        err, ERR_USAGE,
        "the model has %d layers, %d heads, width %d, context %d, vocabulary %d here, but %d, %d, %d, "
        "%d, %d in the checkpoint",
        shape->layers, shape->heads, shape->width, shape->context, shape->vocabulary, is->layers, is->heads,
        is->width, is->context, is->vocabulary);
}

/* layout NULL: any shape. */
static int read_checked(const char *uri, const char *name, const struct model_layout *layout, float *state,
                        struct manifest *m, struct error *err)
{
    int fd;
    if (open_checkpoint(uri, name, FOLDER_SHARED, m, &fd, err) < 0)
        return -1;
    int result = layout ? check_shape(m, &layout->shape, err) : 0;
    if (result == 0)
        result = verify_all(fd, m, state, err);
    close(fd);
    return result < 0 ? err_wrap(err, "checkpoint %s/%s", uri, name) : 0;
}

int checkpoint_mark_damaged(const char *uri, const char *name, struct error *err)
{
    char path[RM_URI_MAX];
    struct error why = {0};
    int fd;
    if (files_path(path, uri, name, err) < 0)
        return -1;
    if (folder_hold(path, FOLDER_SHARED, false, &fd, &why) < 0)
        return why.code == ERR_NOT_FOUND ? 0 : err_set(err, why.code, "checkpoint %s", why.text);
    int result = renameat(fd, MANIFEST_NAME, fd, DAMAGED_NAME);
    FAULT("damage-marked");
    if (result < 0 && errno == ENOENT)
        result = 0; /* another reader found the damage too */
    if (result < 0)
        err_errno(err, ERR_MACHINE, "checkpoint %s: its damaged manifest can't be renamed", path);
    else
        result = folder_sync(fd, err);
    close(fd);
    return result;
}

static int load_into(const char *uri, const char *name, const struct model_layout *layout, float *state,
                     struct manifest *m, struct error *err)
{
    struct error why = {0};
    if (read_checked(uri, name, layout, state, m, &why) == 0)
        return 0;
    struct error marking = {0};
    if (why.code == ERR_DATA && checkpoint_mark_damaged(uri, name, &marking) < 0)
        return err_set(err, marking.code, "%s; %s", why.text, marking.text);
    return err_set(err, why.code, "%s", why.text);
}

int checkpoint_load(const char *uri, const char *name, const struct model_layout *layout, float *state,
                    struct manifest *ret, struct error *err)
{
    struct manifest *m = malloc(sizeof *m);
    if (!m)
        return err_set(err, ERR_MACHINE, "checkpoint: out of memory");
    int result = load_into(uri, name, layout, state, m, err);
    if (result == 0 && ret)
        *ret = *m;
    free(m);
    return result;
}

int checkpoint_load_state(const char *uri, int64_t step, const uint8_t lineage[RM_HASH_BYTES],
                          const struct model_layout *layout, float *state, struct manifest *ret,
                          struct error *err)
{
    struct checkpoint_list *list = malloc(sizeof *list);
    char name[CHECKPOINT_NAME_MAX] = "";
    if (!list)
        return err_set(err, ERR_MACHINE, "checkpoint: out of memory");
    int result = checkpoint_list(uri, list, err);
    for (int i = 0; result == 0 && i < list->count && !*name; i++)
        if (list->entry[i].step == step && !memcmp(list->entry[i].lineage, lineage, RM_HASH_BYTES))
            text_copy(name, sizeof name, list->entry[i].name);
    free(list);
    if (result < 0)
        return -1;
    if (!*name)
        return err_set(err, ERR_NOT_FOUND, "checkpoints %s: none of step %lld and this history", uri,
                       (long long)step);
    return checkpoint_load(uri, name, layout, state, ret, err);
}

int checkpoint_verify(const char *uri, const char *name, struct manifest *ret, struct error *err)
{
    struct manifest *m = malloc(sizeof *m);
    if (!m)
        return err_set(err, ERR_MACHINE, "checkpoint: out of memory");
    int result = read_checked(uri, name, NULL, NULL, m, err);
    if (result == 0 && ret)
        *ret = *m;
    free(m);
    return result;
}
