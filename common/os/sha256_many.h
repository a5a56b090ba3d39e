/* SHA-256 of several texts at once.
 *
 * One SHA-256 is a chain in which each step waits for the one before it, and that keeps the processor's unit
 * for it half idle. Where there is such a unit (SHA-NI), two texts are therefore hashed side by side in not
 * much more than the time of one. Elsewhere they come one after the other. */
#ifndef RM_OS_SHA256_MANY_H
#define RM_OS_SHA256_MANY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"

struct sha256_text {
    const void *bytes;
    size_t count;
    uint8_t *hash; /* (RM_HASH_BYTES) the result */
};

/* Any thread. Texts of one length, neighbours in the list, gain most. */
void sha256_many(const struct sha256_text *text, int texts);

/* The same without the unit, for comparing. */
void sha256_one_by_one(const struct sha256_text *text, int texts);
bool sha256_has_pairs(void); /* this processor hashes side by side */

#endif
