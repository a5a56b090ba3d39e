/* XXH3 of 128 bits (xxhash.h stays inside xxh3.c): a checksum, as fast as memory is read. It finds what
 * chance changes, and nothing that somebody changes on purpose: that is for SHA-256 (crypto.h). */
#ifndef RM_OS_XXH3_H
#define RM_OS_XXH3_H

#include <stddef.h>
#include <stdint.h>

enum { XXH3_BYTES = 16 };

struct xxh3; /* a running one */

struct xxh3 *xxh3_open(void);
void xxh3_add(struct xxh3 *h, const void *bytes, size_t length);
void xxh3_finish(struct xxh3 *h, uint8_t out[XXH3_BYTES]); /* frees h */
void xxh3_free(struct xxh3 *h);                            /* gives up early; NULL is fine */

/* The canonical form: its first byte is the highest, on every machine. */
void xxh3_once(const void *bytes, size_t length, uint8_t out[XXH3_BYTES]);

#endif
