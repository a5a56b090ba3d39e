/* Writing large bodies to where they lie, past the memory's pages, where the file system takes that: nothing
 * is copied into pages that would push others out, and nothing is left to be written when it is synced. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/err_system.h"
#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "common/storage/object/object_file.h"

enum {
    UNIT = 4096,      /* what direct writes have to be aligned to, on any disk of today */
    ROOM = 4 << 20,   /* of one write */
    STEP = 256 << 10, /* copied and told at a time, so that it is still in the processor's cache */
    LEAST = 8 << 20,  /* a body smaller than this is written as any file */
};

struct direct {
    struct object_file *store;
    int fd;
    bool works; /* the file system takes it, as far as is known */
    char *room; /* (ROOM) aligned */
    size_t filled;
    int64_t at; /* of its first byte in the file */
};

void object_file_tell_taken(const struct object_body *body, int run, size_t at, struct sha256 *hash,
                            size_t count)
{
    const char *bytes = (const char *)body->run[run].bytes + at;
    if (hash)
        sha256_add(hash, bytes, count);
    if (!body->taken)
        return;
    for (int i = 0; i < run; i++)
        at += body->run[i].count;
    body->taken(body->ctx, (int64_t)at, bytes, count);
}

bool object_file_lies_in_memory(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) < 0 || fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
}

bool object_file_goes_direct(int fd, const struct object_body *body)
{
    size_t bytes = 0;
    for (int i = 0; i < body->runs; i++)
        bytes += body->run[i].count;
    return bytes >= LEAST && !object_file_lies_in_memory(fd);
}

static void turn(struct direct *d, bool on)
{
    int flags = fcntl(d->fd, F_GETFL);
    int wanted = on ? flags | O_DIRECT : flags & ~O_DIRECT;
    if (flags >= 0 && (wanted == flags || fcntl(d->fd, F_SETFL, wanted) == 0))
        return;
    d->works = d->works && !on;
}

static ssize_t write_some(struct direct *d, const char *bytes, size_t count, int64_t at, bool direct)
{
    if (direct && FAULT_FAILS("direct-write", EINVAL))
        return -1;
    return pwrite(d->fd, bytes, count, at);
}

/* direct: begins and ends at units. What the file system takes otherwise than wanted, it gets as any file. */
static int write_all(struct direct *d, const char *bytes, size_t count, int64_t at, bool direct,
                     struct error *err)
{
    turn(d, direct && d->works);
    while (count) {
        ssize_t n = write_some(d, bytes, count, at, direct && d->works);
        if (n < 0 && errno == EINTR)
            continue;
        bool refused = n < 0 && errno == EINVAL && direct && d->works;
        if (n < 0 && !refused)
            return err_system(err, ERR_MACHINE, "writing failed");
        if (refused || n % UNIT) {
            d->works = d->works && !refused;
            direct = false;
            turn(d, false);
        }
        size_t here = n > 0 ? (size_t)n : 0;
        bytes += here;
        count -= here;
        at += (int64_t)here;
    }
    return 0;
}

static int flush(struct direct *d, struct error *err)
{
    size_t whole = d->at % UNIT ? 0 : d->filled / UNIT * UNIT;
    if (object_file_cancelled(d->store))
        return object_file_give_up(err);
    if (whole && write_all(d, d->room, whole, d->at, true, err) < 0)
        return -1;
    if (write_all(d, d->room + whole, d->filled - whole, d->at + (int64_t)whole, false, err) < 0)
        return -1;
    object_file_moved(d->store, (int64_t)d->filled);
    d->at += (int64_t)d->filled;
    d->filled = 0;
    return 0;
}

/* As many as fit, so that all writes but the first begin at units. */
static size_t room_left(const struct direct *d)
{
    size_t lead = (size_t)(d->at % UNIT);
    return (lead ? UNIT - lead : ROOM) - d->filled;
}

static int add_run(struct direct *d, const struct object_body *body, int run, struct sha256 *hash,
                   struct error *err)
{
    size_t count = body->run[run].count;
    for (size_t at = 0; at < count;) {
        size_t here = count - at < STEP ? count - at : STEP;
        here = here < room_left(d) ? here : room_left(d);
        memcpy(d->room + d->filled, (const char *)body->run[run].bytes + at, here);
        object_file_tell_taken(body, run, at, hash, here);
        d->filled += here;
        at += here;
        if (!room_left(d) && flush(d, err) < 0)
            return -1;
    }
    return 0;
}

int object_file_write_direct(struct object_file *store, int fd, int64_t offset,
                             const struct object_body *body, struct sha256 *hash, struct error *err)
{
    struct direct d = {
        .store = store, .fd = fd, .works = true, .room = aligned_alloc(UNIT, ROOM), .at = offset};
    int result = d.room ? 0 : err_set(err, ERR_MACHINE, "no memory to write");
    for (int i = 0; i < body->runs && result == 0; i++)
        result = add_run(&d, body, i, hash, err);
    if (result == 0 && d.filled)
        result = flush(&d, err);
    turn(&d, false);
    free(d.room);
    return result;
}
