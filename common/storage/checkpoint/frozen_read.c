/* Which snapshots of processes a store has, whose they are, and their files in a folder again. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/storage/checkpoint/files.h"
#include "common/storage/checkpoint/frozen_files.h"

/* --- listing --- */

static void skip_one(struct checkpoint_skipped *list, int *count, const char *name, const char *why)
{
    if (*count == CHECKPOINT_SKIPPED_MAX)
        return;
    struct checkpoint_skipped *entry = &list[(*count)++];
    text_copy(entry->name, sizeof entry->name, name);
    text_copy_ends(entry->why, sizeof entry->why, why);
}

/* 1: its manifest is in m; 0: it can't be used, with *why set where it is damaged; -1: trouble. */
static int read_one(struct object_store *store, const char *name, struct frozen_manifest *m,
                    struct error *why, struct error *err)
{
    *why = (struct error){0};
    if (frozen_manifest(store, name, m, why) == 0)
        return 1;
    if (why->code == ERR_NOT_FOUND) {
        *why->text = 0; /* leftovers of one that was never finished */
        return 0;
    }
    return why->code == ERR_DATA ? 0 : err_from(err, why, "snapshot %s: %s", name, why->text);
}

static int list_numbers(struct object_store *store, const int64_t *numbers, int count,
                        struct frozen_manifest *m, struct frozen_list *ret, struct error *err)
{
    for (int i = 0; i < count && ret->count < RM_CHECKPOINTS_LISTED; i++) {
        struct error why;
        char name[CHECKPOINT_NAME_MAX];
        frozen_name(name, numbers[i]);
        int found = read_one(store, name, m, &why, err);
        if (found < 0)
            return -1;
        if (!found && *why.text)
            skip_one(ret->skip, &ret->skipped, name, why.text);
        if (!found)
            continue;
        struct frozen_entry *entry = &ret->entry[ret->count++];
        *entry = (struct frozen_entry){.number = m->number, .bytes = m->bytes};
        text_copy(entry->name, sizeof entry->name, name);
    }
    return 0;
}

int frozen_list(struct object_store *store, struct frozen_list *ret, struct error *err)
{
    int64_t *numbers;
    int count;
    memset(ret, 0, sizeof *ret);
    if (frozen_files_numbers(store, &numbers, &count, err) < 0)
        return -1;
    struct frozen_manifest *m = malloc(sizeof *m);
    ret->newest = count ? numbers[0] : 0;
    int result =
        m ? list_numbers(store, numbers, count, m, ret, err) : err_set(err, ERR_MACHINE, "out of memory");
    free(m);
    free(numbers);
    return result;
}

/* --- whose it is --- */

bool frozen_is_sealed_by_one(const struct frozen_manifest *m, const struct frozen_keys *keys)
{
    return frozen_is_sealed_by(m, keys->own) || (keys->older && frozen_is_sealed_by(m, keys->older));
}

struct frozen_choosing {
    struct object_store *store;
    const struct frozen_keys *keys;
    struct frozen_manifest *ret;
    struct frozen_choice *choice;
    int strange; /* whole, and sealed by somebody else */
};

/* 1: this one; 0: the next one; -1: trouble. */
static int try_number(struct frozen_choosing *c, int64_t number, struct error *err)
{
    struct error why;
    char name[CHECKPOINT_NAME_MAX];
    frozen_name(name, number);
    int found = read_one(c->store, name, c->ret, &why, err);
    if (found < 0)
        return -1;
    if (found && frozen_is_sealed_by_one(c->ret, c->keys))
        return 1;
    c->strange += found;
    if (found)
        skip_one(c->choice->skip, &c->choice->skipped, name,
                 "it was not sealed with this job's key, and such files are code: it is not restored");
    else if (*why.text)
        skip_one(c->choice->skip, &c->choice->skipped, name, why.text);
    return 0;
}

/* Nothing is lost where the key comes back; a start from nothing would have its snapshots cover these. */
static int refuse_strange(const struct frozen_choosing *c, struct error *err)
{
    err_set(err, ERR_USAGE,
            "the snapshots in %.48s are another job's: name its Secret, to be kept, in "
            "checkpoint.processKeyRef, or choose another checkpoint.uri",
            object_uri(c->store));
    return err_person(err);
}

int frozen_choose(struct object_store *store, const struct frozen_keys *keys, int64_t below,
                  struct frozen_manifest *ret, struct frozen_choice *choice, struct error *err)
{
    struct frozen_choosing c = {.store = store, .keys = keys, .ret = ret, .choice = choice};
    int64_t *numbers;
    int count, found = 0;
    memset(choice, 0, sizeof *choice);
    if (frozen_files_numbers(store, &numbers, &count, err) < 0)
        return -1;
    choice->newest = count ? numbers[0] : 0;
    for (int i = 0; i < count && !found; i++)
        if (!below || numbers[i] < below)
            found = try_number(&c, numbers[i], err);
    free(numbers);
    if (found < 0)
        return -1;
    choice->found = found > 0;
    return !found && c.strange ? refuse_strange(&c, err) : 0;
}

/* --- its bytes --- */

/* Gets them in order, in runs; NULL: they are only checked. */
struct frozen_sink {
    int (*take)(void *ctx, const char *bytes, int64_t count, struct error *err);
    void *ctx;
    const atomic_int *stop;
};

static int read_through(struct object_store *store, const char *name, const struct frozen_manifest *m,
                        const struct frozen_sink *sink, struct error *err)
{
    int result = 0;
    char *memory = frozen_files_memory(m, err);
    if (!memory)
        return -1;
    for (int first = 0; first < m->pieces && result == 0;) {
        int count = m->pieces - first < FROZEN_AT_ONCE ? m->pieces - first : FROZEN_AT_ONCE;
        int64_t bytes = (count - 1) * m->piece_bytes + frozen_piece_length(m, first + count - 1);
        if (sink->stop && atomic_load(sink->stop))
            result = err_set(err, ERR_ABORTED, "snapshot %s: given up", name);
        if (result == 0)
            result = frozen_files_read(store, name, m, first, count, memory, err);
        if (result == 0 && sink->take)
            result = sink->take(sink->ctx, memory, bytes, err);
        first += count;
    }
    free(memory);
    return result;
}

static int verify_pieces(struct object_store *store, const char *name, struct frozen_manifest *m,
                         struct error *err)
{
    if (frozen_manifest(store, name, m, err) < 0)
        return -1;
    return read_through(store, name, m, &(struct frozen_sink){0}, err);
}

int frozen_verify(struct object_store *store, const char *name, struct error *err)
{
    struct frozen_manifest *m = malloc(sizeof *m);
    int result = m ? verify_pieces(store, name, m, err) : err_set(err, ERR_MACHINE, "out of memory");
    free(m);
    return result;
}

struct frozen_target {
    const struct frozen_manifest *m;
    int folder, file, fd; /* fd: of that file; -1: it is not made yet */
    int64_t at;
};

static int make_file(struct frozen_target *t, struct error *err)
{
    const char *name = t->m->file[t->file].name;
    t->fd = openat(t->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    t->at = 0;
    return t->fd < 0 ? err_errno(err, ERR_MACHINE, "snapshot: can't make %s", name) : 0;
}

static int end_file(struct frozen_target *t, struct error *err)
{
    int fd = t->fd;
    t->fd = -1;
    if (close(fd) < 0)
        return err_errno(err, ERR_MACHINE, "snapshot: can't write %s", t->m->file[t->file].name);
    t->file++;
    return 0;
}

static int write_some(struct frozen_target *t, const char *bytes, int64_t count, struct error *err)
{
    while (count > 0) {
        ssize_t n = write(t->fd, bytes, (size_t)count);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(err, ERR_MACHINE, "snapshot: can't write %s", t->m->file[t->file].name);
        bytes += n;
        count -= n;
        t->at += n;
    }
    return 0;
}

/* Files of no bytes are made on the way. */
static int take_bytes(void *ctx, const char *bytes, int64_t count, struct error *err)
{
    struct frozen_target *t = ctx;
    while (t->file < t->m->files) {
        if (t->fd < 0 && make_file(t, err) < 0)
            return -1;
        int64_t left = t->m->file[t->file].bytes - t->at, some = left < count ? left : count;
        if (write_some(t, bytes, some, err) < 0)
            return -1;
        bytes += some;
        count -= some;
        if (t->at < t->m->file[t->file].bytes)
            return 0;
        if (end_file(t, err) < 0)
            return -1;
    }
    return 0;
}

int frozen_fetch(struct object_store *store, const struct frozen_manifest *m, int folder,
                 const atomic_int *stop, struct error *err)
{
    struct frozen_target target = {.m = m, .folder = folder, .fd = -1};
    struct frozen_sink sink = {.take = take_bytes, .ctx = &target, .stop = stop};
    char name[CHECKPOINT_NAME_MAX];
    frozen_name(name, m->number);
    int result = read_through(store, name, m, &sink, err);
    if (target.fd >= 0)
        close(target.fd);
    return result;
}

/* --- deleting --- */

int frozen_delete(struct object_store *store, const char *name, struct error *err)
{
    if (frozen_number(name) < 0)
        return err_set(err, ERR_USAGE, "snapshot %s: this is no snapshot's name (process-00000012)", name);
    return frozen_files_remove(store, name, err);
}

int frozen_delete_all(struct object_store *store, struct error *err)
{
    int64_t *numbers;
    int count, result = 0;
    if (frozen_files_numbers(store, &numbers, &count, err) < 0)
        return -1;
    for (int i = count - 1; i >= 0 && result == 0; i--) {
        char name[CHECKPOINT_NAME_MAX];
        frozen_name(name, numbers[i]);
        result = frozen_files_remove(store, name, err);
    }
    free(numbers);
    return result;
}
