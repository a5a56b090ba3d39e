#include "common/storage/checkpoint/piece_hash.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/crypto.h"
#include "common/os/sha256_many.h"

enum { SIDE_BY_SIDE = 2 };

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

static void hash_runs(const struct object_body *body, uint8_t hash[RM_HASH_BYTES])
{
    struct sha256 *h = sha256_open();
    for (int i = 0; i < body->runs; i++)
        sha256_add(h, body->run[i].bytes, body->run[i].count);
    sha256_finish(h, hash);
}

void piece_hash_body(const struct object_body *body, int64_t bytes, uint8_t (*hash)[RM_HASH_BYTES],
                     uint8_t sha256[RM_HASH_BYTES])
{
    int64_t chunks = piece_chunks(bytes, PIECE_CHUNK);
    struct sha256_text text[SIDE_BY_SIDE];
    int texts = 0;
    for (int64_t i = 0; i < chunks; i++) {
        struct object_body cut = piece_cut(body, i * PIECE_CHUNK, piece_chunk_bytes(bytes, PIECE_CHUNK, i));
        if (cut.runs == 1)
            text[texts++] = (struct sha256_text){cut.run[0].bytes, cut.run[0].count, hash[i]};
        else
            hash_runs(&cut, hash[i]);
        if (texts == SIDE_BY_SIDE || i + 1 == chunks) {
            sha256_many(text, texts);
            texts = 0;
        }
    }
    if (chunks == 1)
        memcpy(sha256, hash[0], RM_HASH_BYTES);
    else
        sha256_once(hash, (size_t)chunks * RM_HASH_BYTES, sha256);
}

/* --- as bytes come --- */

struct piece_stream {
    int64_t bytes, chunk, chunks;
    int64_t i, at;          /* the chunk under way, and how much of it has come */
    struct sha256 *running; /* of it; NULL before its first byte */
    struct sha256 *root;    /* of the chunks' hashes; NULL where there is only one */
    uint8_t last[RM_HASH_BYTES];
    uint8_t (*keep)[RM_HASH_BYTES]; /* (chunks); NULL: nobody wants them */
};

struct piece_stream *piece_stream_open(int64_t bytes, int64_t chunk)
{
    struct piece_stream *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->bytes = bytes;
    s->chunk = chunk;
    s->chunks = piece_chunks(bytes, chunk);
    s->root = s->chunks > 1 ? sha256_open() : NULL;
    return s;
}

static int64_t left_of_chunk(const struct piece_stream *s)
{
    return piece_chunk_bytes(s->bytes, s->chunk, s->i) - s->at;
}

void piece_stream_keep(struct piece_stream *s, uint8_t (*hash)[RM_HASH_BYTES])
{
    s->keep = hash;
}

int64_t piece_stream_wants(const struct piece_stream *s)
{
    int64_t left = left_of_chunk(s);
    if (s->at == 0 && s->i + 1 < s->chunks)
        left += piece_chunk_bytes(s->bytes, s->chunk, s->i + 1);
    return left;
}

static void end_chunk(struct piece_stream *s, const uint8_t hash[RM_HASH_BYTES])
{
    memcpy(s->last, hash, RM_HASH_BYTES);
    if (s->keep)
        memcpy(s->keep[s->i], hash, RM_HASH_BYTES);
    if (s->root)
        sha256_add(s->root, hash, RM_HASH_BYTES);
    s->i++;
    s->at = 0;
}

/* Whole chunks that lie one behind the other, two at most; returns their bytes, 0 where there is none. */
static int64_t add_whole(struct piece_stream *s, const char *bytes, int64_t count)
{
    uint8_t hash[SIDE_BY_SIDE][RM_HASH_BYTES];
    struct sha256_text text[SIDE_BY_SIDE];
    int texts = 0;
    int64_t taken = 0;
    if (s->at)
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
        s->running = sha256_open();
    sha256_add(s->running, bytes, (size_t)take);
    s->at += take;
    if (take == left) {
        uint8_t hash[RM_HASH_BYTES];
        sha256_finish(s->running, hash);
        s->running = NULL;
        end_chunk(s, hash);
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

void piece_stream_finish(struct piece_stream *s, uint8_t sha256[RM_HASH_BYTES])
{
    if (s->root)
        sha256_finish(s->root, sha256);
    else
        memcpy(sha256, s->last, RM_HASH_BYTES);
    s->root = NULL;
    piece_stream_free(s);
}

void piece_stream_free(struct piece_stream *s)
{
    if (!s)
        return;
    sha256_free(s->running);
    sha256_free(s->root);
    free(s);
}
