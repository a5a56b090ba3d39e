#include "common/base/base64.h"

#include <criterion/criterion.h>
#include <string.h>

static bool decodes_to(const char *text, const char *bytes, size_t length)
{
    struct str out = str_init(1000);
    bool right = base64_decode(text, &out) && out.length == length && !memcmp(str_text(&out), bytes, length);
    str_clear(&out);
    return right;
}

Test(base64, knows_the_examples_of_its_standard)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct str out = str_init(100);
        base64_encode(pairs[i][0], strlen(pairs[i][0]), &out);
        cr_expect_str_eq(str_text(&out), pairs[i][1]);
        cr_expect(decodes_to(pairs[i][1], pairs[i][0], strlen(pairs[i][0])), "%s", pairs[i][1]);
        str_clear(&out);
    }
}

Test(base64, keeps_every_byte_and_skips_line_breaks)
{
    char all[256];
    struct str text = str_init(1000), broken = str_init(1000);
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    base64_encode(all, sizeof all, &text);
    for (size_t i = 0; i < text.length; i++)
        str_addf(&broken, i % 64 == 63 ? "%c\r\n" : "%c", text.data[i]);
    cr_assert(decodes_to(str_text(&broken), all, sizeof all));
    str_clear(&text);
    str_clear(&broken);
}

Test(base64, refuses_what_is_none)
{
    static const char *const wrong[] = {"Zg=", "Zg", "Z", "Zg==Zg==", "Zm9-", "=", "Z===", "Zm=v", "Zm9v!"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct str out = str_init(100);
        cr_expect_not(base64_decode(wrong[i], &out), "%s", wrong[i]);
        str_clear(&out);
    }
}
