#include "trainer/tokens/words.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* The words with a bar between them. */
static void cut(const char *text, char *out, size_t room)
{
    size_t length = strlen(text);
    *out = '\0';
    for (size_t at = 0; at < length;) {
        size_t end = word_end(text, length, at), used = strlen(out);
        cr_assert(end > at && end <= length, "a word of %zu to %zu", at, end);
        snprintf(out + used, room - used, "%s%.*s", at ? "|" : "", (int)(end - at), text + at);
        at = end;
    }
}

Test(words, text_is_cut_as_the_expression_says)
{
    static const char *const cases[][2] = {
        {"the ring", "the| ring"},
        {"it's isn't we're I'll I'd I've I'm", "it|'s| isn|'t| we|'re| I|'ll| I|'d| I|'ve| I|'m"},
        {"IT'S 'so' ''s", "IT|'|S| '|so|'| ''|s"},
        {"a  b", "a| | b"},
        {"a   b", "a|  | b"},
        {"a \n b", "a| \n| b"},
        {"a\nb\n\n", "a|\n|b|\n\n"},
        {"a ", "a| "},
        {" ", " "},
        {"a\tb", "a|\t|b"},
        {"12345th x1 ½Ⅷ", "12345|th| x|1| ½Ⅷ"},
        {"... !?x", "...| !?|x"},
        {"naïve 東京、2024年", "naïve| 東京|、|2024|年"},
        {"🙂‍🚀 ok", "🙂‍🚀| ok"},
        {"x\u00a0y\u3000\u3000z", "x|\u00a0|y|\u3000|\u3000|z"},
        {"e\u0301té", "e|\u0301|té"},
        {"\xff\xfe a\xe6\x9d", "\xff\xfe| a|\xe6\x9d"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[256];
        cut(cases[i][0], out, sizeof out);
        cr_expect_str_eq(out, cases[i][1], "%s", cases[i][0]);
    }
}
