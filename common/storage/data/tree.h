/* One hash of all data that many can work out together: each file is cut into chunks of 16 MiB, the last of
 * which takes what is left, and the root is a hash over names, sizes and the chunks' hashes, in order. Which
 * bytes go into it in which order docs/file-formats.md says.
 *
 * A chunk is hashed by whoever has it (SHA-256 of its bytes, nothing else). No I/O. */
#ifndef RM_DATA_TREE_H
#define RM_DATA_TREE_H

#include <stdint.h>

#include "common/base/limits.h"

enum { TREE_CHUNK = 16 << 20 };

struct tree; /* a root under way */

int64_t tree_chunks(int64_t bytes);                     /* of a file of this size; an empty one has none */
int64_t tree_chunk_bytes(int64_t bytes, int64_t chunk); /* of its chunk, from 0 */

/* width: bytes of a token (1: text), as the same bytes cut otherwise are other data. */
struct tree *tree_open(int width, int64_t files);
/* The next file, in byte order of names. chunk: its hashes, tree_chunks(bytes) of them. */
void tree_add(struct tree *tree, const char *name, int64_t bytes, const uint8_t (*chunk)[RM_HASH_BYTES]);
/* Frees the tree. All files that it was opened for were added. */
void tree_finish(struct tree *tree, uint8_t out[RM_HASH_BYTES]);

#endif
