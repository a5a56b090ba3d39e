/* Sentences that come again and again. */
#include "common/notice/repeats.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const rm_time minute = 60 * RM_S, hour = 3600 * RM_S;

static bool says(struct repeats *r, const char *sentence, rm_time now, int64_t more)
{
    int64_t told;
    bool said = repeats_say(r, sentence, now, &told);
    cr_assert_eq(told, more, "%s: %lld were not said", sentence, (long long)told);
    return said;
}

Test(repeats, one_sentence_is_said_at_once_then_ever_more_rarely_with_how_often_it_was_not)
{
    struct repeats r = {0};
    int said = 0;
    cr_assert(says(&r, "status 500", 0, 0));
    cr_assert_not(says(&r, "status 503", 30 * RM_S, 0), "another number is another sentence");
    cr_assert(says(&r, "status 500", minute, 1));
    cr_assert_not(says(&r, "status 500", 2 * minute, 0));
    cr_assert(says(&r, "status 500", 3 * minute, 1));
    for (rm_time now = 4 * minute; now < 24 * hour; now += minute) {
        int64_t more;
        said += repeats_say(&r, "status 500", now, &more);
    }
    cr_assert_leq(said, 28);
    cr_assert_geq(said, 23, "each hour, while it comes");
}

Test(repeats, what_has_not_come_for_an_hour_is_said_at_once)
{
    struct repeats r = {0};
    cr_assert(says(&r, "silence", 0, 0));
    cr_assert(says(&r, "silence", hour, 0));
    cr_assert(says(&r, "silence", hour + minute, 0));
}

Test(repeats, another_sentence_is_said_at_once_and_of_ever_new_ones_a_few_an_hour)
{
    struct repeats r = {0};
    char sentence[8] = "new a";
    int said = 0;
    for (int i = 0; i < 26; i++) {
        int64_t more;
        sentence[4] = (char)('a' + i);
        said += repeats_say(&r, sentence, i * RM_S, &more);
    }
    cr_assert_eq(said, REPEATS_KINDS);
    cr_assert(says(&r, "yet another", 2 * hour, 26 - REPEATS_KINDS), "how many there were is told");
}

Test(repeats, a_buffers_sentence_has_the_number_behind_it_or_is_empty)
{
    struct repeats r = {0};
    char line[40] = "silence", none[8] = "";
    repeats_thin(&r, 0, none, sizeof none);
    repeats_thin(&r, 0, line, sizeof line);
    cr_assert_str_eq(line, "silence");
    repeats_thin(&r, 1, line, sizeof line);
    cr_assert_str_eq(line, "");
    snprintf(line, sizeof line, "silence");
    repeats_thin(&r, minute, line, sizeof line);
    cr_assert_str_eq(line, "silence (1 more were not said)");
    char tight[10] = "silence";
    r.kind[0].more = 5;
    repeats_thin(&r, hour - 1, tight, sizeof tight);
    cr_assert_eq(strlen(tight), sizeof tight - 1, "cut, and whole");
}
