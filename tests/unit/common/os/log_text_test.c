#include "common/os/log_text.h"

#include <criterion/criterion.h>

#include "common/wire/json.h"

/* The line as a person's tool reads it; the caller frees it. */
static struct js *read_back(const char *message, const char *pairs)
{
    struct error err = {0};
    struct str line = str_init(1 << 14);
    struct log_entry entry = {.wall_ms = 17,
                              .level = "info",
                              .program = "agent 2",
                              .message = message,
                              .pairs = pairs,
                              .worker = 2,
                              .term = 0};
    log_text_json(&entry, &line);
    cr_assert_eq(line.data[line.length - 1], '\n');
    struct js *o = js_parse(str_text(&line), line.length, "the line", &err);
    cr_assert(o, "%s: %s", err.text, str_text(&line));
    str_clear(&line);
    return o;
}

static const char *detail(const struct js *o, const char *key)
{
    const char *text = js_as_string(js_get(o, key));
    return text ? text : "absent";
}

Test(log_text, a_line_says_who_and_when_and_what)
{
    int64_t number = 0;
    struct js *o = read_back("ring formed", "generation=3 why=\"worker 1 left\"");
    cr_assert_str_eq(js_as_string(js_get(o, "program")), "agent 2");
    cr_assert_str_eq(js_as_string(js_get(o, "level")), "info");
    cr_assert_str_eq(js_as_string(js_get(o, "message")), "ring formed");
    cr_assert(js_as_int(js_get(o, "time"), &number) && number == 17);
    cr_assert(js_as_int(js_get(o, "worker"), &number) && number == 2);
    cr_assert_null(js_get(o, "term"), "it was not said");
    cr_assert_str_eq(detail(o, "generation"), "3");
    cr_assert_str_eq(detail(o, "why"), "worker 1 left");
    js_free(o);
}

Test(log_text, quotes_and_control_characters_inside_a_value_do_no_harm)
{
    struct js *o = read_back("refused", "why=\"the name \"x\" is\n\tno\\name\" code=4");
    cr_assert_str_eq(detail(o, "why"), "the name \"x\" is\n\tno\\name");
    cr_assert_str_eq(detail(o, "code"), "4");
    js_free(o);
}

Test(log_text, what_is_cut_or_no_pair_at_all_is_kept)
{
    struct js *o = read_back("odd", "why=\"cut in the mid");
    cr_assert_str_eq(detail(o, "why"), "cut in the mid");
    js_free(o);
    o = read_back("odd", "just words");
    cr_assert_str_eq(detail(o, "text"), "just words");
    js_free(o);
    o = read_back("odd", "");
    cr_assert_eq(js_size(o), 5);
    js_free(o);
}

Test(log_text, a_pair_does_not_take_the_place_of_what_each_line_says)
{
    int64_t number = 0;
    struct js *o = read_back("refused", "worker=7 message=\"other\"");
    cr_assert(js_as_int(js_get(o, "worker"), &number) && number == 2);
    cr_assert_str_eq(detail(o, "worker_"), "7");
    cr_assert_str_eq(detail(o, "message_"), "other");
    js_free(o);
}
