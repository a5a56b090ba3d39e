/* What a writer leaves beside its slice until the checkpoint is published: the sums of its pieces' chunks,
 * and whether all bytes are known to have arrived. So a publisher need not read again what others wrote. Only
 * common/storage/checkpoint uses this.
 *
 * "optimizer-00001-of-00003-<16 digits of lineage>.sums", a line for each piece of the slice:
 *
 *   model.safetensors 0 50331648 xxh3 arrived 0123456789abcdef0123456789abcdef...
 *
 * file, offset, bytes, how it is summed, "arrived" or "sent", the sums of all its chunks. Nothing in it is
 * believed by itself: the sums have to come to the piece's hash, which its writer told the coordinator. Who
 * finds none, or one that does not, reads the piece instead. */
#ifndef RM_STORE_SUMS_H
#define RM_STORE_SUMS_H

#include <stdbool.h>

#include "common/base/str.h"
#include "common/storage/checkpoint/files.h"
#include "common/storage/checkpoint/manifest.h"

enum { SUMS_TEXT_MAX = 4 << 20 };

/* A slice's object; "" where it would have no lineage. */
void sums_name(char out[FILES_NAME_MAX], const char *checkpoint, const uint8_t *lineage, int part, int parts);

/* Adds the line of one piece. arrived: all of it was sent by this writer now, and is on the disk, or the
 * store's answers said what has arrived. */
void sums_add(struct str *out, enum manifest_hash hash, const struct manifest_piece *piece, bool arrived,
              const uint8_t (*sum)[RM_HASH_BYTES]);

/* Is there a line of this piece, with sums that come to its hash? They go to sum. */
bool sums_find(const struct str *text, enum manifest_hash hash, const struct manifest_piece *piece,
               bool *ret_arrived, uint8_t (*sum)[RM_HASH_BYTES]);

#endif
