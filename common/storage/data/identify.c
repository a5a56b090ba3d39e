/* What the data are, in one hash: a tree's root, with as many of its chunks taken from an index or a cache as
 * may be believed; or the chain that older checkpoints have. */
#include "common/storage/data/identify.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/crypto.h"
#include "common/storage/data/cache.h"
#include "common/storage/data/hash_chunks.h"
#include "common/storage/data/index_file.h"
#include "common/storage/data/tree.h"

enum { CHAIN_PIECE = 1 << 20 }; /* bytes read at a time: whole tokens */

static void hash_number(struct sha256 *hash, int64_t value)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)value >> (8 * i));
    sha256_add(hash, bytes, sizeof bytes);
}

/* ---- a chain ---- */

static int chain_content(const struct corpus *c, struct sha256 *hash, int64_t i, uint8_t *piece,
                         struct error *err)
{
    int64_t size = corpus_file(c, i).bytes;
    for (int64_t at = 0; at < size; at += CHAIN_PIECE) {
        int64_t count = size - at < CHAIN_PIECE ? size - at : CHAIN_PIECE;
        if (corpus_read_bytes(c, i, at, piece, count, err) < 0 ||
            corpus_check_bytes(c, i, at, piece, count, err) < 0)
            return -1;
        sha256_add(hash, piece, (size_t)count);
    }
    return 0;
}

static int chain_files(const struct corpus *c, struct sha256 *hash, uint8_t *piece, struct error *err)
{
    if (corpus_format(c) != CORPUS_TEXT) {
        hash_number(hash, -1); /* no name is that long: shards are never taken for text */
        hash_number(hash, corpus_width(c));
    }
    for (int64_t i = 0; i < corpus_files(c); i++) {
        struct index_entry file = corpus_file(c, i);
        hash_number(hash, (int64_t)strlen(file.name));
        sha256_add(hash, file.name, strlen(file.name));
        hash_number(hash, file.bytes);
        if (chain_content(c, hash, i, piece, err) < 0)
            return -1;
    }
    return 0;
}

static int identify_chain(const struct corpus *c, uint8_t out[RM_HASH_BYTES], struct error *err)
{
    uint8_t *piece = malloc(CHAIN_PIECE);
    if (!piece)
        return err_set(err, ERR_MACHINE, "no memory to hash data");
    struct sha256 *hash = sha256_open();
    int status = chain_files(c, hash, piece, err);
    if (status == 0)
        sha256_finish(hash, out);
    else
        sha256_free(hash);
    free(piece);
    return status;
}

/* ---- a tree ---- */

struct identify_work {
    const struct corpus *corpus;
    const struct identify_options *options;
    struct data_index index;
    bool *known; /* (files) whose chunks are believed */
    struct cache *cache;
    char key[RM_HASH_HEX]; /* of the files as they look */
};

static bool all_known(const struct identify_work *w)
{
    for (int64_t i = 0; i < w->index.count; i++)
        if (!w->known[i])
            return false;
    return true;
}

static int list_files(struct identify_work *w, struct error *err)
{
    int64_t files = corpus_files(w->corpus);
    w->known = calloc((size_t)files + 1, sizeof *w->known);
    if (!w->known)
        return err_set(err, ERR_MACHINE, "no memory for %lld files", (long long)files);
    for (int64_t i = 0; i < files; i++) {
        struct index_entry file = corpus_file(w->corpus, i);
        if (data_index_add(&w->index, &file, err) < 0)
            return -1;
    }
    return 0;
}

static uint8_t *hashes_of(const struct data_index *index, const struct index_entry *file)
{
    return index->chunk[file->first];
}

/* Of files that look as they did. */
static void take_known(struct identify_work *w, const struct data_index *said)
{
    for (int64_t i = 0; i < w->index.count; i++) {
        const struct index_entry *file = &w->index.file[i], *there = data_index_find(said, file->name);
        if (w->known[i] || !there || !data_index_same(file, there))
            continue;
        memcpy(hashes_of(&w->index, file), hashes_of(said, there),
               (size_t)tree_chunks(file->bytes) * RM_HASH_BYTES);
        w->known[i] = true;
    }
}

/* Both that there may be. One that can't be replaced where it lies may be older than the one beside it. */
struct indexes {
    struct data_index said[DATA_INDEX_PLACES]; /* empty where there is none */
    bool there[DATA_INDEX_PLACES];
    struct error damaged; /* why one of them is none; code 0: none is */
};

static void indexes_clear(struct indexes *x)
{
    for (int place = 0; place < DATA_INDEX_PLACES; place++)
        data_index_clear(&x->said[place]);
}

static int load_indexes(const struct identify_work *w, struct indexes *x, struct error *err)
{
    char path[RM_URI_MAX];
    for (int place = 0; place < DATA_INDEX_PLACES; place++) {
        struct error why = {0};
        data_index_path(corpus_folder(w->corpus), place, path);
        x->there[place] = *path && data_index_load(&x->said[place], path, &why) == 0;
        if (!x->there[place])
            data_index_clear(&x->said[place]);
        if (why.code == ERR_DATA)
            x->damaged = why;
        else if (why.code && why.code != ERR_NOT_FOUND)
            return err_from(err, &why, why.person ? "%s; let it be read, or delete it" : "%s", why.text);
    }
    return 0;
}

/* Of two that know a file as it looks, and say other things of it, one is older than it seems: neither is
 * believed. */
static bool contradict(const struct indexes *x, const struct index_entry *file)
{
    const struct index_entry *a = data_index_find(&x->said[0], file->name),
                             *b = data_index_find(&x->said[1], file->name);
    return a && b && data_index_same(file, a) && data_index_same(file, b) &&
           !data_index_agrees(&x->said[0], a, &x->said[1], b);
}

static int believe_indexes(struct identify_work *w, const struct indexes *x, struct error *err)
{
    if (x->damaged.code && !x->there[0] && !x->there[1]) {
        err_from(err, &x->damaged, "%s", x->damaged.text);
        return err_person(err);
    }
    for (int place = 0; place < DATA_INDEX_PLACES; place++)
        take_known(w, &x->said[place]);
    for (int64_t i = 0; i < w->index.count; i++)
        w->known[i] = w->known[i] && !contradict(x, &w->index.file[i]);
    return 0;
}

static int take_indexes(struct identify_work *w, struct error *err)
{
    struct indexes x = {0};
    int status = load_indexes(w, &x, err) < 0 ? -1 : believe_indexes(w, &x, err);
    indexes_clear(&x);
    return status;
}

/* The beginning says most: a reason that goes on from worker to worker is cut. */
static int refuse_chunk(const struct identify_work *w, const struct index_entry *file, int64_t chunk,
                        struct error *err)
{
    err_set(
        err, ERR_DATA,
        "data %.200s/%.100s: chunk %lld (from byte %lld) is not what its index says; bring it back, or make "
        "the index again with `ringmaster data index`; size and time are as they were",
        corpus_folder(w->corpus), file->name, (long long)chunk, (long long)chunk * TREE_CHUNK);
    return err_person(err);
}

/* Some index knows the file as it looks, and none of those that do has this chunk. */
static bool is_nobodys(const struct identify_work *w, const struct indexes *x, const struct index_entry *file,
                       int64_t chunk)
{
    bool known = false;
    for (int place = 0; place < DATA_INDEX_PLACES; place++) {
        const struct index_entry *there = data_index_find(&x->said[place], file->name);
        if (!there || !data_index_same(file, there))
            continue;
        known = true;
        if (!memcmp(w->index.chunk[file->first + chunk], x->said[place].chunk[there->first + chunk],
                    RM_HASH_BYTES))
            return false;
    }
    return known;
}

/* Nobody has to have an index; but where one is there, and a file only seems to be the one that it knew. */
static int compare_indexes(const struct identify_work *w, struct error *err)
{
    struct indexes x = {0};
    int status = 0;
    load_indexes(w, &x, NULL);
    for (int64_t i = 0; i < w->index.count && status == 0; i++)
        for (int64_t c = 0; c < tree_chunks(w->index.file[i].bytes) && status == 0; c++)
            if (is_nobodys(w, &x, &w->index.file[i], c))
                status = refuse_chunk(w, &w->index.file[i], c, err);
    indexes_clear(&x);
    return status;
}

/* ---- what is kept where no index is ---- */

static void make_key(struct identify_work *w)
{
    uint8_t key[RM_HASH_BYTES];
    struct sha256 *hash = sha256_open();
    hash_number(hash, TREE_CHUNK);
    hash_number(hash, (int64_t)corpus_device(w->corpus));
    for (int64_t i = 0; i < w->index.count; i++) {
        const struct index_entry *file = &w->index.file[i];
        sha256_add(hash, file->name, strlen(file->name) + 1);
        hash_number(hash, file->bytes);
        hash_number(hash, file->seconds);
        hash_number(hash, file->nanoseconds);
        hash_number(hash, (int64_t)file->inode);
    }
    sha256_finish(hash, key);
    hex_encode(key, sizeof key, w->key);
}

static bool read_whole(int fd, void *out, size_t bytes)
{
    size_t at = 0;
    ssize_t n = 1;
    while (at < bytes && (n = pread(fd, (char *)out + at, bytes - at, (off_t)at)) > 0)
        at += (size_t)n;
    return at == bytes;
}

/* What an index has said stands. */
static void take_cached(struct identify_work *w)
{
    struct data_index kept = w->index;
    size_t bytes = (size_t)kept.chunks * RM_HASH_BYTES;
    if (cache_open(&w->cache, w->options->cache, w->options->cache_bytes, NULL) < 0) {
        w->cache = NULL;
        return;
    }
    make_key(w);
    int fd = cache_take(w->cache, w->key, (int64_t)bytes, true);
    kept.chunk = fd >= 0 ? malloc(bytes + 1) : NULL;
    if (kept.chunk && read_whole(fd, kept.chunk, bytes))
        take_known(w, &kept);
    free(kept.chunk);
    if (fd >= 0)
        close(fd);
}

/* Costs speed only where it can't be kept. */
static void keep_cached(const struct identify_work *w)
{
    int claim = w->cache ? cache_claim(w->cache, w->key, NULL) : -1;
    if (claim < 0)
        return;
    if (cache_put(w->cache, w->key, claim, w->index.chunk, w->index.chunks * RM_HASH_BYTES, NULL) == 0)
        close(claim);
}

/* ---- */

/* Which chunks are not read: known ones, but for the own share of them. */
static void choose_chunks(const struct identify_work *w, bool *skip)
{
    const struct identify_options *o = w->options;
    for (int64_t i = 0; i < w->index.count; i++) {
        const struct index_entry *file = &w->index.file[i];
        for (int64_t c = file->first; c < file->first + tree_chunks(file->bytes); c++)
            skip[c] = w->known[i] && !(o->shares && c % o->shares == o->share);
    }
}

/* said: of all chunks, as they were known before the own share was read. */
static int compare_share(const struct identify_work *w, const uint8_t (*said)[RM_HASH_BYTES],
                         struct error *err)
{
    for (int64_t i = 0; i < w->index.count; i++) {
        const struct index_entry *file = &w->index.file[i];
        for (int64_t c = 0; w->known[i] && c < tree_chunks(file->bytes); c++)
            if (memcmp(w->index.chunk[file->first + c], said[file->first + c], RM_HASH_BYTES) != 0)
                return refuse_chunk(w, file, c, err);
    }
    return 0;
}

static int read_chunks(struct identify_work *w, struct error *err)
{
    size_t chunks = (size_t)w->index.chunks;
    bool *skip = calloc(chunks + 1, sizeof *skip);
    uint8_t(*said)[RM_HASH_BYTES] = calloc(chunks + 1, RM_HASH_BYTES);
    int status = -1;
    if (skip && said) {
        if (chunks)
            memcpy(said, w->index.chunk, chunks * RM_HASH_BYTES);
        choose_chunks(w, skip);
        status = hash_chunks(w->corpus, w->options, skip, &w->index, err);
        if (status == 0)
            status = compare_share(w, (const uint8_t(*)[RM_HASH_BYTES])said, err);
    } else
        err_set(err, ERR_MACHINE, "no memory for the hashes of %zu chunks", chunks);
    free(skip);
    free(said);
    return status;
}

static int make_tree(struct identify_work *w, struct error *err)
{
    const struct identify_options *o = w->options;
    bool folder = corpus_folder(w->corpus), times = o->times && folder;
    if (list_files(w, err) < 0 || (times && take_indexes(w, err) < 0))
        return -1;
    if (times && o->cache && !all_known(w))
        take_cached(w);
    bool learns = !all_known(w);
    if (read_chunks(w, err) < 0)
        return -1;
    if (times && learns)
        keep_cached(w);
    return folder && !times && !o->anew ? compare_indexes(w, err) : 0;
}

static int identify_tree(const struct corpus *c, const struct identify_options *options,
                         uint8_t out[RM_HASH_BYTES], struct error *err)
{
    struct identify_work w = {.corpus = c, .options = options};
    int status = make_tree(&w, err);
    if (status == 0)
        data_index_root(&w.index, corpus_width(c), out);
    if (status == 0 && options->ret)
        *options->ret = w.index;
    else
        data_index_clear(&w.index);
    cache_free(w.cache);
    free(w.known);
    return status;
}

int corpus_identify(const struct corpus *c, const struct identify_options *options,
                    struct corpus_identity *ret, struct error *err)
{
    *ret = (struct corpus_identity){.files = corpus_files(c), .bytes = corpus_bytes(c)};
    return options->kind == IDENTITY_CHAIN ? identify_chain(c, ret->sha256, err)
                                           : identify_tree(c, options, ret->sha256, err);
}
