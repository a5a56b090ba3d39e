/* Sums of chunks and hashes of pieces: of bytes that lie in memory, and of such that come one after the
 * other.
 */
#include "common/storage/checkpoint/piece_hash.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/os/crypto.h"
#include "common/os/sha256_many.h"
#include "common/os/xxh3.h"

enum { SIDE_BY_SIDE = 2 };

int64_t piece_chunk(enum manifest_hash hash)
{
    return hash == MANIFEST_WHOLE ? 0 : PIECE_CHUNK;
}

int piece_sum_bytes(enum manifest_hash hash)
{
    return hash == MANIFEST_XXH3 ? (int)XXH3_BYTES : (int)RM_HASH_BYTES;
}

int64_t piece_chunks(int64_t bytes, int64_t chunk)
{
    return chunk && bytes >= 2 * chunk ? bytes / chunk : 1;
}

int64_t piece_chunk_bytes(int64_t bytes, int64_t chunk, int64_t i)
{
    int64_t chunks = piece_chunks(bytes, chunk);
    return i + 1 < chunks ? chunk : bytes - (chunks - 1) * chunk;
}

struct object_body piece_cut(const struct object_body *body, int64_t from, int64_t count)
{
    struct object_body cut = {0};
    for (int i = 0; i < body->runs && count > 0; i++) {
        int64_t here = (int64_t)body->run[i].count;
        if (from >= here) {
            from -= here;
            continue;
        }
        int64_t take = here - from < count ? here - from : count;
        cut.run[cut.runs].bytes = (const char *)body->run[i].bytes + from;
        cut.run[cut.runs++].count = (size_t)take;
        from = 0;
        count -= take;
    }
    return cut;
}

/* --- sums --- */

struct piece_sum {
    struct xxh3 *xxh3;
    struct sha256 *sha256; /* one of the two */
};

struct piece_sum *piece_sum_open(enum manifest_hash hash)
{
    struct piece_sum *s = calloc(1, sizeof *s);
    if (!s)
        abort(); /* no memory for two pointers */
    if (hash == MANIFEST_XXH3)
        s->xxh3 = xxh3_open();
    else
        s->sha256 = sha256_open();
    return s;
}

void piece_sum_add(struct piece_sum *s, const void *bytes, size_t count)
{
    if (s->xxh3)
        xxh3_add(s->xxh3, bytes, count);
    else
        sha256_add(s->sha256, bytes, count);
}

void piece_sum_finish(struct piece_sum *s, uint8_t out[RM_HASH_BYTES])
{
    memset(out, 0, RM_HASH_BYTES);
    if (s->xxh3)
        xxh3_finish(s->xxh3, out);
    else
        sha256_finish(s->sha256, out);
    free(s);
}

void piece_sum_free(struct piece_sum *s)
{
    if (!s)
        return;
    xxh3_free(s->xxh3);
    sha256_free(s->sha256);
    free(s);
}

void piece_of_sums(enum manifest_hash hash, const uint8_t (*sum)[RM_HASH_BYTES], int64_t chunks,
                   uint8_t out[RM_HASH_BYTES])
{
    if (chunks == 1 && hash != MANIFEST_XXH3) {
        memcpy(out, sum[0], RM_HASH_BYTES);
        return;
    }
    struct sha256 *list = sha256_open();
    for (int64_t i = 0; i < chunks; i++)
        sha256_add(list, sum[i], (size_t)piece_sum_bytes(hash));
    sha256_finish(list, out);
}

static void sum_runs(enum manifest_hash hash, const struct object_body *body, uint8_t out[RM_HASH_BYTES])
{
    struct piece_sum *s = piece_sum_open(hash);
    for (int i = 0; i < body->runs; i++)
        piece_sum_add(s, body->run[i].bytes, body->run[i].count);
    piece_sum_finish(s, out);
}

void piece_hash_body(enum manifest_hash hash, const struct object_body *body, int64_t bytes,
                     uint8_t (*sum)[RM_HASH_BYTES], uint8_t out[RM_HASH_BYTES])
{
    int64_t chunks = piece_chunks(bytes, PIECE_CHUNK);
    struct sha256_text text[SIDE_BY_SIDE];
    int texts = 0;
    RM_ASSERT(hash != MANIFEST_WHOLE, "%lld bytes of a kind that nobody writes", (long long)bytes);
    for (int64_t i = 0; i < chunks; i++) {
        struct object_body cut = piece_cut(body, i * PIECE_CHUNK, piece_chunk_bytes(bytes, PIECE_CHUNK, i));
        if (cut.runs == 1 && hash == MANIFEST_SHA256)
            text[texts++] = (struct sha256_text){cut.run[0].bytes, cut.run[0].count, sum[i]};
        else
            sum_runs(hash, &cut, sum[i]);
        if (texts == SIDE_BY_SIDE || i + 1 == chunks) {
            sha256_many(text, texts);
            texts = 0;
        }
    }
    piece_of_sums(hash, (const uint8_t(*)[RM_HASH_BYTES])sum, chunks, out);
}

/* --- as bytes come --- */

struct piece_stream {
    enum manifest_hash hash;
    int64_t bytes, chunk, chunks;
    int64_t i, at;             /* the chunk under way, and how much of it has come */
    struct piece_sum *running; /* of it; NULL before its first byte */
    struct sha256 *root;       /* of the chunks' sums; NULL where the last one is all */
    uint8_t last[RM_HASH_BYTES];
    uint8_t (*keep)[RM_HASH_BYTES]; /* (chunks); NULL: nobody wants them */
};

struct piece_stream *piece_stream_open(int64_t bytes, enum manifest_hash hash)
{
    struct piece_stream *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->hash = hash;
    s->bytes = bytes;
    s->chunk = piece_chunk(hash);
    s->chunks = piece_chunks(bytes, s->chunk);
    s->root = s->chunks > 1 || hash == MANIFEST_XXH3 ? sha256_open() : NULL;
    return s;
}

static int64_t left_of_chunk(const struct piece_stream *s)
{
    return piece_chunk_bytes(s->bytes, s->chunk, s->i) - s->at;
}

void piece_stream_keep(struct piece_stream *s, uint8_t (*sum)[RM_HASH_BYTES])
{
    s->keep = sum;
}

int64_t piece_stream_wants(const struct piece_stream *s)
{
    int64_t left = left_of_chunk(s);
    if (s->hash == MANIFEST_XXH3)
        return left < PIECE_IN_CACHE ? left : PIECE_IN_CACHE;
    if (s->at == 0 && s->i + 1 < s->chunks)
        left += piece_chunk_bytes(s->bytes, s->chunk, s->i + 1);
    return left;
}

static void end_chunk(struct piece_stream *s, const uint8_t sum[RM_HASH_BYTES])
{
    memcpy(s->last, sum, RM_HASH_BYTES);
    if (s->keep)
        memcpy(s->keep[s->i], sum, RM_HASH_BYTES);
    if (s->root)
        sha256_add(s->root, sum, (size_t)piece_sum_bytes(s->hash));
    s->i++;
    s->at = 0;
}

/* Whole chunks that lie one behind the other, two at most; returns their bytes, 0 where there is none, or
 * where nothing is gained by two. */
static int64_t add_whole(struct piece_stream *s, const char *bytes, int64_t count)
{
    uint8_t hash[SIDE_BY_SIDE][RM_HASH_BYTES];
    struct sha256_text text[SIDE_BY_SIDE];
    int texts = 0;
    int64_t taken = 0;
    if (s->at || s->hash == MANIFEST_XXH3)
        return 0;
    for (int64_t i = s->i; i < s->chunks && texts < SIDE_BY_SIDE; i++) {
        int64_t size = piece_chunk_bytes(s->bytes, s->chunk, i);
        if (taken + size > count)
            break;
        text[texts] = (struct sha256_text){bytes + taken, (size_t)size, hash[texts]};
        texts++;
        taken += size;
    }
    sha256_many(text, texts);
    for (int i = 0; i < texts; i++)
        end_chunk(s, hash[i]);
    return taken;
}

static int64_t add_some(struct piece_stream *s, const char *bytes, int64_t count)
{
    int64_t left = left_of_chunk(s), take = left < count ? left : count;
    if (!s->running)
        s->running = piece_sum_open(s->hash);
    piece_sum_add(s->running, bytes, (size_t)take);
    s->at += take;
    if (take == left) {
        uint8_t sum[RM_HASH_BYTES];
        piece_sum_finish(s->running, sum);
        s->running = NULL;
        end_chunk(s, sum);
    }
    return take;
}

void piece_stream_add(struct piece_stream *s, const void *bytes, int64_t count)
{
    const char *at = bytes;
    while (count > 0 && s->i < s->chunks) {
        int64_t taken = add_whole(s, at, count);
        if (!taken)
            taken = add_some(s, at, count);
        at += taken;
        count -= taken;
    }
}

void piece_stream_finish(struct piece_stream *s, uint8_t out[RM_HASH_BYTES])
{
    if (s->root)
        sha256_finish(s->root, out);
    else
        memcpy(out, s->last, RM_HASH_BYTES);
    s->root = NULL;
    piece_stream_free(s);
}

void piece_stream_free(struct piece_stream *s)
{
    if (!s)
        return;
    piece_sum_free(s->running);
    sha256_free(s->root);
    free(s);
}
