/* The checksum that others compute, too, however the bytes come. */
#include "common/os/xxh3.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"

static void expect(const void *bytes, size_t length, const char *hex)
{
    uint8_t hash[XXH3_BYTES];
    char is[2 * XXH3_BYTES + 1];
    xxh3_once(bytes, length, hash);
    hex_encode(hash, sizeof hash, is);
    cr_assert_str_eq(is, hex);
}

/* As its specification and `xxhsum -H2` say. */
Test(xxh3, is_what_others_compute)
{
    expect("", 0, "99aa06d3014798d86001c324468d497f");
    expect("a", 1, "a96faf705af16834e6c632b61e964e1f");
    expect("abc", 3, "06b05ab6733a618578af5f94892f3950");
}

Test(xxh3, it_does_not_matter_how_the_bytes_come)
{
    enum { BYTES = 100003 };
    char *bytes = malloc(BYTES);
    uint8_t once[XXH3_BYTES], is[XXH3_BYTES];
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    xxh3_once(bytes, BYTES, once);
    for (size_t step = 1; step < BYTES; step = step * 5 + 3) {
        struct xxh3 *h = xxh3_open();
        for (size_t at = 0; at < BYTES; at += step)
            xxh3_add(h, bytes + at, step < BYTES - at ? step : BYTES - at);
        xxh3_add(h, NULL, 0);
        xxh3_finish(h, is);
        cr_assert_arr_eq(is, once, sizeof is, "by %zu", step);
    }
    bytes[BYTES / 2] ^= 1;
    xxh3_once(bytes, BYTES, is);
    cr_assert_neq(memcmp(is, once, sizeof is), 0);
    xxh3_free(xxh3_open());
    xxh3_free(NULL);
    free(bytes);
}
