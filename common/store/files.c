#include "common/store/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/fault.h"
#include "common/os/uri.h"
#include "common/store/folder.h"

int files_path(char out[RM_URI_MAX], const char *uri, const char *name, struct error *err)
{
    char root[RM_URI_MAX];
    if (uri_path(uri, root, sizeof root, err) < 0)
        return err_wrap(err, "checkpoint");
    int n = snprintf(out, RM_URI_MAX, "%s%s%s", root, name ? "/" : "", name ? name : "");
    if (n < 0 || n >= RM_URI_MAX)
        return err_set(err, ERR_USAGE, "checkpoint %.64s...: the path is too long", uri);
    return 0;
}

void files_part_name(char out[PART_NAME_MAX], const char *file, const uint8_t lineage[RM_HASH_BYTES])
{
    char hex[17];
    hex_encode(lineage, 8, hex);
    snprintf(out, PART_NAME_MAX, "%s.%s.part", file, hex);
}

void checkpoint_name(char out[CHECKPOINT_NAME_MAX], int64_t step, bool final)
{
    if (final)
        text_copy(out, CHECKPOINT_NAME_MAX, "final");
    else
        snprintf(out, CHECKPOINT_NAME_MAX, "step-%08lld", (long long)step);
}

int64_t files_step(const char *name)
{
    char again[CHECKPOINT_NAME_MAX];
    if (strncmp(name, "step-", 5) != 0 || strlen(name) >= sizeof again)
        return -1;
    long long step = strtoll(name + 5, NULL, 10);
    if (step < 0)
        return -1;
    checkpoint_name(again, step, false);
    return strcmp(again, name) ? -1 : (int64_t)step;
}

struct steps {
    int64_t *step;
    int count, room;
};

static int add_step(void *ctx, const char *name, struct error *err)
{
    struct steps *s = ctx;
    int64_t step = files_step(name);
    if (step < 0)
        return 0;
    if (s->count == s->room) {
        int room = s->room ? 2 * s->room : 64;
        int64_t *grown = realloc(s->step, (size_t)room * sizeof *grown);
        if (!grown)
            return err_set(err, ERR_MACHINE, "out of memory");
        s->step = grown;
        s->room = room;
    }
    s->step[s->count++] = step;
    return 0;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

int files_steps(const char *uri, int64_t **ret, int *ret_count, struct error *err)
{
    char path[RM_URI_MAX];
    struct steps found = {0};
    struct error why = {0};
    int fd;
    if (files_path(path, uri, NULL, err) < 0)
        return -1;
    if (folder_hold(path, FOLDER_UNHELD, false, &fd, &why) < 0 && why.code != ERR_NOT_FOUND)
        return err_set(err, why.code, "checkpoints %s", why.text);
    if (why.code != ERR_NOT_FOUND) {
        int result = folder_each(fd, add_step, &found, err);
        close(fd);
        if (result < 0) {
            free(found.step);
            return err_wrap(err, "checkpoints %s", path);
        }
    }
    if (found.count)
        qsort(found.step, (size_t)found.count, sizeof *found.step, newest_first);
    *ret = found.step;
    *ret_count = found.count;
    return 0;
}

int files_manifest(int folder_fd, const char *name, struct manifest *ret, struct error *err)
{
    struct str text = str_init(MANIFEST_TEXT_MAX);
    int result = folder_read_text(folder_fd, MANIFEST_NAME, MANIFEST_TEXT_MAX, &text, err);
    if (result == 0)
        result = manifest_read(ret, str_text(&text), text.length, MANIFEST_NAME, err);
    str_clear(&text);
    int64_t step = files_step(name);
    if (result == 0 && step >= 0 && step != ret->step)
        return err_set(err, ERR_DATA, "%s: it is of step %lld", MANIFEST_NAME, (long long)ret->step);
    return result;
}

static bool starts(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

static bool ends(const char *text, const char *with)
{
    size_t length = strlen(text), tail = strlen(with);
    return length >= tail && !strcmp(text + length - tail, with);
}

/* The names that the store itself gives in a checkpoint folder. */
static bool is_ours(const char *name)
{
    if (!strcmp(name, MANIFEST_NAME) || !strcmp(name, DAMAGED_NAME) || !strcmp(name, "config.json") ||
        !strcmp(name, "model.safetensors"))
        return true;
    if (starts(name, "optimizer-"))
        return ends(name, ".safetensors") || ends(name, ".part");
    if (starts(name, "model.safetensors."))
        return ends(name, ".part");
    return (starts(name, "manifest.json.") || starts(name, "config.json.")) && ends(name, ".tmp");
}

struct removal {
    int folder_fd;
    const struct manifest *stays;
};

static bool is_named(const struct manifest *manifest, const char *name)
{
    for (int i = 0; i < manifest->pieces; i++)
        if (!strcmp(manifest->piece[i].file, name))
            return true;
    return !strcmp(name, MANIFEST_NAME);
}

static int remove_one(void *ctx, const char *name, struct error *err)
{
    const struct removal *r = ctx;
    if (!is_ours(name) || (r->stays && is_named(r->stays, name)))
        return 0;
    if (unlinkat(r->folder_fd, name, 0) < 0 && errno != ENOENT)
        return err_errno(err, ERR_MACHINE, "%s can't be removed", name);
    FAULT("file-removed");
    return 0;
}

int files_remove(int folder_fd, const struct manifest *stays, struct error *err)
{
    struct removal removal = {folder_fd, stays};
    if (!stays && unlinkat(folder_fd, MANIFEST_NAME, 0) == 0 && folder_sync(folder_fd, err) < 0)
        return -1; /* from here on it is no checkpoint, whatever happens to the rest */
    return folder_each(folder_fd, remove_one, &removal, err);
}

static int remove_held(int folder_fd, const char *path, bool unfinished, struct error *err)
{
    if (unfinished && (folder_has(folder_fd, MANIFEST_NAME) || folder_has(folder_fd, DAMAGED_NAME)))
        return 0;
    if (files_remove(folder_fd, NULL, err) < 0)
        return err_wrap(err, "checkpoint %s", path);
    if (rmdir(path) < 0 && errno != ENOTEMPTY && errno != EEXIST && errno != ENOENT)
        return err_errno(err, ERR_MACHINE, "checkpoint %s can't be removed", path);
    return 0;
}

int files_remove_folder(const char *uri, const char *name, bool unfinished, struct error *err)
{
    char path[RM_URI_MAX];
    struct error why = {0};
    int fd;
    if (files_path(path, uri, name, err) < 0)
        return -1;
    if (folder_hold(path, FOLDER_ALONE, false, &fd, &why) < 0)
        return why.code == ERR_NOT_FOUND ? 0 : err_set(err, why.code, "checkpoint %s", why.text);
    int result = remove_held(fd, path, unfinished, err);
    close(fd);
    return result;
}

void files_collect(const char *uri, int64_t step)
{
    int64_t *steps;
    int count;
    if (files_steps(uri, &steps, &count, NULL) < 0)
        return;
    for (int i = 0; i < count; i++) {
        char name[CHECKPOINT_NAME_MAX];
        checkpoint_name(name, steps[i], false);
        if (steps[i] < step)
            files_remove_folder(uri, name, true, NULL);
    }
    free(steps);
}
