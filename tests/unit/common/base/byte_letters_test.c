#include "common/base/byte_letters.h"

#include <criterion/criterion.h>
#include <string.h>

Test(byte_letters, each_byte_has_a_letter_of_its_own_that_stands_for_it_alone)
{
    char seen[256][BYTE_LETTER_MAX];
    for (int byte = 0; byte < 256; byte++) {
        size_t length = 0;
        byte_letter((uint8_t)byte, seen[byte]);
        cr_assert_eq(byte_of_letter(seen[byte], &length), byte, "%d", byte);
        cr_assert_eq(length, strlen(seen[byte]));
        for (int other = 0; other < byte; other++)
            cr_assert_str_neq(seen[other], seen[byte]);
    }
}

Test(byte_letters, they_are_the_ones_of_gpt_2)
{
    static const struct {
        int byte;
        const char *letter;
    } known[] = {{' ', "Ġ"}, {'\n', "Ċ"}, {'\t', "ĉ"}, {0, "Ā"},    {'a', "a"},
                 {'~', "~"}, {0x7F, "ġ"}, {0xA0, "ł"}, {0xAD, "Ń"}, {0xFF, "ÿ"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char letter[BYTE_LETTER_MAX];
        byte_letter((uint8_t)known[i].byte, letter);
        cr_expect_str_eq(letter, known[i].letter);
    }
}

Test(byte_letters, other_letters_and_torn_ones_stand_for_no_byte)
{
    static const char *const texts[] = {" ", "\n", "\x7F", "",     "\xC2\xA0", "\xC2\xAD", "ń",
                                        "ŭ", "東", "🙂", "\xC4", "\xC4z",    "\x80",     "\xFF"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t length;
        int byte = byte_of_letter(texts[i], &length);
        cr_expect_eq(byte, -1, "%zu: %d", i, byte);
    }
}
