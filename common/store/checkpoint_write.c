#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "common/store/checkpoint.h"
#include "common/store/files.h"
#include "common/store/folder.h"
#include "common/store/safetensors.h"

enum { CHUNK = 1 << 20 };

int checkpoint_lock(const char *uri, int *ret_fd, struct error *err)
{
    char path[RM_URI_MAX], file[RM_URI_MAX + 8];
    if (files_path(path, uri, NULL, err) < 0)
        return -1;
    if (folder_make(path, err) < 0)
        return err_wrap(err, "checkpoints");
    snprintf(file, sizeof file, "%s/.lock", path);
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_errno(err, ERR_MACHINE, "checkpoints %s", file);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        *ret_fd = fd;
        return 0;
    }
    if (errno == EWOULDBLOCK)
        err_set(err, ERR_MACHINE,
                "checkpoints %s: another run uses this folder; wait for its end, or use another folder",
                path);
    else
        err_errno(err, ERR_MACHINE, "checkpoints %s can't be locked", path);
    close(fd);
    return -1;
}

/* One slice being written. */
struct writer {
    const struct checkpoint_slice *slice;
    int folder_fd;
    bool full; /* the disk was */
};

/* A file that is being filled from one place on. */
struct sink {
    int fd;
    int64_t at;
    struct sha256 *hash;
};

static int put(struct sink *sink, const void *bytes, int64_t count, struct error *err)
{
    const char *from = bytes;
    while (count > 0) {
        int64_t here = count < CHUNK ? count : CHUNK;
        if (folder_write(sink->fd, from, here, sink->at, err) < 0)
            return -1;
        sha256_add(sink->hash, from, (size_t)here);
        from += here;
        sink->at += here;
        count -= here;
    }
    return 0;
}

/* What goes into one file: a header, and up to two runs of floats, from `offset` on. */
struct content {
    const char *file;
    int64_t bytes;            /* of the whole file */
    int64_t offset;           /* where this slice's part begins */
    const struct str *header; /* NULL where another part writes it */
    const float *values[2];
    int64_t count; /* floats of each; values[1] may be NULL */
};

static int put_content(struct sink *sink, const struct content *content, struct error *err)
{
    const struct str *header = content->header;
    if (header && put(sink, header->data, (int64_t)header->length, err) < 0)
        return -1;
    for (int i = 0; i < 2; i++)
        if (content->values[i] && put(sink, content->values[i], 4 * content->count, err) < 0)
            return -1;
    if (fsync(sink->fd) < 0)
        return err_errno(err, ERR_MACHINE, "syncing failed");
    return 0;
}

/* Never truncates to less: another writer of the same state may have filled its part already. */
static int open_part(const struct writer *w, const struct content *content, struct error *err)
{
    char name[PART_NAME_MAX];
    files_part_name(name, content->file, w->slice->lineage);
    int fd = openat(w->folder_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return err_errno(err, ERR_MACHINE, "the file can't be made");
    if (ftruncate(fd, content->bytes) == 0)
        return fd;
    err_errno(err, ERR_MACHINE, "the file can't be sized");
    close(fd);
    return -1;
}

static int write_file(struct writer *w, const struct content *content, struct manifest_piece *piece,
                      struct error *err)
{
    errno = 0;
    int fd = open_part(w, content, err);
    int result = -1;
    if (fd >= 0) {
        struct sink sink = {fd, content->offset, sha256_open()};
        result = put_content(&sink, content, err);
        w->full = result < 0 && (errno == ENOSPC || errno == EDQUOT);
        text_copy(piece->file, sizeof piece->file, content->file);
        piece->offset = content->offset;
        piece->bytes = sink.at - content->offset;
        sha256_finish(sink.hash, piece->sha256);
        close(fd);
    } else {
        w->full = errno == ENOSPC || errno == EDQUOT;
    }
    return result < 0 ? err_wrap(err, "%s", content->file) : 0;
}

static int write_model(struct writer *w, struct manifest_piece *piece, struct error *err)
{
    const struct checkpoint_slice *s = w->slice;
    struct model_range range = model_part(s->layout->parameters, s->part, s->parts);
    struct str header = str_init(SAFETENSORS_HEADER_MAX);
    safetensors_model_header(s->layout, &header);
    int64_t begin = (int64_t)header.length;
    struct content content = {.file = "model.safetensors",
                              .bytes = begin + 4 * s->layout->parameters,
                              .offset = s->part ? begin + 4 * range.first : 0,
                              .header = s->part ? NULL : &header,
                              .values = {s->state + range.first},
                              .count = range.count};
    int result = write_file(w, &content, piece, err);
    str_clear(&header);
    return result;
}

static int write_optimizer(struct writer *w, struct manifest_piece *piece, struct error *err)
{
    const struct checkpoint_slice *s = w->slice;
    int64_t parameters = s->layout->parameters;
    struct safetensors_slice part = {model_part(parameters, s->part, s->parts), s->part, s->parts};
    struct str header = str_init(SAFETENSORS_HEADER_MAX);
    char name[MANIFEST_FILE_MAX];
    const float *m = s->state + parameters + part.range.first;
    safetensors_optimizer_header(&part, &header);
    manifest_optimizer_name(name, s->part, s->parts);
    struct content content = {.file = name,
                              .bytes = (int64_t)header.length + 8 * part.range.count,
                              .header = &header,
                              .values = {m, m + parameters},
                              .count = part.range.count};
    int result = write_file(w, &content, piece, err);
    str_clear(&header);
    return result;
}

/* 1: the folder holds this very checkpoint, finished; 0: it is to be written; -1: it holds another. */
static int finished_already(const struct checkpoint_slice *s, int folder_fd, const char *name,
                            struct error *err)
{
    struct error why = {0};
    struct manifest *found = malloc(sizeof *found);
    if (!found)
        return err_set(err, ERR_MACHINE, "out of memory");
    int result = files_manifest(folder_fd, name, found, &why);
    bool same = result == 0 && found->step == s->step && !memcmp(found->lineage, s->lineage, RM_HASH_BYTES);
    free(found);
    if (result == 0 && !same)
        return err_set(err, ERR_EXISTS,
                       "a checkpoint of another history is there already; use --overwrite or another folder");
    if (result < 0 && why.code != ERR_NOT_FOUND && why.code != ERR_DATA)
        return err_set(err, why.code, "%s", why.text);
    return same;
}

static int write_both(struct writer *w, struct checkpoint_pieces *ret, struct error *err)
{
    if (write_model(w, &ret->piece[0], err) < 0)
        return -1;
    FAULT("slice-written");
    if (write_optimizer(w, &ret->piece[1], err) < 0 || folder_sync(w->folder_fd, err) < 0)
        return -1;
    ret->count = CHECKPOINT_SLICE_PIECES;
    return 0;
}

static int write_slice(const struct checkpoint_slice *s, struct checkpoint_pieces *ret, bool *full,
                       struct error *err)
{
    char name[CHECKPOINT_NAME_MAX], path[RM_URI_MAX];
    struct writer w = {.slice = s};
    *ret = (struct checkpoint_pieces){0};
    checkpoint_name(name, s->step, s->final);
    if (files_path(path, s->uri, name, err) < 0 ||
        folder_hold(path, FOLDER_SHARED, true, &w.folder_fd, err) < 0)
        return -1;
    int already = finished_already(s, w.folder_fd, name, err);
    int result = already < 0 ? -1 : already ? 0 : write_both(&w, ret, err);
    close(w.folder_fd);
    *full = w.full;
    return result < 0 ? err_wrap(err, "checkpoint %s", path) : 0;
}

int checkpoint_write_slice(const struct checkpoint_slice *slice, struct checkpoint_pieces *ret,
                           struct error *err)
{
    bool full = false;
    struct checkpoint_pieces pieces;
    int result = write_slice(slice, &pieces, &full, err);
    if (result < 0 && full) {
        /* What earlier checkpoints left unfinished may be what fills the disk. */
        files_collect(slice->uri, slice->step);
        result = write_slice(slice, &pieces, &full, err);
    }
    if (result == 0)
        *ret = pieces;
    return result;
}
