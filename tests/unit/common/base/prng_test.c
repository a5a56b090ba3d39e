#include "common/base/prng.h"

#include <criterion/criterion.h>

/* The known answers that come with the authors' Random123 library (kat_vectors, philox4x32 10). */
Test(philox, gives_the_published_answers)
{
    struct philox_block zero = philox4x32(0, 0, 0);
    cr_assert_eq(zero.word[0], 0x6627e8d5u);
    cr_assert_eq(zero.word[1], 0xe169c58du);
    cr_assert_eq(zero.word[2], 0xbc57ac4cu);
    cr_assert_eq(zero.word[3], 0x9b00dbd8u);
    struct philox_block ones = philox4x32(UINT64_MAX, UINT64_MAX, UINT64_MAX);
    cr_assert_eq(ones.word[0], 0x408f276du);
    cr_assert_eq(ones.word[1], 0x41c83b0eu);
    cr_assert_eq(ones.word[2], 0xa20bc7c6u);
    cr_assert_eq(ones.word[3], 0x6d5451fdu);
}

Test(splitmix, gives_the_published_answers)
{
    uint64_t state = 1234567;
    cr_assert_eq(splitmix64(&state), 6457827717110365317u);
    cr_assert_eq(splitmix64(&state), 3203168211198807973u);
}

Test(prng_below, reaches_every_value_and_no_other)
{
    uint64_t state = 7;
    int seen[5] = {0};
    for (int i = 0; i < 5000; i++)
        seen[prng_below(&state, 5)]++;
    for (int i = 0; i < 5; i++)
        cr_expect(seen[i] > 800 && seen[i] < 1200, "%d came %d times", i, seen[i]);
}
