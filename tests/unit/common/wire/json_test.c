#include "common/wire/json.h"

#include <criterion/criterion.h>
#include <string.h>

static struct js *parse(const char *text, struct error *err)
{
    return js_parse(text, strlen(text), "x.json", err);
}

Test(json, what_is_wrong_is_told_with_line_and_column)
{
    struct error err = {0};
    cr_assert_null(parse("{\"a\": 1,\n \"b\": }", &err));
    cr_assert_eq(strncmp(err.text, "x.json:2:", 9), 0, "%s", err.text);
    cr_assert_null(parse("{\"a\": 1, \"a\": 2}", &err));
    cr_assert_null(parse("{} {}", &err));
}

Test(json, a_member_of_the_wrong_kind_or_size_is_refused_by_name)
{
    struct error err = {0};
    struct js *v = parse("{\"n\": \"three\", \"m\": 12, \"long\": \"abcdef\"}", &err);
    int64_t n;
    char small[4];
    cr_assert_eq(js_need_int(v, "n", 0, 9, &n, &err), -1);
    cr_assert_str_eq(err.text, "n is a string, not a whole number");
    cr_assert_eq(js_need_int(v, "m", 0, 9, &n, &err), -1);
    cr_assert_str_eq(err.text, "m is 12, outside 0 to 9");
    cr_assert_eq(js_need_int(v, "k", 0, 9, &n, &err), -1);
    cr_assert_str_eq(err.text, "k is missing");
    cr_assert_eq(js_need_string(v, "long", small, sizeof small, &err), -1);
    cr_assert_str_eq(err.text, "long is longer than 3 bytes");
    js_free(v);
}

Test(json, canonical_text_is_the_same_for_the_same_meaning)
{
    struct js *a = parse("{\"b\": [1, 2.5], \"a\": null}", NULL);
    struct js *b = parse("{\"a\":null,\n\"b\":[1,2.5]}", NULL);
    struct str x = str_init(100), y = str_init(100);
    js_print_canonical(a, &x);
    js_print_canonical(b, &y);
    cr_assert_str_eq(str_text(&x), "{\"a\":null,\"b\":[1,2.5]}");
    cr_assert_str_eq(str_text(&x), str_text(&y));
    str_clear(&x);
    str_clear(&y);
    js_free(a);
    js_free(b);
}

Test(json, a_real_number_comes_back_bit_for_bit)
{
    const double values[] = {0.1, 6e-4, 1.0 / 3, 1e-300, 123456789.123456789};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct js *o = js_object();
        struct str s = str_init(100);
        js_set_real(o, "x", values[i]);
        js_print(o, &s);
        struct js *back = parse(str_text(&s), NULL);
        double x = 0;
        cr_assert_eq(js_need_real(back, "x", &x, NULL), 0);
        cr_assert_eq(memcmp(&x, &values[i], sizeof x), 0);
        js_free(o);
        js_free(back);
        str_clear(&s);
    }
}

Test(json, bytes_that_are_no_utf8_become_question_marks)
{
    struct js *v = js_new_string("caf\xe9");
    cr_assert_str_eq(js_as_string(v), "caf?");
    js_free(v);
}

Test(json, what_strangers_wrote_is_read_in_spite_of_nuls_and_doubles)
{
    struct error err = {0};
    char text[] = "{\"a\":\"x\\u0000y\",\"b\\u0000\":1,\"b\\ufffd\":2,\"c\":\"\\\\u0000\"}";
    cr_assert_null(parse(text, &err));
    struct js *v = js_parse_foreign(text, strlen(text), "x.json", &err);
    int64_t b = 0;
    cr_assert_not_null(v, "%s", err.text);
    cr_expect_str_eq(js_as_string(js_get(v, "a")), "x\xef\xbf\xbdy");
    cr_expect(js_as_int(js_get(v, "b\xef\xbf\xbd"), &b) && b == 2, "the last one counts");
    cr_expect_str_eq(js_as_string(js_get(v, "c")), "\\u0000", "a backslash that is itself escaped");
    js_free(v);
}
