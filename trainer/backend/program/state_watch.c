#include "trainer/backend/program/state_watch.h"

#include "common/os/crypto.h"
#include "trainer/io/crc32c.h"

enum { BLOCK = 1 << 20 };

bool watch_is_due(int64_t step)
{
    return step > 0 && step % WATCH_EVERY == 0;
}

void watch_sum(const void *image, size_t bytes, uint8_t out[RM_HASH_BYTES])
{
    struct sha256 *h = sha256_open();
    for (size_t at = 0; at < bytes; at += BLOCK) {
        size_t length = bytes - at < BLOCK ? bytes - at : BLOCK;
        uint32_t sum = chunk_crc32c((const char *)image + at, length);
        sha256_add(h, &sum, sizeof sum);
    }
    sha256_finish(h, out);
}

void watch_mix(uint8_t lineage[RM_HASH_BYTES], const uint8_t sum[RM_HASH_BYTES])
{
    struct sha256 *h = sha256_open();
    sha256_add(h, lineage, RM_HASH_BYTES);
    sha256_add(h, sum, RM_HASH_BYTES);
    sha256_finish(h, lineage);
}
