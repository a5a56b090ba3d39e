/* A bounded folder of pieces of content, each under a key, that outlives programs and is shared by them.
 *
 * A piece is a file: its bytes, then their SHA-256. It appears whole by a rename, and is checked by whoever
 * takes it up; damaged ones are deleted and count as absent. Where the folder grows over its bound, the
 * pieces that were used longest ago go; who has one open keeps it. Several programs may use one folder: who
 * fetches a piece claims it first, so that the others wait for it instead of fetching it again. A claim ends
 * with its program. One cache serves one thread. */
#ifndef RM_DATA_CACHE_H
#define RM_DATA_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/limits.h"

enum { CACHE_KEY_MAX = 65 }; /* letters and digits, with the NUL */

struct cache;

/* The folder of a job's trainer.data.cache (file:///folder, or "": the user's own). */
void cache_folder(const char *uri, char out[RM_URI_MAX]);

/* Makes the folder (0700) and those above it. Refused where it is another user's: ERR_MACHINE. bytes: its
 * bound; it is overstepped for as long as one program has written less than an eighth of it since it looked.
 */
int cache_open(struct cache **ret, const char *folder, int64_t bytes, struct error *err);
void cache_free(struct cache *cache);

/* A descriptor of the piece's file, the caller's, or -1: absent. verify: its hash is checked. */
int cache_take(struct cache *cache, const char *key, int64_t bytes, bool verify);

/* The right to put a piece: a descriptor for cache_put or cache_drop. CACHE_BUSY: somebody else has it. */
enum { CACHE_BUSY = -2 };
int cache_claim(struct cache *cache, const char *key, struct error *err);
/* Ends the claim: the piece is there. The descriptor stays the caller's, and reads the piece. On failure
 * nothing is there, and the descriptor is closed. */
int cache_put(struct cache *cache, const char *key, int claim, const void *bytes, int64_t count,
              struct error *err);
void cache_drop(struct cache *cache, const char *key, int claim); /* ends it without a piece */

#endif
