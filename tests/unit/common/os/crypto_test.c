#include "common/os/crypto.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/base/str.h"
#include "common/os/sha256_many.h"

/* FIPS 180-2, appendix B.1, and RFC 4231, test case 2. */
Test(crypto, gives_the_published_answers)
{
    uint8_t hash[RM_HASH_BYTES];
    char text[RM_HASH_HEX];
    sha256_once("abc", 3, hash);
    hex_encode(hash, sizeof hash, text);
    cr_assert_str_eq(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const char *said = "what do ya want for nothing?";
    hmac_sha256("Jefe", 4, said, strlen(said), hash);
    hex_encode(hash, sizeof hash, text);
    cr_assert_str_eq(text, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

Test(crypto, a_hash_in_pieces_is_the_hash_of_the_whole)
{
    uint8_t whole[RM_HASH_BYTES], pieces[RM_HASH_BYTES];
    sha256_once("hello world", 11, whole);
    struct sha256 *h = sha256_open();
    sha256_add(h, "hello ", 6);
    sha256_add(h, "", 0);
    sha256_add(h, "world", 5);
    sha256_finish(h, pieces);
    cr_assert(crypto_equal(whole, pieces, sizeof whole));
    pieces[31] ^= 1;
    cr_assert(!crypto_equal(whole, pieces, sizeof whole));
}

/* Around the borders of blocks and paddings, also where one of two ends long before the other. */
Test(crypto, texts_hashed_side_by_side_have_the_hashes_that_they_have_alone)
{
    static const size_t sizes[] = {0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 129, 1000, 4096, 70001};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    static uint8_t bytes[2][70001];
    uint8_t alone[2][RM_HASH_BYTES], beside[2][RM_HASH_BYTES];
    crypto_random(bytes, sizeof bytes);
    for (int i = 0; i < SIZES * SIZES; i++) {
        struct sha256_text text[2] = {{bytes[0], sizes[i / SIZES], alone[0]},
                                      {bytes[1], sizes[i % SIZES], alone[1]}};
        sha256_one_by_one(text, 2);
        text[0].hash = beside[0];
        text[1].hash = beside[1];
        sha256_many(text, 2);
        cr_assert_arr_eq(alone, beside, sizeof alone, "%zu and %zu bytes", text[0].count, text[1].count);
    }
}

Test(crypto, an_odd_number_of_texts_is_hashed_as_well)
{
    uint8_t hash[3][RM_HASH_BYTES], abc[RM_HASH_BYTES];
    struct sha256_text text[3] = {{"x", 1, hash[0]}, {"yz", 2, hash[1]}, {"abc", 3, hash[2]}};
    sha256_many(text, 3);
    sha256_once("abc", 3, abc);
    cr_assert_arr_eq(hash[2], abc, sizeof abc);
    sha256_many(text, 0);
}

Test(crypto, random_bytes_differ)
{
    uint8_t a[16], b[16];
    crypto_random(a, sizeof a);
    crypto_random(b, sizeof b);
    cr_assert_neq(memcmp(a, b, sizeof a), 0);
}
