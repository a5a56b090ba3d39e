#include "trainer/io/crc32c.h"

#include <string.h>

/* Bit by bit: for machines older than SSE4.2 and for what is left over. */
static uint32_t crc_bits(uint32_t crc, const uint8_t *at, size_t length)
{
    const uint32_t polynomial = 0x82f63b78; /* reflected */
    for (size_t i = 0; i < length; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (polynomial & (0u - (crc & 1)));
    }
    return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t crc_sse42(uint32_t crc, const uint8_t *at, size_t length)
{
    uint64_t wide = crc;
    for (; length >= 8; at += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    return crc_bits((uint32_t)wide, at, length);
}

uint32_t chunk_crc32c(const void *bytes, size_t length)
{
    return ~(__builtin_cpu_supports("sse4.2") ? crc_sse42(~0u, bytes, length) : crc_bits(~0u, bytes, length));
}
#else
uint32_t chunk_crc32c(const void *bytes, size_t length)
{
    return ~crc_bits(~0u, bytes, length);
}
#endif
