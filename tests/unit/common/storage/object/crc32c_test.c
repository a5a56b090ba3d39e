#include "common/storage/object/crc32c.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/base/prng.h"

/* The check value of the CRC catalogue (CRC-32/ISCSI) and the vectors of RFC 3720, B.4. */
Test(crc32c, published_values_come_out_both_ways)
{
    uint8_t zeros[32] = {0}, ones[32], up[32];
    memset(ones, 0xff, sizeof ones);
    for (int i = 0; i < 32; i++)
        up[i] = (uint8_t)i;
    uint32_t (*const kernel[])(uint32_t, const void *, size_t) = {crc32c, crc32c_by_table};
    for (int k = 0; k < 2; k++) {
        cr_assert_eq(kernel[k](0, "123456789", 9), 0xe3069283u);
        cr_assert_eq(kernel[k](0, zeros, 32), 0x8a9136aau);
        cr_assert_eq(kernel[k](0, ones, 32), 0x62a8ab43u);
        cr_assert_eq(kernel[k](0, up, 32), 0x46dd794eu);
        cr_assert_eq(kernel[k](0, "", 0), 0);
    }
}

Test(crc32c, instruction_and_table_agree_on_every_length_and_alignment)
{
    uint8_t bytes[300];
    uint64_t seed = 7;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)splitmix64(&seed);
    for (size_t from = 0; from < 9; from++)
        for (size_t count = 0; from + count <= sizeof bytes; count++)
            cr_assert_eq(crc32c(0, bytes + from, count), crc32c_by_table(0, bytes + from, count));
}

Test(crc32c, pieces_give_the_sum_of_the_whole)
{
    const char text[] = "one piece behind the other";
    uint32_t whole = crc32c(0, text, sizeof text);
    for (size_t cut = 0; cut <= sizeof text; cut++)
        cr_assert_eq(crc32c(crc32c(0, text, cut), text + cut, sizeof text - cut), whole);
}
