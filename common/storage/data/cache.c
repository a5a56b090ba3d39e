/* Keeps pieces of content in a bounded folder that several programs share, each with its hash. */
#include "common/storage/data/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/str.h"
#include "common/os/crypto.h"

enum { NAME_BYTES = CACHE_KEY_MAX + 8 };

struct cache {
    char folder[RM_URI_MAX];
    int fd;
    int64_t bound;
    int64_t seen;  /* bytes of all pieces when the folder was looked at last */
    int64_t since; /* written by us after that */
};

struct piece {
    char name[NAME_BYTES];
    int64_t bytes;
    struct timespec used;
};

struct pieces {
    struct piece *piece;
    size_t count, room;
    int64_t bytes;
};

void cache_folder(const char *uri, char out[RM_URI_MAX])
{
    if (*uri)
        text_copy(out, RM_URI_MAX, uri + strlen("file://"));
    else
        snprintf(out, RM_URI_MAX, "/var/tmp/ringmaster-%ld/data", (long)geteuid());
}

static int make_folders(const char *folder, struct error *err)
{
    char path[RM_URI_MAX];
    text_copy(path, sizeof path, folder);
    for (char *at = path + 1;; at++) {
        if (*at && *at != '/')
            continue;
        char rest = *at;
        *at = 0;
        if (mkdir(path, 0700) < 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
            return err_errno(err, ERR_MACHINE, "cache %s", path);
        *at = rest;
        if (!rest)
            return 0;
    }
}

static int open_folder(struct cache *c, struct error *err)
{
    struct stat st;
    if (make_folders(c->folder, err) < 0)
        return -1;
    c->fd = open(c->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c->fd < 0 || fstat(c->fd, &st) < 0)
        return err_errno(err, ERR_MACHINE, "cache %s", c->folder);
    if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
        return err_set(err, ERR_MACHINE,
                       "cache %s: others may write there; choose another spec.trainer.data.cache", c->folder);
    return 0;
}

/* ---- the bound ---- */

static int by_use(const void *a, const void *b)
{
    const struct timespec *x = &((const struct piece *)a)->used, *y = &((const struct piece *)b)->used;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static bool is_part(const char *name)
{
    size_t length = strlen(name);
    return length > 5 && !strcmp(name + length - 5, ".part");
}

/* What a program that was killed had begun. */
static void remove_stale(const struct cache *c, const char *name)
{
    int fd = openat(c->fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(c->fd, name, 0);
    close(fd);
}

static void note_piece(struct pieces *all, const char *name, const struct stat *st)
{
    if (all->count == all->room) {
        size_t room = all->room ? 2 * all->room : 256;
        struct piece *grown = realloc(all->piece, room * sizeof *grown);
        if (!grown)
            abort();
        all->piece = grown;
        all->room = room;
    }
    struct piece *piece = &all->piece[all->count++];
    *piece = (struct piece){.bytes = st->st_size, .used = st->st_mtim};
    text_copy(piece->name, sizeof piece->name, name);
    all->bytes += st->st_size;
}

static void look_at_pieces(const struct cache *c, struct pieces *all)
{
    int fd = openat(c->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    struct stat st;
    if (!folder) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while ((entry = readdir(folder))) {
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= NAME_BYTES)
            continue;
        if (is_part(entry->d_name))
            remove_stale(c, entry->d_name);
        else if (fstatat(c->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            note_piece(all, entry->d_name, &st);
    }
    closedir(folder);
}

/* Down to seven eighths, so that it is not done for each piece. */
static void trim(struct cache *c)
{
    struct pieces all = {0};
    look_at_pieces(c, &all);
    int64_t bytes = all.bytes, goal = c->bound - c->bound / 8;
    if (bytes > c->bound && all.count) {
        qsort(all.piece, all.count, sizeof *all.piece, by_use);
        for (size_t i = 0; i < all.count && bytes > goal; i++) {
            unlinkat(c->fd, all.piece[i].name, 0);
            bytes -= all.piece[i].bytes;
        }
    }
    free(all.piece);
    c->seen = bytes;
    c->since = 0;
}

static void make_room(struct cache *c, int64_t wrote)
{
    c->since += wrote;
    if (c->seen + c->since > c->bound || c->since > c->bound / 8)
        trim(c);
}

int cache_open(struct cache **ret, const char *folder, int64_t bytes, struct error *err)
{
    struct cache *c = calloc(1, sizeof *c);
    if (!c)
        return err_set(err, ERR_MACHINE, "no memory for a cache");
    *c = (struct cache){.fd = -1, .bound = bytes};
    text_copy(c->folder, sizeof c->folder, folder);
    if (open_folder(c, err) < 0) {
        cache_free(c);
        return -1;
    }
    trim(c);
    *ret = c;
    return 0;
}

void cache_free(struct cache *c)
{
    if (!c)
        return;
    if (c->fd >= 0)
        close(c->fd);
    free(c);
}

/* ---- pieces ---- */

static bool is_whole(int fd, int64_t bytes)
{
    uint8_t hash[RM_HASH_BYTES];
    size_t length = (size_t)bytes + RM_HASH_BYTES;
    uint8_t *map = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return false;
    sha256_once(map, (size_t)bytes, hash);
    bool whole = !memcmp(hash, map + bytes, sizeof hash);
    munmap(map, length);
    return whole;
}

int cache_take(struct cache *c, const char *key, int64_t bytes, bool verify)
{
    struct stat st;
    int fd = openat(c->fd, key, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -1;
    bool fits = fstat(fd, &st) == 0 && st.st_size == bytes + RM_HASH_BYTES;
    if (fits && (!verify || is_whole(fd, bytes))) {
        futimens(fd, NULL); /* used now */
        return fd;
    }
    unlinkat(c->fd, key, 0);
    close(fd);
    return -1;
}

static void part_name(char out[NAME_BYTES], const char *key)
{
    snprintf(out, NAME_BYTES, "%.64s.part", key);
}

/* Between our opening and our lock, whoever had it may have made it the piece. */
static bool is_still(const struct cache *c, const char *name, int fd)
{
    struct stat here, there;
    return fstat(fd, &here) == 0 && fstatat(c->fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

int cache_claim(struct cache *c, const char *key, struct error *err)
{
    char name[NAME_BYTES];
    part_name(name, key);
    for (;;) {
        int fd = openat(c->fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            return err_errno(err, ERR_MACHINE, "cache %s", c->folder);
        bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
        if (locked && is_still(c, name, fd))
            return fd;
        close(fd);
        if (!locked)
            return CACHE_BUSY;
    }
}

static int write_at(int fd, const void *bytes, int64_t count, int64_t at)
{
    const uint8_t *from = bytes;
    while (count > 0) {
        ssize_t n = pwrite(fd, from, (size_t)count, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        from += n;
        at += n;
        count -= n;
    }
    return 0;
}

int cache_put(struct cache *c, const char *key, int claim, const void *bytes, int64_t count,
              struct error *err)
{
    uint8_t hash[RM_HASH_BYTES];
    char name[NAME_BYTES];
    part_name(name, key);
    sha256_once(bytes, (size_t)count, hash);
    if (ftruncate(claim, 0) < 0 || write_at(claim, bytes, count, 0) < 0 ||
        write_at(claim, hash, sizeof hash, count) < 0 || renameat(c->fd, name, c->fd, key) < 0) {
        err_errno(err, ERR_MACHINE, "cache %s", c->folder);
        cache_drop(c, key, claim);
        return -1;
    }
    flock(claim, LOCK_UN);
    make_room(c, count + RM_HASH_BYTES);
    return 0;
}

void cache_drop(struct cache *c, const char *key, int claim)
{
    char name[NAME_BYTES];
    part_name(name, key);
    unlinkat(c->fd, name, 0);
    close(claim);
}
