#include "common/storage/data/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/err_system.h"

enum {
    DEPTH_MAX = 128,
    PATH_LENGTH_MAX = 4096,
    FILES_MAX = 1 << 26,
};

struct walk {
    struct scan *out;
    char path[PATH_LENGTH_MAX]; /* of the entry looked at, relative to the folder */
    size_t length;
    int depth;
    struct error *err;
};

int scan_add(struct scan *s, const char *name, int64_t size, struct error *err)
{
    if (s->count == FILES_MAX)
        return err_set(err, ERR_DATA, "more than %d files", FILES_MAX);
    if (s->count == s->room) {
        int64_t room = s->room ? 2 * s->room : 64;
        struct scan_file *grown = realloc(s->file, (size_t)room * sizeof *grown);
        if (!grown)
            return err_set(err, ERR_MACHINE, "out of memory after %lld files", (long long)s->count);
        s->file = grown;
        s->room = room;
    }
    char *copy = strdup(name);
    if (!copy)
        return err_set(err, ERR_MACHINE, "out of memory after %lld files", (long long)s->count);
    s->file[s->count++] = (struct scan_file){.name = copy, .size = size};
    return 0;
}

static int add_file(struct walk *w, const struct stat *st)
{
    if (scan_add(w->out, w->path, st->st_size, w->err) < 0)
        return -1;
    struct scan_file *file = &w->out->file[w->out->count - 1];
    file->modified = st->st_mtim;
    file->inode = st->st_ino;
    return 0;
}

static int walk_folder(struct walk *w, int fd);

static int walk_below(struct walk *w, int parent_fd, const char *name)
{
    if (++w->depth > DEPTH_MAX)
        return err_set(w->err, ERR_DATA, "%.200s...: folders are nested deeper than %d", w->path, DEPTH_MAX);
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_system_data(w->err, "%s: the folder can't be read", w->path);
    int result = walk_folder(w, fd);
    w->depth--;
    return result;
}

static int visit(struct walk *w, int fd, const char *name)
{
    struct stat st;
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_system_data(w->err, "%s: the file can't be looked at", w->path);
    if (S_ISDIR(st.st_mode))
        return walk_below(w, fd, name);
    if (!S_ISREG(st.st_mode))
        return 0;
    if (faccessat(fd, name, R_OK, AT_EACCESS) < 0)
        return err_system_data(w->err, "%s: the file can't be read", w->path);
    return add_file(w, &st);
}

static int push(struct walk *w, const char *name)
{
    size_t length = strlen(name);
    if (w->length + length + 2 > sizeof w->path)
        return err_set(w->err, ERR_DATA, "%.200s...: the path is longer than %d bytes", w->path,
                       PATH_LENGTH_MAX - 1);
    if (w->length)
        w->path[w->length++] = '/';
    memcpy(w->path + w->length, name, length + 1);
    w->length += length;
    return 0;
}

static void pop(struct walk *w, size_t length)
{
    w->length = length;
    w->path[length] = 0;
}

static int walk_entries(struct walk *w, DIR *folder)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (!entry && errno)
            return err_system_data(w->err, "%s: the folder can't be read", w->path);
        if (!entry)
            return 0;
        if (entry->d_name[0] == '.')
            continue;
        size_t length = w->length;
        if (push(w, entry->d_name) < 0 || visit(w, dirfd(folder), entry->d_name) < 0)
            return -1;
        pop(w, length);
    }
}

/* Takes over fd. */
static int walk_folder(struct walk *w, int fd)
{
    DIR *folder = fdopendir(fd);
    if (!folder) {
        close(fd);
        return err_system_data(w->err, "%s: the folder can't be read", w->path);
    }
    int result = walk_entries(w, folder);
    closedir(folder);
    return result;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct scan_file *)a)->name, ((const struct scan_file *)b)->name);
}

int scan_folder(struct scan *out, int folder_fd, struct error *err)
{
    struct walk *w = calloc(1, sizeof *w);
    int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!w || fd < 0) {
        err_system_data(err, "the folder can't be read");
        free(w);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    w->out = out;
    w->err = err;
    int result = walk_folder(w, fd);
    free(w);
    if (result == 0 && out->count)
        qsort(out->file, (size_t)out->count, sizeof *out->file, by_name);
    return result;
}

void scan_clear(struct scan *scan)
{
    for (int64_t i = 0; i < scan->count; i++)
        free(scan->file[i].name);
    free(scan->file);
    *scan = (struct scan){0};
}
