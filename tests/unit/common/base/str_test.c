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

static bool is_utf8(const char *text)
{
    for (size_t left = 0; *text || left; text++) {
        unsigned char c = (unsigned char)*text;
        bool inside = (c & 0xc0) == 0x80;
        if (inside != (left > 0))
            return false;
        left = inside ? left - 1 : c < 0x80 ? 0 : c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
    }
    return true;
}

Test(text_copy_ends, keeps_thing_and_cause_and_cuts_no_character_in_two)
{
    static const char *const pieces[] = {"a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x99\x82"};
    char out[64], same[64], text[101];
    struct str long_one = str_init(512);
    cr_assert_str_eq(text_copy_ends(out, sizeof out, "short"), "short");
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        for (size_t size = 32; size <= sizeof out; size++)
            for (size_t extra = 0; extra < 8; extra++) {
                str_reset(&long_one);
                str_addf(&long_one, "data /d:%.*s ", (int)extra, "xxxxxxxx");
                while (long_one.length < 200)
                    str_adds(&long_one, pieces[i]);
                str_adds(&long_one, ": disk full");
                text_copy_ends(out, size, str_text(&long_one));
                cr_assert_leq(strlen(out), size - 1);
                cr_assert_geq(strlen(out), size - 1 - 6, "of room for %zu %zu are used", size, strlen(out));
                cr_assert(is_utf8(out), "%s", out);
                cr_assert(!strncmp(out, "data /d:", 8) && strstr(out, " ... "), "%s", out);
                cr_assert_str_eq(out + strlen(out) - 11, ": disk full");
            }
    memset(same, 'x', sizeof same);
    same[sizeof same - 1] = 0;
    cr_assert_str_eq(text_copy_ends(out, sizeof out, same), same, "what just fits stays");
    str_clear(&long_one);
    memset(text, 0xbf, 100);
    text[100] = 0;
    cr_assert_leq(strlen(text_copy_ends(out, sizeof out, text)), sizeof out - 1, "bytes that are no text");
}
