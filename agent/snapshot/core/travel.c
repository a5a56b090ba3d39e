#include "agent/snapshot/core/travel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"

enum { MIB = 1 << 20 };

bool travel_head_holds(const struct travel_head *head)
{
    bool ends = head->kind == TRAVEL_END && !head->path_length && !head->size;
    bool is = head->kind == TRAVEL_FILE || (head->kind == TRAVEL_FOLDER && !head->size) ||
              (head->kind == TRAVEL_LINK && head->size && head->size < TRAVEL_PATH_MAX);
    return head->magic == TRAVEL_HEAD_MAGIC && !(head->mode & ~07777U) && head->size <= INT64_MAX &&
           (ends || (is && head->path_length && head->path_length < TRAVEL_PATH_MAX));
}

bool travel_path_holds(const char *path, size_t length)
{
    if (length < 2 || *path != '/' || memchr(path, 0, length))
        return false;
    for (size_t at = 0; at < length;) {
        const char *end = memchr(path + at + 1, '/', length - at - 1);
        size_t part = end ? (size_t)(end - path) - at : length - at;
        if (part == 3 && !memcmp(path + at, "/..", 3))
            return false;
        at += part;
    }
    return true;
}

/* The number behind a key at the beginning of a line. */
static bool read_number(const char *text, const char *key, int base, long *ret)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        char *end;
        *ret = strtol(line + strlen(key), &end, base);
        return end != line + strlen(key);
    }
    return false;
}

bool travel_descriptor(const char *fdinfo, bool *ret_written, long *ret_mount)
{
    long flags;
    if (!read_number(fdinfo, "flags:", 8, &flags) || !read_number(fdinfo, "mnt_id:", 10, ret_mount))
        return false;
    *ret_written = (flags & O_ACCMODE) != O_RDONLY && !(flags & O_PATH);
    return true;
}

/* The word that many behind the first one of a line, up to its end; NULL: it has fewer. */
static const char *word_of(const char *line, int behind)
{
    for (; behind && line; behind--) {
        line = strpbrk(line, " \n");
        line = line && *line == ' ' ? line + 1 : NULL;
    }
    return line;
}

static bool word_is(const char *word, const char *what)
{
    size_t length = strlen(what);
    return word && !strncmp(word, what, length) &&
           (word[length] == ' ' || word[length] == '\n' || !word[length]);
}

static bool word_has(const char *word, const char *what)
{
    const char *found = word ? strstr(word, what) : NULL;
    return found && found < word + strcspn(word, " \n");
}

/* Behind a lone "-", which ends what has no fixed number of words. */
static const char *file_system_of(const char *line)
{
    const char *word = word_of(line, 6);
    while (word && !word_is(word, "-"))
        word = word_of(word, 1);
    return word ? word_of(word, 1) : NULL;
}

/* A line has the mount's number, its parent's, a device, which part of its file system is seen, and where. */
static bool goes_with_the_pod(const char *line)
{
    return word_has(word_of(line, 3), "/kubernetes.io~empty-dir/") || word_is(file_system_of(line), "tmpfs");
}

static void add_mount(struct travel_mounts *mounts, const char *line)
{
    mounts->number[mounts->count++] = strtol(line, NULL, 10);
}

void travel_own_mounts(const char *mountinfo, struct travel_mounts *ret)
{
    const char *root = NULL;
    *ret = (struct travel_mounts){0};
    for (const char *line = mountinfo; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (word_is(word_of(line, 4), "/"))
            root = line; /* the last one that is mounted there hides the others */
        else if (ret->count < TRAVEL_MOUNTS_MAX - 1 && goes_with_the_pod(line))
            add_mount(ret, line);
    }
    if (root)
        add_mount(ret, root);
    RM_ASSERT(ret->count <= TRAVEL_MOUNTS_MAX, "%d mounts of a pod's own", ret->count);
}

bool travel_is_own(const struct travel_mounts *mounts, long mount)
{
    for (int i = 0; i < mounts->count; i++)
        if (mounts->number[i] == mount)
            return true;
    return false;
}

bool travel_lies_in(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    while (length && folder[length - 1] == '/')
        length--;
    return !strncmp(path, folder, length) && (!path[length] || path[length] == '/');
}

int travel_refuse_path(const char *path, const char *images, struct error *err)
{
    static const char *const kernels[] = {"/proc", "/sys", "/dev"};
    const char *in = travel_lies_in(images, path) ? images : NULL;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (travel_lies_in(path, kernels[i]) || travel_lies_in(kernels[i], path))
            in = kernels[i];
    if (!in)
        return 0;
    return err_set(
        err, ERR_USAGE,
        "spec.checkpoint.processPaths has %.50s, but %.40s can't travel with a snapshot; name what "
        "the program writes",
        path, in);
}

int travel_refuse_bytes(int64_t named, int64_t open, int64_t room, struct error *err)
{
    if (open > TRAVEL_OPEN_MOST)
        return err_set(
            err, ERR_MACHINE,
            "files that the program writes to have %lld MiB, and %d MiB travel by themselves; name "
            "them in checkpoint.processPaths",
            (long long)(open / MIB), TRAVEL_OPEN_MOST / MIB);
    if (room < 0 || (named <= room && open <= room - named))
        return 0;
    return err_set(
        err, ERR_MACHINE,
        "there is no room for a snapshot: files of %lld MiB travel with it, and %lld MiB are free on "
        "disk beside its memory; make its volume larger",
        (long long)(named / MIB + open / MIB), (long long)(room / MIB));
}
