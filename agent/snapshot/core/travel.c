#include "agent/snapshot/core/travel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

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

/* A line begins with the mount's number, its parent's, a device, and which part of its file system is seen
 * where. The last one that is mounted there hides the others. */
long travel_root_mount(const char *mountinfo)
{
    long found = -1;
    for (const char *line = mountinfo; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *at = line;
        for (int field = 0; field < 4 && at; field++) {
            at = strpbrk(at, " \n");
            at = at && *at == ' ' ? at + 1 : NULL;
        }
        if (at && !strncmp(at, "/ ", 2))
            found = strtol(line, NULL, 10);
    }
    return found;
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
