/* The listing of a store that is a folder: all files below it with their names in the order of a bucket's
 * listing, and the folders of one level. object_file.c has it in its table, object_file_upload.c finds so
 * what uploads have left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/err_system.h"
#include "common/storage/object/object_file.h"

/* One folder's entries: "name" of files, "name/" of folders, so that sorting them is sorting whole names. */
struct entries {
    char **name;
    int count, room;
};

static void entries_clear(struct entries *e)
{
    for (int i = 0; i < e->count; i++)
        free(e->name[i]);
    free(e->name);
}

static int entries_add(struct entries *e, const char *name, bool folder, struct error *err)
{
    size_t length = strlen(name);
    if (e->count == e->room) {
        int room = e->room ? 2 * e->room : 64;
        char **grown = realloc(e->name, (size_t)room * sizeof *grown);
        if (!grown)
            return err_set(err, ERR_MACHINE, "out of memory");
        e->name = grown;
        e->room = room;
    }
    char *copy = malloc(length + 2);
    if (!copy)
        return err_set(err, ERR_MACHINE, "out of memory");
    memcpy(copy, name, length);
    memcpy(copy + length, folder ? "/" : "", folder ? 2 : 1);
    e->name[e->count++] = copy;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_entry(struct entries *e, int folder_fd, const struct dirent *entry, struct error *err)
{
    struct stat st;
    const char *name = entry->d_name;
    if (!strcmp(name, ".") || !strcmp(name, ".."))
        return 0;
    bool folder = entry->d_type == DT_DIR, file = entry->d_type == DT_REG;
    if (entry->d_type == DT_UNKNOWN && fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        folder = S_ISDIR(st.st_mode);
        file = S_ISREG(st.st_mode);
    }
    return folder || file ? entries_add(e, name, folder, err) : 0;
}

/* folder_fd stays open. */
static int entries_read(struct entries *e, int folder_fd, struct error *err)
{
    int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (!folder) {
        err_system(err, ERR_MACHINE, "the folder can't be read");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    int result = 0;
    const struct dirent *entry;
    while (result == 0 && (errno = 0, entry = readdir(folder)))
        result = add_entry(e, folder_fd, entry, err);
    if (result == 0 && errno)
        result = err_system(err, ERR_MACHINE, "the folder can't be read");
    closedir(folder);
    if (e->count)
        qsort(e->name, (size_t)e->count, sizeof *e->name, by_name);
    return result;
}

struct walk {
    const char *prefix;
    bool hidden;
    int (*visit)(void *ctx, const struct object_file_found *found, struct error *err);
    void *ctx;
    char name[OBJECT_NAME_MAX]; /* of the folder under way, with "/" at its end, then of the file */
    size_t length;
};

static bool starts(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

static int walk_file(struct walk *w, int folder_fd, const char *last, struct error *err)
{
    struct stat st;
    if (object_file_is_hidden(last) != w->hidden || (!w->hidden && !starts(w->name, w->prefix)))
        return 0;
    if (fstatat(folder_fd, last, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_system(err, ERR_MACHINE, "%s", w->name);
    struct object_file_found found = {.name = w->name,
                                      .folder_fd = folder_fd,
                                      .last = last,
                                      .bytes = st.st_size,
                                      .modified_s = st.st_mtim.tv_sec};
    object_file_tag(&st, found.tag);
    return w->visit(w->ctx, &found, err);
}

static int walk_folder(struct walk *w, int fd, struct error *err);

static int walk_entry(struct walk *w, int fd, const char *entry, struct error *err)
{
    size_t length = strlen(entry), before = w->length;
    if (before + length >= sizeof w->name)
        return 0; /* no object of ours: its name would be too long */
    memcpy(w->name + before, entry, length + 1);
    if (entry[length - 1] != '/')
        return walk_file(w, fd, entry, err);
    if (!starts(w->name, w->prefix) && !starts(w->prefix, w->name))
        return 0;
    int below = openat(fd, entry, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (below < 0)
        return errno == ENOENT ? 0 : err_system(err, ERR_MACHINE, "%s", w->name);
    w->length = before + length;
    int result = walk_folder(w, below, err);
    close(below);
    w->length = before;
    return result;
}

static int walk_folder(struct walk *w, int fd, struct error *err)
{
    struct entries e = {0};
    int result = entries_read(&e, fd, err);
    for (int i = 0; i < e.count && result == 0; i++)
        result = walk_entry(w, fd, e.name[i], err);
    entries_clear(&e);
    return result;
}

/* The folder that everything below prefix lies in; 1 where it is absent. */
static int open_start(struct object_file *store, const char *prefix, struct object_place *ret,
                      struct error *err)
{
    struct error why = {0};
    if (object_file_place(store, prefix, false, ret, &why) == 0)
        return 0;
    return why.code == ERR_NOT_FOUND ? 1 : err_from(err, &why, "%s", why.text);
}

int object_file_walk(struct object_file *store, const char *prefix, bool hidden,
                     int (*visit)(void *ctx, const struct object_file_found *found, struct error *err),
                     void *ctx, struct error *err)
{
    struct object_place start;
    int absent = open_start(store, prefix, &start, err);
    if (absent)
        return absent < 0 ? -1 : 0;
    struct walk *w = calloc(1, sizeof *w);
    if (!w) {
        close(start.folder_fd);
        return err_set(err, ERR_MACHINE, "%s: out of memory", store->root);
    }
    *w = (struct walk){.prefix = prefix, .hidden = hidden, .visit = visit, .ctx = ctx};
    w->length = (size_t)(start.last - prefix);
    memcpy(w->name, prefix, w->length);
    struct error why = {0};
    int result = walk_folder(w, start.folder_fd, &why);
    free(w);
    close(start.folder_fd);
    return result < 0 ? err_from(err, &why, "%s: %s", store->root, why.text) : 0;
}

int object_file_folders(struct object_store *base, const char *prefix,
                        int (*visit)(void *ctx, const char *part, struct error *err), void *ctx,
                        struct error *err)
{
    struct object_place start;
    struct entries e = {0};
    int absent = open_start(object_file_of(base), prefix, &start, err);
    if (absent)
        return absent < 0 ? -1 : 0;
    int result = entries_read(&e, start.folder_fd, err);
    close(start.folder_fd);
    for (int i = 0; i < e.count && result == 0; i++) {
        if (!object_file_is_hidden(e.name[i]))
            result = visit(ctx, e.name[i], err);
    }
    entries_clear(&e);
    return result;
}
