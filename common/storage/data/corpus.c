/* A corpus as one stream of tokens: finds its files, lays them out one behind the other, holds samples out,
 * and reads one sample, or bytes of a file as they are. */
#include "common/storage/data/corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/base/err_system.h"
#include "common/os/fault.h"
#include "common/os/uri.h"
#include "common/storage/data/listing.h"
#include "common/storage/data/scan.h"
#include "common/storage/data/shard.h"

enum { OPEN_FILES = 32 }; /* kept open between reads */

struct open_file {
    int64_t index; /* -1: the slot is empty */
    int fd;
};

struct corpus {
    char root[RM_URI_MAX];
    int root_fd;
    struct corpus_source source; /* listing NULL: the folder */
    struct scan scan;
    enum corpus_format format;
    int width;      /* bytes of a token */
    int64_t *start; /* (files): position of each file's first token in the stream */
    int64_t bytes, tokens, samples, training;
    int context;
    uint32_t vocabulary;
    uint8_t *raw; /* (context + 1) tokens of `width` bytes: one sample before it is widened */
    struct open_file slot[OPEN_FILES];
};

static int open_root(struct corpus *c, struct error *err)
{
    struct stat st;
    if (stat(c->root, &st) < 0) {
        if (errno == ENOENT)
            return err_set(
                err, ERR_DATA,
                "data %s: there is no such folder; set spec.trainer.data.uri to the one that holds it",
                c->root);
        return err_system_data(err, "data %s", c->root);
    }
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_DATA, "data %s: this is not a folder; name the folder that holds the text",
                       c->root);
    c->root_fd = open(c->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c->root_fd < 0)
        return err_system_data(err, "data %s: the folder can't be read", c->root);
    return 0;
}

static const char *unit(const struct corpus *c)
{
    return c->format == CORPUS_TEXT ? "bytes" : "tokens";
}

/* Positions of the files, and what the stream is cut into. */
static int lay_out(struct corpus *c, double hold_out, struct error *err)
{
    c->start = calloc((size_t)c->scan.count + 1, sizeof *c->start);
    c->raw = malloc(((size_t)c->context + 1) * (size_t)c->width);
    if (!c->start || !c->raw)
        return err_set(err, ERR_MACHINE, "data %s: out of memory", c->root);
    for (int64_t i = 0; i < c->scan.count; i++) {
        c->start[i] = c->tokens;
        c->tokens += (c->scan.file[i].size - c->scan.file[i].skip) / c->width;
        c->bytes += c->scan.file[i].size;
    }
    if (!c->tokens)
        return err_set(err, ERR_DATA, "data %s: the folder holds no %s (%lld files, 0 %s)", c->root,
                       c->format == CORPUS_TEXT ? "text" : "tokens", (long long)c->scan.count, unit(c));
    c->samples = (c->tokens - 1) / c->context;
    if (c->samples < 1)
        return err_set(err, ERR_DATA,
                       "data %s: %lld %s are less than one sample of context %d, which takes %d", c->root,
                       (long long)c->tokens, unit(c), c->context, c->context + 1);
    c->training = c->samples - (int64_t)floor(hold_out * (double)c->samples);
    return 0;
}

static int fill_scan(struct scan *scan, const struct listing *listing, struct error *err)
{
    for (int64_t i = 0; i < listing->count; i++) {
        const struct listing_file *from = &listing->file[i];
        if (scan_add(scan, from->name, from->bytes, err) < 0)
            return -1;
        scan->file[i].skip = from->skip;
    }
    return 0;
}

static int read_remote(const struct corpus *c, int64_t index, int64_t from, uint8_t *out, int64_t count,
                       struct error *err)
{
    if (c->source.read(c->source.ctx, index, from, out, count, err) < 0)
        return err_wrap(err, "data %s/%s", c->root, c->scan.file[index].name);
    return 0;
}

static int remote_start(void *ctx, const struct scan_file *file, uint8_t *out, size_t size, struct error *err)
{
    const struct corpus *c = ctx;
    int64_t count = file->size < (int64_t)size ? file->size : (int64_t)size;
    if (c->source.read(c->source.ctx, file - c->scan.file, 0, out, count, err) < 0)
        return err_wrap(err, "%s", file->name);
    return 0;
}

/* A listing that knows the width of tokens has been through this before. */
static int resolve_remote(struct corpus *c, enum corpus_format asked, struct error *err)
{
    struct shard_reader reader = {.start = remote_start, .ctx = c};
    int width = c->source.listing->width;
    if (!width)
        return shard_resolve(&c->scan, &reader, asked, &c->format, err);
    c->format = width == 1 ? CORPUS_TEXT : width == 2 ? CORPUS_TOKENS16 : CORPUS_TOKENS32;
    if (asked != CORPUS_AUTO && asked != c->format)
        return err_set(err, ERR_DATA, "the listing is of tokens of %d bytes, the format is not", width);
    return 0;
}

static int set_up_remote(struct corpus *c, const struct corpus_options *options, struct error *err)
{
    c->source = *options->source;
    text_copy(c->root, sizeof c->root, options->uri);
    if (fill_scan(&c->scan, c->source.listing, err) < 0 || resolve_remote(c, options->format, err) < 0)
        return err_wrap(err, "data %s", c->root);
    c->width = shard_token_bytes(c->format);
    return lay_out(c, options->hold_out, err);
}

static int folder_start(void *ctx, const struct scan_file *file, uint8_t *out, size_t size, struct error *err)
{
    const struct corpus *c = ctx;
    return shard_read_start(file, c->root_fd, out, size, err);
}

static int set_up(struct corpus *c, const struct corpus_options *options, struct error *err)
{
    struct shard_reader reader = {.start = folder_start, .ctx = c};
    if (options->source)
        return set_up_remote(c, options, err);
    if (uri_path(options->uri, c->root, sizeof c->root, err) < 0)
        return err_wrap(err, "data");
    if (open_root(c, err) < 0)
        return -1;
    if (scan_folder(&c->scan, c->root_fd, err) < 0)
        return err_wrap(err, "data %s", c->root);
    if (!options->bytes_alone && shard_resolve(&c->scan, &reader, options->format, &c->format, err) < 0)
        return err_wrap(err, "data %s", c->root);
    c->width = shard_token_bytes(c->format);
    return lay_out(c, options->hold_out, err);
}

int corpus_open(struct corpus **ret, const struct corpus_options *options, struct error *err)
{
    struct corpus *c = calloc(1, sizeof *c);
    if (!c)
        return err_set(err, ERR_MACHINE, "data %s: out of memory", options->uri);
    c->context = options->context;
    c->vocabulary = (uint32_t)options->vocabulary;
    c->root_fd = -1;
    for (int i = 0; i < OPEN_FILES; i++)
        c->slot[i] = (struct open_file){.index = -1, .fd = -1};
    if (set_up(c, options, err) < 0) {
        corpus_free(c);
        return -1;
    }
    *ret = c;
    return 0;
}

void corpus_free(struct corpus *c)
{
    if (!c)
        return;
    for (int i = 0; i < OPEN_FILES; i++)
        if (c->slot[i].fd >= 0)
            close(c->slot[i].fd);
    if (c->root_fd >= 0)
        close(c->root_fd);
    scan_clear(&c->scan);
    free(c->start);
    free(c->raw);
    free(c);
}

int64_t corpus_files(const struct corpus *c)
{
    return c->scan.count;
}

enum corpus_format corpus_format(const struct corpus *c)
{
    return c->format;
}

int64_t corpus_bytes(const struct corpus *c)
{
    return c->bytes;
}

int64_t corpus_tokens(const struct corpus *c)
{
    return c->tokens;
}

int64_t corpus_samples(const struct corpus *c)
{
    return c->samples;
}

int64_t corpus_training(const struct corpus *c)
{
    return c->training;
}

int64_t corpus_held_out(const struct corpus *c)
{
    return c->samples - c->training;
}

int corpus_check(const struct corpus *c, int64_t batch, int64_t sequences, struct error *err)
{
    if (c->training < batch)
        return err_set(err, ERR_DATA,
                       "data %s: %lld training samples of context %d (%lld %s) don't fill one batch of %lld "
                       "sequences; use more data, a smaller batch or a shorter context",
                       c->root, (long long)c->training, c->context, (long long)c->tokens, unit(c),
                       (long long)batch);
    if (corpus_held_out(c) < sequences)
        return err_set(err, ERR_DATA,
                       "data %s: %lld held-out samples are fewer than the %lld sequences of one evaluation; "
                       "use more data, a larger holdOut or fewer sequences",
                       c->root, (long long)corpus_held_out(c), (long long)sequences);
    return 0;
}

static int changed(const struct corpus *c, int64_t index, struct error *err)
{
    err_set(err, ERR_DATA, "data %s/%s: the file has changed since training started", c->root,
            c->scan.file[index].name);
    return err_person(err);
}

/* The file as it was when it was listed, or an error. */
static int open_listed(const struct corpus *c, int64_t index, struct error *err)
{
    const struct scan_file *file = &c->scan.file[index];
    struct stat st;
    int fd = openat(c->root_fd, file->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return err_system_data(err, "data %s/%s: the file can't be read", c->root, file->name);
    bool same = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == file->size &&
                st.st_mtim.tv_sec == file->modified.tv_sec && st.st_mtim.tv_nsec == file->modified.tv_nsec;
    if (same)
        return fd;
    close(fd);
    return changed(c, index, err);
}

static int descriptor(struct corpus *c, int64_t index, struct error *err)
{
    struct open_file *slot = &c->slot[index % OPEN_FILES];
    if (slot->index == index)
        return slot->fd;
    int fd = open_listed(c, index, err);
    if (fd < 0)
        return -1;
    if (slot->fd >= 0)
        close(slot->fd);
    *slot = (struct open_file){.index = index, .fd = fd};
    return fd;
}

static int read_range(const struct corpus *c, int fd, int64_t index, int64_t from, uint8_t *out,
                      int64_t count, struct error *err)
{
    while (count > 0) {
        ssize_t n = FAULT_FAILS("data-read", EIO) ? -1 : pread(fd, out, (size_t)count, from);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_system_data(err, "data %s/%s: reading failed", c->root, c->scan.file[index].name);
        if (n == 0)
            return changed(c, index, err);
        out += n;
        from += n;
        count -= n;
    }
    return 0;
}

/* Index of the file that holds the stream's token at `position`: the last that starts at or before it, which
 * passes over empty files. */
static int64_t file_at(const struct corpus *c, int64_t position)
{
    int64_t low = 0, high = c->scan.count - 1;
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (c->start[middle] <= position)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Where the token at `position` of the stream lies in its file. */
static int64_t offset_of(const struct corpus *c, int64_t index, int64_t position)
{
    return c->scan.file[index].skip + (position - c->start[index]) * c->width;
}

/* A descriptor by which reading failed is not used again: the file may be had by its name anew. */
static void forget(struct corpus *c, int64_t index)
{
    struct open_file *slot = &c->slot[index % OPEN_FILES];
    if (slot->index != index)
        return;
    close(slot->fd);
    *slot = (struct open_file){.index = -1, .fd = -1};
}

static int read_file(struct corpus *c, int64_t index, int64_t from, uint8_t *out, int64_t count,
                     struct error *err)
{
    if (c->source.listing)
        return read_remote(c, index, from, out, count, err);
    int fd = descriptor(c, index, err);
    if (fd >= 0 && read_range(c, fd, index, from, out, count, err) == 0)
        return 0;
    forget(c, index);
    return -1;
}

void corpus_want(const struct corpus *c, int64_t i)
{
    int64_t position = i * c->context, left = c->context + 1;
    if (!c->source.want)
        return;
    while (left > 0) {
        int64_t index = file_at(c, position), from = offset_of(c, index, position);
        int64_t here = (c->scan.file[index].size - from) / c->width;
        if (here > left)
            here = left;
        c->source.want(c->source.ctx, index, from, here * c->width);
        position += here;
        left -= here;
    }
}

int64_t corpus_skip(const struct corpus *c, int64_t i)
{
    return c->scan.file[i].skip;
}

int corpus_width(const struct corpus *c)
{
    return c->width;
}

static int read_stream(struct corpus *c, int64_t position, uint8_t *out, int64_t count, struct error *err)
{
    while (count > 0) {
        int64_t index = file_at(c, position), from = offset_of(c, index, position);
        int64_t here = (c->scan.file[index].size - from) / c->width;
        if (here > count)
            here = count;
        if (read_file(c, index, from, out, here * c->width, err) < 0)
            return -1;
        position += here;
        out += here * c->width;
        count -= here;
    }
    return 0;
}

static uint32_t token_at(const uint8_t *raw, int width)
{
    uint32_t value = 0;
    for (int i = 0; i < width; i++)
        value |= (uint32_t)raw[i] << (8 * i);
    return value;
}

static int refuse_token(const struct corpus *c, int64_t index, int64_t offset, uint32_t token,
                        struct error *err)
{
    return err_set(err, ERR_DATA,
                   "data %s/%s: token %lu at byte %lld is not in the model's vocabulary of %lu; check "
                   "spec.trainer.model.vocabulary and spec.trainer.data.format",
                   c->root, c->scan.file[index].name, (unsigned long)token, (long long)offset,
                   (unsigned long)c->vocabulary);
}

int corpus_read(struct corpus *c, int64_t i, int32_t *tokens, struct error *err)
{
    int64_t first = i * c->context;
    if (read_stream(c, first, c->raw, c->context + 1, err) < 0)
        return -1;
    for (int t = 0; t <= c->context; t++) {
        uint32_t token = token_at(c->raw + (size_t)t * (size_t)c->width, c->width);
        if (token >= c->vocabulary) {
            int64_t index = file_at(c, first + t);
            return refuse_token(c, index, offset_of(c, index, first + t), token, err);
        }
        tokens[t] = (int32_t)token;
    }
    return 0;
}

/* The tokens of a piece of a file that begins at byte `at` of it. */
static int check_tokens(const struct corpus *c, int64_t index, int64_t at, const uint8_t *chunk,
                        int64_t count, struct error *err)
{
    int64_t skip = c->scan.file[index].skip;
    if (c->format == CORPUS_TEXT)
        return 0;
    for (int64_t i = at < skip ? skip - at : 0; i < count; i += c->width) {
        uint32_t token = token_at(chunk + i, c->width);
        if (token >= c->vocabulary)
            return refuse_token(c, index, at + i, token, err);
    }
    return 0;
}

struct index_entry corpus_file(const struct corpus *c, int64_t i)
{
    const struct scan_file *file = &c->scan.file[i];
    return (struct index_entry){.name = file->name,
                                .bytes = file->size,
                                .seconds = file->modified.tv_sec,
                                .nanoseconds = (int32_t)file->modified.tv_nsec,
                                .inode = file->inode};
}

const char *corpus_folder(const struct corpus *c)
{
    return c->source.listing ? NULL : c->root;
}

uint64_t corpus_device(const struct corpus *c)
{
    struct stat st;
    return fstat(c->root_fd, &st) == 0 ? st.st_dev : 0;
}

/* How many of these bytes the system has in memory, from the first one on; they are read then. */
static int64_t read_remembered(int fd, int64_t from, uint8_t *out, int64_t count)
{
    int64_t had = 0;
    while (had < count) {
        struct iovec place = {out + had, (size_t)(count - had)};
        ssize_t n = preadv2(fd, &place, 1, from + had, RWF_NOWAIT);
        if (n <= 0)
            return had;
        had += n;
    }
    return had;
}

/* Without reading ahead: what that brings could not be told from what others want. */
static int read_aside(const struct corpus *c, int fd, int64_t i, int64_t from, uint8_t *out, int64_t count,
                      struct error *err)
{
    int64_t had = read_remembered(fd, from, out, count);
    if (had == count)
        return 0;
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    int status = read_range(c, fd, i, from + had, out + had, count - had, err);
    posix_fadvise(fd, from + had, count - had, POSIX_FADV_DONTNEED);
    return status;
}

typedef int read_open(const struct corpus *c, int fd, int64_t i, int64_t from, uint8_t *out, int64_t count,
                      struct error *err);

static int read_listed(read_open *way, const struct corpus *c, int64_t i, int64_t from, uint8_t *out,
                       int64_t count, struct error *err)
{
    if (c->source.listing)
        return read_remote(c, i, from, out, count, err);
    int fd = open_listed(c, i, err);
    if (fd < 0)
        return -1;
    int status = way(c, fd, i, from, out, count, err);
    close(fd);
    return status;
}

int corpus_read_aside(const struct corpus *c, int64_t i, int64_t from, uint8_t *out, int64_t count,
                      struct error *err)
{
    return read_listed(read_aside, c, i, from, out, count, err);
}

int corpus_read_bytes(const struct corpus *c, int64_t i, int64_t from, uint8_t *out, int64_t count,
                      struct error *err)
{
    return read_listed(read_range, c, i, from, out, count, err);
}

int corpus_check_bytes(const struct corpus *c, int64_t i, int64_t from, const uint8_t *bytes, int64_t count,
                       struct error *err)
{
    return check_tokens(c, i, from, bytes, count, err);
}
