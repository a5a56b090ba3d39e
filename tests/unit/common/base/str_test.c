#include "common/base/str.h"

#include <criterion/criterion.h>
#include <string.h>

Test(str, grows_as_it_is_written_to)
{
    struct str s = str_init(1 << 16);
    for (int i = 0; i < 1000; i++)
        str_addf(&s, "%d,", i);
    cr_assert(!s.truncated);
    cr_assert_eq(s.length, strlen(str_text(&s)));
    cr_assert_eq(strncmp(str_text(&s), "0,1,2,", 6), 0);
    str_clear(&s);
    cr_assert_str_eq(str_text(&s), "");
}

Test(str, keeps_what_fits_below_its_ceiling_and_says_so)
{
    struct str s = str_init(8);
    str_adds(&s, "12345");
    str_addf(&s, "%s", "67890");
    cr_assert(s.truncated);
    cr_assert_str_eq(str_text(&s), "12345678");
    str_adds(&s, "more");
    cr_assert_str_eq(str_text(&s), "12345678");
    str_clear(&s);
}

Test(hex, comes_back_as_it_was_and_refuses_the_rest)
{
    const unsigned char bytes[] = {0, 1, 0xab, 0xff};
    char text[9];
    unsigned char back[4];
    hex_encode(bytes, sizeof bytes, text);
    cr_assert_str_eq(text, "0001abff");
    cr_assert(hex_decode("0001ABff", back, 4));
    cr_assert_eq(memcmp(bytes, back, 4), 0);
    cr_assert(!hex_decode("0001abf", back, 4));
    cr_assert(!hex_decode("0001abfg", back, 4));
    cr_assert(!hex_decode("0001abff00", back, 4));
}

Test(text_copy, tells_when_it_had_to_cut)
{
    char out[4];
    cr_assert(text_copy(out, sizeof out, "abc"));
    cr_assert(!text_copy(out, sizeof out, "abcd"));
    cr_assert_str_eq(out, "abc");
}
