#include "common/storage/data/shard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err_system.h"

enum {
    HEADER_BYTES = 1024, /* 256 little-endian int32: magic, version, number of tokens, zeros */
    MAGIC_16 = 20240520, /* llm.c's shards of GPT-2's tokenizer */
    MAGIC_32 = 20240801, /* and of Llama 3's */
    VERSION_16 = 1,
    VERSION_32 = 7,
    HEADER_WORDS_READ = 3,
};

struct header {
    bool present;
    enum corpus_format format;
    int64_t version, tokens;
};

static const char *format_word(enum corpus_format format)
{
    return format == CORPUS_TOKENS16 ? "Tokens16" : format == CORPUS_TOKENS32 ? "Tokens32" : "Text";
}

int shard_token_bytes(enum corpus_format format)
{
    return format == CORPUS_TOKENS16 ? 2 : format == CORPUS_TOKENS32 ? 4 : 1;
}

static bool is_shard(const struct scan_file *file)
{
    size_t length = strlen(file->name);
    return length >= 4 && !memcmp(file->name + length - 4, ".bin", 4);
}

static int64_t read_word(const uint8_t *at)
{
    return (int64_t)at[0] | (int64_t)at[1] << 8 | (int64_t)at[2] << 16 | (int64_t)at[3] << 24;
}

int shard_read_start(const struct scan_file *file, int folder_fd, uint8_t *out, size_t size,
                     struct error *err)
{
    int fd = openat(folder_fd, file->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return err_system_data(err, "%s: the file can't be read", file->name);
    ssize_t n;
    do
        n = pread(fd, out, size, 0);
    while (n < 0 && errno == EINTR);
    int status = n < 0 ? err_system_data(err, "%s: reading failed", file->name) : 0;
    close(fd);
    return status;
}

static int read_header(const struct scan_file *file, const struct shard_reader *reader, struct header *ret,
                       struct error *err)
{
    uint8_t bytes[4 * HEADER_WORDS_READ] = {0};
    if (reader->start(reader->ctx, file, bytes, sizeof bytes, err) < 0)
        return -1;
    int64_t magic = read_word(bytes);
    *ret = (struct header){.present = magic == MAGIC_16 || magic == MAGIC_32,
                           .format = magic == MAGIC_16 ? CORPUS_TOKENS16 : CORPUS_TOKENS32,
                           .version = read_word(bytes + 4),
                           .tokens = read_word(bytes + 8)};
    return 0;
}

static int check_header(const struct scan_file *file, const struct header *h, struct error *err)
{
    int64_t known = h->format == CORPUS_TOKENS16 ? VERSION_16 : VERSION_32;
    int64_t body = file->size - HEADER_BYTES;
    if (body < 0)
        return err_set(err, ERR_DATA, "%s: llm.c's header takes %d bytes, the file has only %lld", file->name,
                       HEADER_BYTES, (long long)file->size);
    if (h->version != known)
        return err_set(err, ERR_DATA, "%s: llm.c's header has version %lld; only %lld is known", file->name,
                       (long long)h->version, (long long)known);
    if (h->tokens * shard_token_bytes(h->format) != body)
        return err_set(err, ERR_DATA,
                       "%s: the header tells of %lld tokens of %d bytes, but %lld bytes follow; the file is "
                       "cut short or was changed",
                       file->name, (long long)h->tokens, shard_token_bytes(h->format), (long long)body);
    return 0;
}

static int refuse_width(const struct scan_file *file, enum corpus_format says, enum corpus_format format,
                        const struct scan_file *first, struct error *err)
{
    if (first)
        return err_set(
            err, ERR_DATA,
            "%s: its header says %s, but that of %.200s says %s; keep them in folders of their own",
            file->name, format_word(says), first->name, format_word(format));
    return err_set(err, ERR_DATA,
                   "%s: its header says %s, but spec.trainer.data.format is %s; change one of them",
                   file->name, format_word(says), format_word(format));
}

/* One file against the format that all files have: that of `first`, or the one that was asked for (NULL). */
static int take_file(struct scan_file *file, const struct shard_reader *reader, enum corpus_format format,
                     const struct scan_file *first, struct error *err)
{
    struct header header = {0};
    bool tokens = format != CORPUS_TEXT;
    if (is_shard(file) && read_header(file, reader, &header, err) < 0)
        return -1;
    if (tokens && !is_shard(file))
        return err_set(err, ERR_DATA, "%s: is no .bin file, but spec.trainer.data.format is %s; move it away",
                       file->name, format_word(format));
    if (header.present && header.format != format)
        return refuse_width(file, header.format, format, first, err);
    if (header.present && check_header(file, &header, err) < 0)
        return -1;
    file->skip = header.present ? HEADER_BYTES : 0;
    if ((file->size - file->skip) % shard_token_bytes(format))
        return err_set(err, ERR_DATA, "%s: %lld bytes are no whole number of tokens of %d bytes", file->name,
                       (long long)file->size, shard_token_bytes(format));
    return 0;
}

/* A folder is all text or all shards; shards say themselves how wide their tokens are. */
static int find_out(const struct scan *scan, const struct shard_reader *reader, enum corpus_format *ret,
                    struct error *err)
{
    const struct scan_file *first[2] = {NULL, NULL}; /* other, shard */
    struct header header;
    for (int64_t i = 0; i < scan->count; i++)
        if (!first[is_shard(&scan->file[i])])
            first[is_shard(&scan->file[i])] = &scan->file[i];
    *ret = CORPUS_TEXT;
    if (!first[1])
        return 0;
    if (first[0])
        return err_set(err, ERR_DATA,
                       "the folder mixes token shards (%.120s) with other files (%.120s); keep them in "
                       "folders of their own",
                       first[1]->name, first[0]->name);
    if (read_header(first[1], reader, &header, err) < 0)
        return -1;
    if (!header.present)
        return err_set(err, ERR_DATA,
                       "%s: has no header that says how wide its tokens are; set spec.trainer.data.format to "
                       "Tokens16 or Tokens32",
                       first[1]->name);
    *ret = header.format;
    return 0;
}

static int all_have_headers(const struct scan *scan, struct error *err)
{
    for (int64_t i = 0; i < scan->count; i++)
        if (!scan->file[i].skip)
            return err_set(err, ERR_DATA,
                           "%s: has no header, but other files do; set spec.trainer.data.format to Tokens16 "
                           "or Tokens32 if it holds tokens",
                           scan->file[i].name);
    return 0;
}

int shard_resolve(struct scan *scan, const struct shard_reader *reader, enum corpus_format asked,
                  enum corpus_format *ret, struct error *err)
{
    *ret = asked;
    if (asked == CORPUS_AUTO && find_out(scan, reader, ret, err) < 0)
        return -1;
    for (int64_t i = 0; i < scan->count; i++)
        if (take_file(&scan->file[i], reader, *ret, asked == CORPUS_AUTO ? &scan->file[0] : NULL, err) < 0)
            return -1;
    return asked == CORPUS_AUTO && *ret != CORPUS_TEXT ? all_have_headers(scan, err) : 0;
}
