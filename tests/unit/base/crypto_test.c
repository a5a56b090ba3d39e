#include "common/os/crypto.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/base/str.h"

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

Test(crypto, random_bytes_differ)
{
    uint8_t a[16], b[16];
    crypto_random(a, sizeof a);
    crypto_random(b, sizeof b);
    cr_assert_neq(memcmp(a, b, sizeof a), 0);
}
