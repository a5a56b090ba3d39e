/* Reads the index of a data folder from where it lies, and writes it anew: to a file with a name of
 * chance, synced, then renamed, so that of two who write at once, or are killed, a whole one stays.
 * identify.c reads it, `ringmaster data index` (cli/data.c) writes it. */
#include "common/storage/data/index_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/err_system.h"
#include "common/os/crypto.h"
#include "common/os/fault.h"

enum {
    READ_BYTES = 64 << 10, /* at a time */
    CHANCE_BYTES = 8,
    CLAIM_TRIES = 8,
};

static const char suffix[] = ".ringmaster-index", begun[] = ".tmp";

void data_index_path(const char *folder, int place, char out[RM_URI_MAX])
{
    size_t length = strlen(folder);
    while (length && folder[length - 1] == '/')
        length--;
    int n = snprintf(out, RM_URI_MAX, "%.*s%s%s", (int)length, folder, place ? "" : "/", suffix);
    if (n >= RM_URI_MAX || (place && !length))
        *out = 0;
}

/* --- reading --- */

static int read_all(int fd, const char *path, struct str *out, struct error *err)
{
    char piece[READ_BYTES];
    struct stat st;
    if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode)) /* it might never end */
        return err_set(err, ERR_DATA, "%s: this is no file, and so no index; delete it", path);
    for (;;) {
        ssize_t n = read(fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_system(err, ERR_MACHINE, "%s", path);
        if (n == 0)
            return 0;
        str_add(out, piece, (size_t)n);
        if (out->truncated)
            return err_set(err, ERR_DATA, "%s: larger than any index, %zu bytes; delete it", path,
                           out->ceiling);
    }
}

static int read_file(const char *path, struct str *out, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_system(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_MACHINE, "%s", path);
    int status = read_all(fd, path, out, err);
    close(fd);
    return status;
}

int data_index_load(struct data_index *ret, const char *path, struct error *err)
{
    struct str text = str_init(DATA_INDEX_BYTES_MAX);
    *ret = (struct data_index){0};
    int status = read_file(path, &text, err);
    if (status == 0)
        status = data_index_read(ret, str_text(&text), text.length, path, err);
    str_clear(&text);
    return status;
}

/* --- writing --- */

/* An index on its way: under a name of chance, locked by who writes it, so that of two that write at once
 * neither gets what the other has begun, and what somebody left who was killed can be told. */
struct making {
    char path[RM_URI_MAX], folder[RM_URI_MAX]; /* of the index, and what that lies in */
    const char *last;
    char name[RM_URI_MAX]; /* in the folder, for now */
    int folder_fd, fd;
};

static bool is_begun(const struct making *m, const char *name)
{
    size_t length = strlen(m->last), all = strlen(name), tail = sizeof begun - 1;
    return all > length + tail && !strncmp(name, m->last, length) && name[length] == '.' &&
           !strcmp(name + all - tail, begun);
}

static void remove_left(const struct making *m)
{
    int fd = openat(m->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    if (!folder && fd >= 0)
        close(fd);
    while (folder && (entry = readdir(folder))) {
        int left = is_begun(m, entry->d_name)
                       ? openat(m->folder_fd, entry->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
                       : -1;
        if (left >= 0 && flock(left, LOCK_EX | LOCK_NB) == 0)
            unlinkat(m->folder_fd, entry->d_name, 0);
        if (left >= 0)
            close(left);
    }
    if (folder)
        closedir(folder);
}

/* Whoever removes what was left may have come between our opening and our lock. */
static bool is_still(const struct making *m)
{
    struct stat here, there;
    return fstat(m->fd, &here) == 0 && fstatat(m->folder_fd, m->name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

static int begin_file(struct making *m, struct error *err)
{
    uint8_t chance[CHANCE_BYTES];
    char hex[2 * CHANCE_BYTES + 1];
    for (int i = 0; i < CLAIM_TRIES; i++) {
        crypto_random(chance, sizeof chance);
        hex_encode(chance, sizeof chance, hex);
        int n = snprintf(m->name, sizeof m->name, "%s.%s%s", m->last, hex, begun);
        if (n >= (int)sizeof m->name)
            return err_set(err, ERR_MACHINE, "%s: the path is too long", m->path);
        m->fd = openat(m->folder_fd, m->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (m->fd < 0)
            return err_system(err, ERR_MACHINE, "%s/%s", m->folder, m->name);
        bool locked = flock(m->fd, LOCK_EX | LOCK_NB) == 0;
        if (!locked && errno != EWOULDBLOCK)
            return 0; /* a file system without locks */
        if (locked && is_still(m))
            return 0;
        close(m->fd); /* who has the lock took it for something left, and removes it in a moment */
    }
    return err_set(err, ERR_MACHINE, "%s: somebody removes what is begun there", m->folder);
}

static int fill_file(const struct making *m, const struct str *text, struct error *err)
{
    for (size_t at = 0; at < text->length;) {
        ssize_t n = write(m->fd, text->data + at, text->length - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_system(err, ERR_MACHINE, "%s", m->path);
        at += (size_t)n;
    }
    return fsync(m->fd) == 0 ? 0 : err_system(err, ERR_MACHINE, "%s", m->path);
}

static int name_file(const struct making *m, struct error *err)
{
    FAULT("index-begun");
    if (renameat(m->folder_fd, m->name, m->folder_fd, m->last) < 0)
        return err_system(err, ERR_MACHINE, "%s", m->path);
    if (fsync(m->folder_fd) < 0 && errno != EINVAL && errno != EROFS) /* as some network file systems */
        return err_system(err, ERR_MACHINE, "%s", m->folder);
    return 0;
}

static int write_new(struct making *m, const struct str *text, struct error *err)
{
    if (begin_file(m, err) < 0)
        return -1;
    int status = fill_file(m, text, err) < 0 ? -1 : name_file(m, err);
    if (status < 0)
        unlinkat(m->folder_fd, m->name, 0);
    close(m->fd);
    return status;
}

static int write_whole(const char *path, const struct str *text, struct error *err)
{
    struct making m = {0};
    text_copy(m.path, sizeof m.path, path);
    text_copy(m.folder, sizeof m.folder, path);
    char *slash = strrchr(m.folder, '/');
    m.last = slash ? m.path + (slash - m.folder) + 1 : m.path;
    text_copy(slash ? slash + (slash == m.folder) : m.folder, 2, slash ? "" : ".");
    m.folder_fd = open(m.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (m.folder_fd < 0)
        return err_system(err, ERR_MACHINE, "%s", m.folder);
    remove_left(&m);
    int status = write_new(&m, text, err);
    close(m.folder_fd);
    return status;
}

static bool may_write(const char *folder)
{
    return faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0;
}

int data_index_save(const struct data_index *index, const char *folder, char ret_path[RM_URI_MAX],
                    struct error *err)
{
    struct str text = str_init(DATA_INDEX_BYTES_MAX);
    data_index_path(folder, !may_write(folder), ret_path);
    int status = *ret_path
                     ? data_index_write(index, &text, err)
                     : err_set(err, ERR_DATA, "%s: there is no room for an index in it or beside it", folder);
    if (status == 0 && write_whole(ret_path, &text, err) < 0)
        status = err_wrap(err, "the index can't be written");
    str_clear(&text);
    return status;
}
