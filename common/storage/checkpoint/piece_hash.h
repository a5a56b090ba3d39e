/* The hash of a piece of a checkpoint's file. Only common/storage/checkpoint uses this.
 *
 * A piece is cut into chunks of PIECE_CHUNK bytes, the last of which takes what is left, up to one byte less
 * than twice as much. Each has a sum, and the piece's hash is made of its chunks' sums (enum manifest_hash):
 *
 *   MANIFEST_XXH3     sums are XXH3 of 128 bits; the hash is the SHA-256 of all sums one behind the other
 *   MANIFEST_SHA256   sums are SHA-256; the hash is the only chunk's sum, or the SHA-256 of all sums
 *   MANIFEST_WHOLE    a piece of any size is one chunk: the hash is the SHA-256 of its bytes
 *
 * XXH3 is as fast as memory is read, so it is worked out of what is being written or read anyway, in the same
 * pass. SHA-256 is quicker where two chunks are hashed side by side, and a chunk that is a part of an upload
 * is signed with the hash that is in the manifest. A sum takes RM_HASH_BYTES here, whatever is used of it. */
#ifndef RM_STORE_PIECE_HASH_H
#define RM_STORE_PIECE_HASH_H

#include <stdint.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "common/storage/checkpoint/manifest_hash.h"
#include "common/storage/object/object.h"

enum {
    PIECE_CHUNK = 16 << 20,
    PIECE_WANTS_MOST = 3 * PIECE_CHUNK, /* bytes: two chunks, one of them a last one */
    PIECE_IN_CACHE = 1 << 20,           /* bytes that stay near the processor between two who look at them */
};

int64_t piece_chunk(enum manifest_hash hash); /* PIECE_CHUNK; 0: a piece is one chunk */
int piece_sum_bytes(enum manifest_hash hash); /* that are used of a sum */

/* How many chunks so many bytes are, and how long chunk i is; it begins at i * chunk. */
int64_t piece_chunks(int64_t bytes, int64_t chunk);
int64_t piece_chunk_bytes(int64_t bytes, int64_t chunk, int64_t i);

/* Bytes [from, from + count) of a body. */
struct object_body piece_cut(const struct object_body *body, int64_t from, int64_t count);

/* The sum of a chunk, whose bytes come one after the other. */
struct piece_sum;
struct piece_sum *piece_sum_open(enum manifest_hash hash);
void piece_sum_add(struct piece_sum *s, const void *bytes, size_t count);
void piece_sum_finish(struct piece_sum *s, uint8_t out[RM_HASH_BYTES]); /* frees s */
void piece_sum_free(struct piece_sum *s);                               /* gives up; NULL is fine */

/* The hash of a piece of chunks with these sums. */
void piece_of_sums(enum manifest_hash hash, const uint8_t (*sum)[RM_HASH_BYTES], int64_t chunks,
                   uint8_t out[RM_HASH_BYTES]);

/* Hashes a body of so many bytes as a piece: each chunk's sum to sum[i], the piece's hash to out. */
void piece_hash_body(enum manifest_hash hash, const struct object_body *body, int64_t bytes,
                     uint8_t (*sum)[RM_HASH_BYTES], uint8_t out[RM_HASH_BYTES]);

/* The same of bytes that come one after the other. */
struct piece_stream;
struct piece_stream *piece_stream_open(int64_t bytes, enum manifest_hash hash); /* NULL: no memory */
/* Each chunk's sum goes to sum[i] as well. */
void piece_stream_keep(struct piece_stream *s, uint8_t (*sum)[RM_HASH_BYTES]);
/* How many bytes are best given next, in one run. */
int64_t piece_stream_wants(const struct piece_stream *s);
void piece_stream_add(struct piece_stream *s, const void *bytes, int64_t count);
void piece_stream_finish(struct piece_stream *s, uint8_t out[RM_HASH_BYTES]); /* frees s */
void piece_stream_free(struct piece_stream *s);                               /* gives up; NULL is fine */

#endif
