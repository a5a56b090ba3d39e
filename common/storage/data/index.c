/* The index of a data folder as a struct and as bytes: made file by file, written, and read with every length
 * held against what is there before it is believed. */
#include "common/storage/data/index.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/os/crypto.h"
#include "common/storage/data/tree.h"

static const char magic[8] = "RMINDEX";

enum {
    HEAD = 40, /* magic, version, bytes of a chunk, files, chunks, length of all */
    HEAD_VERSION = 8,
    HEAD_CHUNK = 12,
    HEAD_FILES = 16,
    HEAD_CHUNKS = 24,
    HEAD_LENGTH = 32,
    ENTRY = 32, /* bytes, seconds, nanoseconds, length of the name, inode; the name behind it */
    LEAST = HEAD + RM_HASH_BYTES,
};

/* ---- the struct ---- */

void data_index_clear(struct data_index *index)
{
    for (int64_t i = 0; i < index->count; i++)
        free(index->file[i].name);
    free(index->file);
    free(index->chunk);
    *index = (struct data_index){0};
}

static void *grown(void *block, int64_t needed, int64_t *room, size_t each)
{
    if (needed <= *room)
        return block;
    int64_t more = 2 * *room > needed ? 2 * *room : needed + 63;
    void *larger = realloc(block, (size_t)more * each);
    if (larger)
        *room = more;
    return larger;
}

static int make_room(struct data_index *index, int64_t chunks, struct error *err)
{
    void *file = grown(index->file, index->count + 1, &index->room, sizeof *index->file);
    if (file)
        index->file = file;
    void *chunk = grown(index->chunk, index->chunks + chunks + 1, &index->chunk_room, RM_HASH_BYTES);
    if (chunk)
        index->chunk = chunk;
    return file && chunk ? 0
                         : err_set(err, ERR_MACHINE, "out of memory for the hashes of %lld files",
                                   (long long)index->count);
}

int data_index_add(struct data_index *index, const struct index_entry *file, struct error *err)
{
    int64_t chunks = tree_chunks(file->bytes);
    RM_ASSERT(!index->count || strcmp(index->file[index->count - 1].name, file->name) < 0,
              "%s is added to an index behind %s", file->name, index->file[index->count - 1].name);
    if (make_room(index, chunks, err) < 0)
        return -1;
    struct index_entry *to = &index->file[index->count];
    *to = *file;
    to->first = index->chunks;
    to->name = strdup(file->name);
    if (!to->name)
        return err_set(err, ERR_MACHINE, "out of memory after %lld files", (long long)index->count);
    memset(index->chunk + index->chunks, 0, (size_t)chunks * RM_HASH_BYTES);
    index->count++;
    index->chunks += chunks;
    return 0;
}

const struct index_entry *data_index_find(const struct data_index *index, const char *name)
{
    int64_t low = 0, high = index->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        int order = strcmp(index->file[middle].name, name);
        if (order == 0)
            return &index->file[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

bool data_index_same(const struct index_entry *a, const struct index_entry *b)
{
    return a->bytes == b->bytes && a->seconds == b->seconds && a->nanoseconds == b->nanoseconds &&
           a->inode == b->inode;
}

bool data_index_agrees(const struct data_index *a, const struct index_entry *in_a, const struct data_index *b,
                       const struct index_entry *in_b)
{
    RM_ASSERT(in_a->bytes == in_b->bytes, "%s of %lld bytes and of %lld", in_a->name, (long long)in_a->bytes,
              (long long)in_b->bytes);
    return !memcmp(a->chunk + in_a->first, b->chunk + in_b->first,
                   (size_t)tree_chunks(in_a->bytes) * RM_HASH_BYTES);
}

int64_t data_index_differences(const struct data_index *a, const struct data_index *b)
{
    int64_t differ = 0;
    for (int64_t i = 0; i < a->count; i++) {
        const struct index_entry *there = data_index_find(b, a->file[i].name);
        differ +=
            there && data_index_same(&a->file[i], there) && !data_index_agrees(a, &a->file[i], b, there);
    }
    return differ;
}

void data_index_root(const struct data_index *index, int width, uint8_t out[RM_HASH_BYTES])
{
    struct tree *tree = tree_open(width, index->count);
    for (int64_t i = 0; i < index->count; i++)
        tree_add(tree, index->file[i].name, index->file[i].bytes,
                 (const uint8_t(*)[RM_HASH_BYTES])index->chunk + index->file[i].first);
    tree_finish(tree, out);
}

/* ---- as bytes ---- */

static void put_number(struct str *out, uint64_t value, int bytes)
{
    uint8_t text[8];
    for (int i = 0; i < bytes; i++)
        text[i] = (uint8_t)(value >> (8 * i));
    str_add(out, text, (size_t)bytes);
}

static uint64_t number_at(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static int64_t length_of(const struct data_index *index)
{
    int64_t length = LEAST + index->count * ENTRY + index->chunks * RM_HASH_BYTES;
    for (int64_t i = 0; i < index->count; i++)
        length += (int64_t)strlen(index->file[i].name);
    return length;
}

static void put_entry(struct str *out, const struct index_entry *file)
{
    put_number(out, (uint64_t)file->bytes, 8);
    put_number(out, (uint64_t)file->seconds, 8);
    put_number(out, (uint64_t)file->nanoseconds, 4);
    put_number(out, strlen(file->name), 4);
    put_number(out, file->inode, 8);
    str_adds(out, file->name);
}

int data_index_write(const struct data_index *index, struct str *out, struct error *err)
{
    uint8_t hash[RM_HASH_BYTES];
    int64_t length = length_of(index);
    if (length > DATA_INDEX_BYTES_MAX)
        return err_set(err, ERR_DATA,
                       "an index of %lld files would have %lld bytes, more than %d; put the data into fewer "
                       "and larger files",
                       (long long)index->count, (long long)length, DATA_INDEX_BYTES_MAX);
    str_add(out, magic, sizeof magic);
    put_number(out, DATA_INDEX_VERSION, 4);
    put_number(out, TREE_CHUNK, 4);
    put_number(out, (uint64_t)index->count, 8);
    put_number(out, (uint64_t)index->chunks, 8);
    put_number(out, (uint64_t)length, 8);
    for (int64_t i = 0; i < index->count; i++)
        put_entry(out, &index->file[i]);
    str_add(out, index->chunk, (size_t)index->chunks * RM_HASH_BYTES);
    sha256_once(out->data, out->length, hash);
    str_add(out, hash, sizeof hash);
    RM_ASSERT(out->length == (size_t)length, "an index of %zu bytes says %lld", out->length,
              (long long)length);
    return 0;
}

/* ---- reading ---- */

struct index_reader {
    const uint8_t *bytes;
    int64_t length, at, end; /* the next file's place; where the chunks begin */
    const char *what;
    struct error *err;
};

/* Whoever made it can make it again. */
static int damaged(const struct index_reader *r, int64_t at, const char *why)
{
    return err_set(r->err, ERR_DATA,
                   "%s: byte %lld: %s; make it again with `ringmaster data index`, or delete it", r->what,
                   (long long)at, why);
}

static bool is_whole(const struct index_reader *r)
{
    uint8_t hash[RM_HASH_BYTES];
    int64_t body = r->length - RM_HASH_BYTES;
    sha256_once(r->bytes, (size_t)body, hash);
    return !memcmp(hash, r->bytes + body, sizeof hash);
}

static int check_head(struct index_reader *r, int64_t *ret_files, int64_t *ret_chunks)
{
    if (r->length < LEAST || memcmp(r->bytes, magic, sizeof magic) != 0)
        return damaged(r, 0, r->length < LEAST ? "it is cut short" : "this is no index of data");
    uint64_t version = number_at(r->bytes + HEAD_VERSION, 4), length = number_at(r->bytes + HEAD_LENGTH, 8);
    if (version > DATA_INDEX_VERSION)
        return err_set(r->err, ERR_DATA,
                       "%s was made by a newer release (version %llu, this one reads %d); make it again with "
                       "this one's `ringmaster data index`, or use the newer one",
                       r->what, (unsigned long long)version, DATA_INDEX_VERSION);
    if (length != (uint64_t)r->length)
        return damaged(r, r->length,
                       length > (uint64_t)r->length ? "it is cut short" : "it is longer than it says");
    if (!is_whole(r))
        return damaged(r, r->length - RM_HASH_BYTES, "its hash is that of other bytes: it was changed");
    if (version != DATA_INDEX_VERSION || number_at(r->bytes + HEAD_CHUNK, 4) != TREE_CHUNK)
        return damaged(r, HEAD_VERSION, "it is of no version that there was");
    uint64_t files = number_at(r->bytes + HEAD_FILES, 8), chunks = number_at(r->bytes + HEAD_CHUNKS, 8);
    uint64_t room = (uint64_t)(r->length - LEAST);
    if (files > room / ENTRY || chunks > room / RM_HASH_BYTES)
        return damaged(r, HEAD_FILES, "it has no room for so many files and chunks");
    *ret_files = (int64_t)files;
    *ret_chunks = (int64_t)chunks;
    r->at = HEAD;
    r->end = r->length - RM_HASH_BYTES - *ret_chunks * RM_HASH_BYTES;
    return 0;
}

/* Names that a scan may find: no part of them is empty or begins with a dot. */
static bool may_be_name(const char *name, size_t length)
{
    if (!length || strlen(name) != length)
        return false;
    for (const char *part = name, *slash; part; part = slash ? slash + 1 : NULL) {
        slash = strchr(part, '/');
        if (!*part || *part == '.' || *part == '/')
            return false;
    }
    return true;
}

static int read_entry(struct index_reader *r, struct index_entry *ret, char name[DATA_INDEX_NAME_MAX])
{
    const uint8_t *at = r->bytes + r->at;
    if (r->end - r->at < ENTRY)
        return damaged(r, r->at, "a file is missing");
    int64_t length = (int64_t)number_at(at + 20, 4);
    *ret = (struct index_entry){.name = name,
                                .bytes = (int64_t)number_at(at, 8),
                                .seconds = (int64_t)number_at(at + 8, 8),
                                .nanoseconds = (int32_t)number_at(at + 16, 4),
                                .inode = number_at(at + 24, 8)};
    if (length >= DATA_INDEX_NAME_MAX || length > r->end - r->at - ENTRY)
        return damaged(r, r->at, "a name is longer than there is room for");
    memcpy(name, at + ENTRY, (size_t)length);
    name[length] = 0;
    if (ret->bytes < 0 || ret->nanoseconds < 0 || ret->nanoseconds > 999999999 ||
        !may_be_name(name, (size_t)length))
        return damaged(r, r->at, "a file can't be so");
    r->at += ENTRY + length;
    return 0;
}

static int read_files(struct data_index *to, struct index_reader *r, int64_t files, int64_t chunks)
{
    char name[DATA_INDEX_NAME_MAX];
    struct index_entry file;
    for (int64_t i = 0; i < files; i++) {
        int64_t at = r->at;
        if (read_entry(r, &file, name) < 0)
            return -1;
        if (i && strcmp(to->file[i - 1].name, name) >= 0)
            return damaged(r, at, "a file does not come behind the one before it");
        if (tree_chunks(file.bytes) > chunks - to->chunks)
            return damaged(r, at, "a file has more chunks than there are");
        if (data_index_add(to, &file, r->err) < 0)
            return err_wrap(r->err, "%s", r->what);
    }
    if (r->at != r->end || to->chunks != chunks)
        return damaged(r, r->at, "its files have fewer chunks than there are");
    if (chunks)
        memcpy(to->chunk, r->bytes + r->end, (size_t)chunks * RM_HASH_BYTES);
    return 0;
}

int data_index_read(struct data_index *ret, const void *bytes, size_t length, const char *what,
                    struct error *err)
{
    struct index_reader r = {.bytes = bytes, .length = (int64_t)length, .what = what, .err = err};
    int64_t files = 0, chunks = 0;
    *ret = (struct data_index){0};
    if (check_head(&r, &files, &chunks) < 0)
        return -1;
    return read_files(ret, &r, files, chunks);
}
