#include "common/store/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/crypto.h"
#include "common/os/fault.h"

enum { HOLD_TRIES = 16 };

int folder_make(const char *path, struct error *err)
{
    char part[RM_URI_MAX];
    if (!text_copy(part, sizeof part, path))
        return err_set(err, ERR_USAGE, "%.64s...: the path is too long", path);
    for (char *at = part + 1;; at++) {
        char here = *at;
        if (here && here != '/')
            continue;
        *at = 0;
        if (mkdir(part, 0777) < 0 && errno != EEXIST)
            return err_errno(err, ERR_MACHINE, "%s: the folder can't be made", part);
        if (!here)
            return 0;
        *at = here;
    }
}

static bool same_folder(int fd, const char *path)
{
    struct stat held, named;
    return fstat(fd, &held) == 0 && stat(path, &named) == 0 && held.st_dev == named.st_dev &&
           held.st_ino == named.st_ino;
}

static int lock_folder(int fd, enum folder_hold how)
{
    int result = 0;
    if (how == FOLDER_UNHELD)
        return 0;
    do
        result = flock(fd, how == FOLDER_SHARED ? LOCK_SH : LOCK_EX | LOCK_NB);
    while (result < 0 && errno == EINTR);
    return result;
}

/* A link is never followed to a folder that is to be emptied: only its name is ours. */
static int open_folder(const char *path, enum folder_hold how, bool make, struct error *err)
{
    if (make && folder_make(path, err) < 0)
        return -1;
    int follow = how == FOLDER_ALONE ? O_NOFOLLOW : 0;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | follow);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
        return err_set(err, ERR_NOT_FOUND, "%s: there is no such folder", path);
    return fd < 0 ? err_errno(err, ERR_MACHINE, "%s", path) : fd;
}

int folder_hold(const char *path, enum folder_hold how, bool make, int *ret_fd, struct error *err)
{
    for (int i = 0; i < HOLD_TRIES; i++) {
        struct error why = {0};
        int fd = open_folder(path, how, make, &why);
        if (fd < 0 && why.code == ERR_NOT_FOUND && make)
            continue; /* deleted between making and opening */
        if (fd < 0)
            return err_set(err, why.code, "%s", why.text);
        if (lock_folder(fd, how) < 0) {
            if (errno == EWOULDBLOCK)
                err_set(err, ERR_EXISTS, "%s: someone else works in this folder", path);
            else
                err_errno(err, ERR_MACHINE, "%s: the folder can't be locked", path);
            close(fd);
            return -1;
        }
        if (same_folder(fd, path)) {
            *ret_fd = fd;
            return 0;
        }
        close(fd); /* deleted, or replaced by another, while we waited */
    }
    return err_set(err, ERR_MACHINE, "%s: the folder keeps disappearing", path);
}

int folder_read(int fd, void *out, int64_t count, int64_t offset, struct error *err)
{
    char *to = out;
    while (count > 0) {
        ssize_t n = pread(fd, to, (size_t)count, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(err, ERR_MACHINE, "reading failed");
        if (n == 0)
            return err_set(err, ERR_DATA, "the file ends at byte %lld, %lld bytes too early",
                           (long long)offset, (long long)count);
        to += n;
        offset += n;
        count -= n;
    }
    return 0;
}

int folder_write(int fd, const void *bytes, int64_t count, int64_t offset, struct error *err)
{
    const char *from = bytes;
    while (count > 0) {
        ssize_t n = pwrite(fd, from, (size_t)count, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(err, ERR_MACHINE, "writing failed");
        from += n;
        offset += n;
        count -= n;
    }
    return 0;
}

static int read_whole(int fd, int64_t most, struct str *out, struct error *err)
{
    char chunk[16384];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(err, ERR_MACHINE, "reading failed");
        if (n == 0)
            return 0;
        if ((int64_t)out->length + n > most)
            return err_set(err, ERR_DATA, "the file is longer than %lld bytes", (long long)most);
        str_add(out, chunk, (size_t)n);
    }
}

int folder_read_text(int folder_fd, const char *name, int64_t most, struct str *out, struct error *err)
{
    int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_MACHINE, "%s", name);
    int result = read_whole(fd, most, out, err);
    close(fd);
    return result < 0 ? err_wrap(err, "%s", name) : 0;
}

static int write_temporary(int folder_fd, const char *temporary, const struct str *text, struct error *err)
{
    int fd = openat(folder_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_errno(err, ERR_MACHINE, "%s", temporary);
    int result = folder_write(fd, text->data, (int64_t)text->length, 0, err);
    if (result == 0 && fsync(fd) < 0)
        result = err_errno(err, ERR_MACHINE, "syncing failed");
    close(fd);
    return result < 0 ? err_wrap(err, "%s", temporary) : 0;
}

/* linkat refuses to replace on every file system that has hard links, network ones included; most of the
 * others know a rename that does. */
static int link_new(int folder_fd, const char *temporary, const char *name)
{
    if (linkat(folder_fd, temporary, folder_fd, name, 0) == 0)
        return 0;
    bool no_links = errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS;
    return no_links ? renameat2(folder_fd, temporary, folder_fd, name, RENAME_NOREPLACE) : -1;
}

static int give_name(int folder_fd, const char *temporary, const char *name, bool replace, struct error *err)
{
    int result =
        replace ? renameat(folder_fd, temporary, folder_fd, name) : link_new(folder_fd, temporary, name);
    if (result < 0)
        return err_errno(err, errno == EEXIST ? ERR_EXISTS : ERR_MACHINE, "%s", name);
    return 0;
}

int folder_write_text(int folder_fd, const char *name, const struct str *text, bool replace,
                      struct error *err)
{
    char temporary[128], tail[17];
    uint8_t random[8];
    crypto_random(random, sizeof random);
    hex_encode(random, sizeof random, tail);
    snprintf(temporary, sizeof temporary, "%s.%s.tmp", name, tail);
    int result = write_temporary(folder_fd, temporary, text, err);
    if (result == 0 && !replace)
        FAULT("manifest-temp"); /* the manifest is the one file that never replaces another */
    if (result == 0)
        result = give_name(folder_fd, temporary, name, replace, err);
    unlinkat(folder_fd, temporary, 0); /* renamed already: there is nothing left to remove */
    return result;
}

bool folder_has(int folder_fd, const char *name)
{
    return faccessat(folder_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int folder_sync(int folder_fd, struct error *err)
{
    /* Some network file systems can't sync a folder; they are consistent without it. */
    if (fsync(folder_fd) < 0 && errno != EINVAL && errno != EROFS)
        return err_errno(err, ERR_MACHINE, "syncing the folder failed");
    return 0;
}

int folder_each(int folder_fd, int (*visit)(void *ctx, const char *name, struct error *err), void *ctx,
                struct error *err)
{
    int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (!folder) {
        err_errno(err, ERR_MACHINE, "the folder can't be read");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    int result = 0;
    const struct dirent *entry;
    while (result == 0 && (entry = readdir(folder)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            result = visit(ctx, entry->d_name, err);
    closedir(folder);
    return result;
}
