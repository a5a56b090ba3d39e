#include "common/os/crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdlib.h>

/* The EVP context is the running hash; the struct only gives it a type of our own. */
static EVP_MD_CTX *evp(struct sha256 *h)
{
    return (EVP_MD_CTX *)(void *)h;
}

static void must(int ok)
{
    if (!ok)
        abort(); /* only out of memory or a broken OpenSSL gets here */
}

struct sha256 *sha256_open(void)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    must(context != NULL);
    must(EVP_DigestInit_ex(context, EVP_sha256(), NULL));
    return (struct sha256 *)(void *)context;
}

void sha256_add(struct sha256 *h, const void *bytes, size_t length)
{
    must(EVP_DigestUpdate(evp(h), bytes, length));
}

void sha256_finish(struct sha256 *h, uint8_t out[RM_HASH_BYTES])
{
    must(EVP_DigestFinal_ex(evp(h), out, NULL));
    sha256_free(h);
}

void sha256_free(struct sha256 *h)
{
    EVP_MD_CTX_free(evp(h));
}

void sha256_once(const void *bytes, size_t length, uint8_t out[RM_HASH_BYTES])
{
    must(EVP_Digest(bytes, length, out, NULL, EVP_sha256(), NULL));
}

void hmac_sha256(const void *key, size_t key_length, const void *bytes, size_t length,
                 uint8_t out[RM_HASH_BYTES])
{
    must(HMAC(EVP_sha256(), key, (int)key_length, bytes, length, out, NULL) != NULL);
}

bool md5_once(const void *bytes, size_t length, uint8_t out[MD5_BYTES])
{
    return EVP_Digest(bytes, length, out, NULL, EVP_md5(), NULL) == 1;
}

bool crypto_equal(const void *a, const void *b, size_t length)
{
    return CRYPTO_memcmp(a, b, length) == 0;
}

void crypto_random(void *bytes, size_t length)
{
    must(RAND_bytes(bytes, (int)length) == 1);
}

uint64_t crypto_seed(void)
{
    uint64_t seed;
    crypto_random(&seed, sizeof seed);
    return seed;
}
