#include "trainer/tokens/text_out.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *text_of(const char *bytes)
{
    static char kept[256];
    struct text_out t = {0};
    struct str out = str_init(256);
    for (const char *p = bytes; *p; p++)
        text_out_add(&t, (unsigned char)*p, &out);
    text_out_end(&t, &out);
    text_copy(kept, sizeof kept, str_text(&out));
    str_clear(&out);
    return kept;
}

Test(text_out, whole_characters_go_through_as_they_are)
{
    cr_assert_str_eq(text_of("a\tz\n"), "a\tz\n");
    cr_assert_str_eq(text_of("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"),
                     "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80");
}

Test(text_out, what_is_no_character_becomes_one_that_says_so)
{
    cr_assert_str_eq(text_of("\xFF!"), "\xEF\xBF\xBD!");
    cr_assert_str_eq(text_of("\x80"), "\xEF\xBF\xBD");
    cr_assert_str_eq(text_of("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD");
    cr_assert_str_eq(text_of("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

Test(text_out, a_character_cut_short_does_not_swallow_the_next)
{
    cr_assert_str_eq(text_of("\xE2\x82x"), "\xEF\xBF\xBDx");
    cr_assert_str_eq(text_of("\xE2\xC3\xA9"), "\xEF\xBF\xBD\xC3\xA9");
    cr_assert_str_eq(text_of("ab\xF0\x9F"), "ab\xEF\xBF\xBD");
}

Test(text_out, control_characters_do_not_reach_the_terminal)
{
    cr_assert_str_eq(text_of("\x1B[2Ja\rb\x7F"), "[2Jab");
}
