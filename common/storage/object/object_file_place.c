/* Where a folder's objects lie and how their bytes get there: names and places, writing, syncing. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/err_system.h"
#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "common/storage/object/object_file.h"

enum { CHUNK = 256 << 10, PLACE_TRIES = 16, FLUSHED = 64 << 20 };

bool object_file_is_hidden(const char *last)
{
    return !strncmp(last, ".put-", 5) || !strncmp(last, ".upload-", 8) || !strncmp(last, ".part-", 6);
}

void object_file_chance(char out[17])
{
    uint8_t random[8];
    crypto_random(random, sizeof random);
    hex_encode(random, sizeof random, out);
}

void object_file_tag(const struct stat *st, char out[OBJECT_TAG_MAX])
{
    snprintf(out, OBJECT_TAG_MAX, "%llx-%llx-%llx", (unsigned long long)st->st_ino,
             (unsigned long long)st->st_mtim.tv_sec * 1000000000u + (unsigned long long)st->st_mtim.tv_nsec,
             (unsigned long long)st->st_size);
}

static int make_root(const char *root, struct error *err)
{
    char part[OBJECT_URI_MAX];
    text_copy(part, sizeof part, root);
    for (char *at = part + 1;; at++) {
        char here = *at;
        if (here && here != '/')
            continue;
        *at = 0;
        if (mkdir(part, 0777) < 0 && errno != EEXIST)
            return err_system(err, ERR_MACHINE, "%s: the folder can't be made", part);
        if (!here)
            return 0;
        *at = here;
    }
}

static int open_root(struct object_file *store, bool make, struct error *err)
{
    if (make && access(store->root, F_OK) < 0 && make_root(store->root, err) < 0)
        return -1;
    int fd = open(store->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return err_set(err, ERR_NOT_FOUND, "%s: there is no such folder", store->root);
    return fd < 0 ? err_system(err, ERR_MACHINE, "%s", store->root) : fd;
}

/* The folder of one name inside another one, never through a link. */
static int open_below(int above, const char *part, bool make, struct error *err)
{
    if (make && mkdirat(above, part, 0777) < 0 && errno != EEXIST)
        return errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "%s: the folder above has gone", part)
                               : err_system(err, ERR_MACHINE, "%s: the folder can't be made", part);
    int fd = openat(above, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
        return err_set(err, ERR_NOT_FOUND, "%s: there is no such folder", part);
    return fd < 0 ? err_system(err, ERR_MACHINE, "%s", part) : fd;
}

int object_file_place(struct object_file *store, const char *name, bool make, struct object_place *ret,
                      struct error *err)
{
    int fd = open_root(store, make, err);
    const char *at = name;
    while (fd >= 0 && strchr(at, '/')) {
        char part[OBJECT_NAME_MAX];
        size_t length = strcspn(at, "/");
        memcpy(part, at, length);
        part[length] = 0;
        int below = open_below(fd, part, make, err);
        close(fd);
        fd = below;
        at += length + 1;
    }
    if (fd < 0)
        return -1;
    *ret = (struct object_place){fd, at};
    return 0;
}

int object_file_within(struct object_file *store, const char *name,
                       int (*work)(void *ctx, const struct object_place *place, struct error *err), void *ctx,
                       struct error *err)
{
    struct error why = {0};
    for (int i = 0; i < PLACE_TRIES; i++) {
        struct object_place place;
        why = (struct error){0};
        int result = object_file_place(store, name, true, &place, &why);
        if (result == 0) {
            result = work(ctx, &place, &why);
            close(place.folder_fd);
        }
        if (result == 0)
            return 0;
        if (why.code != ERR_NOT_FOUND)
            break;
    }
    bool gone = why.code == ERR_NOT_FOUND; /* again and again, or a link stands in the folder's place */
    why.code = gone ? ERR_MACHINE : why.code;
    return err_from(err, &why, "%s/%s: %s", store->root, name, why.text);
}

void object_file_tidy(struct object_file *store, const char *name)
{
    char folder[OBJECT_NAME_MAX];
    text_copy(folder, sizeof folder, name);
    for (char *slash; (slash = strrchr(folder, '/'));) {
        struct object_place place;
        *slash = 0;
        if (object_file_place(store, folder, false, &place, NULL) < 0)
            continue;
        int result = unlinkat(place.folder_fd, place.last, AT_REMOVEDIR);
        bool stays = result < 0 && errno != ENOENT;
        close(place.folder_fd);
        if (stays)
            return;
    }
}

int object_file_sync_folder(int folder_fd, struct error *err)
{
    /* Some network file systems can't sync a folder; they are consistent without it. */
    if (fsync(folder_fd) < 0 && errno != EINVAL && errno != EROFS)
        return err_system(err, ERR_MACHINE, "syncing the folder failed");
    return 0;
}

/* Begins to flush the newest 64 MiB, and waits for those before: what the last fsync has to wait for, without
 * a sign that anything moves, stays small. What failed is told here alone, and not by that fsync again. */
static int flush_behind(int fd, int64_t end, struct error *err)
{
    static const unsigned whole =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    bool none = sync_file_range(fd, end - FLUSHED, FLUSHED, SYNC_FILE_RANGE_WRITE) < 0 ||
                (end > FLUSHED && sync_file_range(fd, end - 2 * FLUSHED, FLUSHED, whole) < 0);
    bool can = errno == EIO || errno == ENOSPC || errno == EDQUOT;
    return none && can ? err_system(err, ERR_MACHINE, "writing failed") : 0;
}

static int write_run(struct object_file *store, int fd, const struct object_body *body, int run,
                     int64_t offset, struct sha256 *hash, struct error *err)
{
    const char *bytes = body->run[run].bytes;
    size_t count = body->run[run].count;
    for (size_t at = 0; at < count;) {
        size_t here = count - at < CHUNK ? count - at : CHUNK;
        if (object_file_cancelled(store))
            return object_file_give_up(err);
        ssize_t n = pwrite(fd, bytes + at, here, offset + (int64_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_system(err, ERR_MACHINE, "writing failed");
        object_file_tell_taken(body, run, at, hash, (size_t)n);
        at += (size_t)n;
        int64_t end = offset + (int64_t)at;
        if (end / FLUSHED != (end - n) / FLUSHED && flush_behind(fd, end / FLUSHED * FLUSHED, err) < 0)
            return -1;
        object_file_moved(store, n);
    }
    return 0;
}

int object_file_write(struct object_file *store, int fd, int64_t offset, const struct object_body *body,
                      uint8_t *sha256, struct error *err)
{
    struct sha256 *hash = sha256 ? sha256_open() : NULL;
    bool direct = object_file_goes_direct(fd, body);
    int result = direct ? object_file_write_direct(store, fd, offset, body, hash, err) : 0;
    for (int i = 0; i < body->runs && result == 0 && !direct; i++) {
        result = write_run(store, fd, body, i, offset, hash, err);
        offset += (int64_t)body->run[i].count;
    }
    if (hash && result == 0)
        sha256_finish(hash, sha256);
    else
        sha256_free(hash);
    return result;
}

int object_file_sync(int fd, struct error *err)
{
    if (fsync(fd) < 0)
        return err_system(err, ERR_MACHINE, "syncing failed");
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    return 0;
}

/* linkat refuses to replace on every file system that has hard links, network ones included; most of the
 * others know a rename that does. */
static int link_new(int folder_fd, const char *from, const char *to)
{
    if (linkat(folder_fd, from, folder_fd, to, 0) == 0)
        return 0;
    bool no_links = errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS;
    return no_links ? renameat2(folder_fd, from, folder_fd, to, RENAME_NOREPLACE) : -1;
}

int object_file_give_name(int folder_fd, const char *from, const char *to, enum object_mode mode,
                          struct error *err)
{
    int result =
        mode == OBJECT_REPLACE ? renameat(folder_fd, from, folder_fd, to) : link_new(folder_fd, from, to);
    if (result == 0)
        return 0;
    enum error_code code = errno == EEXIST ? ERR_EXISTS : errno == ENOENT ? ERR_NOT_FOUND : ERR_MACHINE;
    return err_system(err, code, "%s", to);
}
