#include "common/storage/object/crc32c.h"

#include <string.h>
#include <threads.h>

enum { SLICES = 8 };

static uint32_t table[SLICES][256];
static once_flag table_once = ONCE_FLAG_INIT;

/* table[s][b]: what byte b does to the sum when s bytes follow it. */
static void table_make(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
        table[0][b] = crc;
    }
    for (int s = 1; s < SLICES; s++)
        for (int b = 0; b < 256; b++)
            table[s][b] = table[s - 1][b] >> 8 ^ table[0][table[s - 1][b] & 255];
}

uint32_t crc32c_by_table(uint32_t crc, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;
    call_once(&table_once, table_make);
    crc = ~crc;
    for (; count >= SLICES; count -= SLICES, at += SLICES) {
        uint32_t next = 0;
        for (int i = 0; i < 4; i++)
            next ^= table[SLICES - 1 - i][at[i] ^ (crc >> 8 * i & 255)] ^ table[3 - i][at[4 + i]];
        crc = next;
    }
    while (count--)
        crc = crc >> 8 ^ table[0][(crc ^ *at++) & 255];
    return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const uint8_t *at, size_t count)
{
    uint64_t sum = ~crc;
    for (; count >= 8; count -= 8, at += 8) {
        uint64_t eight;
        memcpy(&eight, at, 8);
        sum = __builtin_ia32_crc32di(sum, eight);
    }
    while (count--)
        sum = __builtin_ia32_crc32qi((uint32_t)sum, *at++);
    return ~(uint32_t)sum;
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t count)
{
    return __builtin_cpu_supports("sse4.2") ? crc32c_sse42(crc, bytes, count)
                                            : crc32c_by_table(crc, bytes, count);
}
#else
uint32_t crc32c(uint32_t crc, const void *bytes, size_t count)
{
    return crc32c_by_table(crc, bytes, count);
}
#endif
