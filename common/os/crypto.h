/* Hashes, message authentication and random bytes (OpenSSL stays inside crypto.c). */
#ifndef RM_OS_CRYPTO_H
#define RM_OS_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"

struct sha256; /* a running hash */

struct sha256 *sha256_open(void);
void sha256_add(struct sha256 *h, const void *bytes, size_t length);
void sha256_finish(struct sha256 *h, uint8_t out[RM_HASH_BYTES]); /* frees h */
void sha256_free(struct sha256 *h);                               /* gives up early; NULL is fine */

void sha256_once(const void *bytes, size_t length, uint8_t out[RM_HASH_BYTES]);
void hmac_sha256(const void *key, size_t key_length, const void *bytes, size_t length,
                 uint8_t out[RM_HASH_BYTES]);

/* Object stores name contents by it; it is not for secrets. false where this machine's policy has none. */
enum { MD5_BYTES = 16 };
bool md5_once(const void *bytes, size_t length, uint8_t out[MD5_BYTES]);
bool crypto_equal(const void *a, const void *b, size_t length); /* in constant time */
void crypto_random(void *bytes, size_t length);
uint64_t crypto_seed(void); /* the same as a number */

#endif
