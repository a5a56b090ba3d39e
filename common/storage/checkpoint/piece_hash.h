/* The hash of a piece of a checkpoint's file. Only common/storage/checkpoint uses this.
 *
 * A piece is cut into chunks of PIECE_CHUNK bytes, the last of which takes what is left, up to one byte less
 * than twice as much. Its hash is the SHA-256 of its chunks' SHA-256s one behind the other, or that of its
 * only chunk. So a state is read once for all that is told of it: chunks are hashed side by side, and one
 * that is a part of an upload is signed with the hash that is in the manifest. In manifests of version 1 a
 * piece of any size is one chunk: `chunk` is 0 then. */
#ifndef RM_STORE_PIECE_HASH_H
#define RM_STORE_PIECE_HASH_H

#include <stdint.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "common/storage/object/object.h"

enum {
    PIECE_CHUNK = 16 << 20,
    PIECE_WANTS_MOST = 3 * PIECE_CHUNK, /* bytes: two chunks, one of them a last one */
};

/* How many chunks so many bytes are, and how long chunk i is; it begins at i * chunk. */
int64_t piece_chunks(int64_t bytes, int64_t chunk);
int64_t piece_chunk_bytes(int64_t bytes, int64_t chunk, int64_t i);

/* Bytes [from, from + count) of a body. */
struct object_body piece_cut(const struct object_body *body, int64_t from, int64_t count);

/* Hashes a body of so many bytes as a piece: each chunk's hash to hash[i], the piece's to sha256. */
void piece_hash_body(const struct object_body *body, int64_t bytes, uint8_t (*hash)[RM_HASH_BYTES],
                     uint8_t sha256[RM_HASH_BYTES]);

/* The same of bytes that come one after the other. */
struct piece_stream;
struct piece_stream *piece_stream_open(int64_t bytes, int64_t chunk); /* NULL: no memory */
/* Each chunk's hash goes to hash[i] as well. */
void piece_stream_keep(struct piece_stream *s, uint8_t (*hash)[RM_HASH_BYTES]);
/* How many bytes are best given next, in one run. */
int64_t piece_stream_wants(const struct piece_stream *s);
void piece_stream_add(struct piece_stream *s, const void *bytes, int64_t count);
void piece_stream_finish(struct piece_stream *s, uint8_t sha256[RM_HASH_BYTES]); /* frees s */
void piece_stream_free(struct piece_stream *s);                                  /* gives up; NULL is fine */

#endif
