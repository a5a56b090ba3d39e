/* Words that are nearly right. */
#include "common/base/near.h"

#include <criterion/criterion.h>
#include <string.h>

Test(near, a_letter_more_less_other_or_swapped_is_one)
{
    cr_assert_eq(near_distance("list", "list"), 0);
    cr_assert_eq(near_distance("lst", "list"), 1);
    cr_assert_eq(near_distance("lists", "list"), 1);
    cr_assert_eq(near_distance("lost", "list"), 1);
    cr_assert_eq(near_distance("lits", "list"), 1);
    cr_assert_eq(near_distance("", "list"), 4);
    cr_assert_eq(near_distance("list", ""), 4);
    cr_assert_eq(near_distance("overwirte", "overwrite"), 1);
    cr_assert_eq(near_distance("voerwirt", "overwrite"), 3);
}

Test(near, capital_letters_do_not_count)
{
    cr_assert_eq(near_distance("JSON", "json"), 0);
    cr_assert_eq(near_distance("elastci", "Elastic"), 1);
}

Test(near, what_is_too_long_is_near_to_nothing)
{
    const char *longest = "0123456789012345678901234567890123456789",
               *longer = "01234567890123456789012345678901234567890";
    char huge[400];
    cr_assert_eq(near_distance(longest, longest), 0);
    cr_assert_eq(near_distance(longer, longer), NEAR_LONGEST);
    cr_assert_eq(near_distance("a", longer), NEAR_LONGEST);
    memset(huge, 'x', sizeof huge - 1);
    huge[sizeof huge - 1] = 0;
    struct near near = near_to(huge);
    near_try(&near, "list", 4);
    cr_assert_str_eq(near.question, "");
    near = near_to(longest);
    near_try(&near, longer, strlen(longer));
    cr_assert_str_eq(near.question, "", "a known word that is longer is none");
    near_try(&near, longest, strlen(longest));
    cr_assert_str_eq(near.best, longest);
    cr_assert_str_eq(near.question, "; did you mean 0123456789012345678901234567890123456789?");
}

static const char *guess(const char *word, const char *const *known)
{
    static struct near near;
    near = near_to(word);
    for (; *known; known++)
        near_try(&near, *known, strlen(*known));
    return near.best;
}

Test(near, the_nearest_word_is_guessed_and_a_third_of_it_may_be_wrong)
{
    const char *const shells[] = {"bash", "zsh", "fish", NULL}, *const modes[] = {"Restart", "Elastic", NULL};
    cr_assert_str_eq(guess("zhs", shells), "zsh");
    cr_assert_str_eq(guess("Fihs", shells), "fish");
    cr_assert_str_eq(guess("tcsh", shells), "");
    cr_assert_str_eq(guess("", shells), "");
    cr_assert_str_eq(guess("elastic", modes), "Elastic");
    cr_assert_str_eq(guess("Restrat", modes), "Restart");
    cr_assert_str_eq(guess("Resetrat", modes), "Restart");
    cr_assert_str_eq(guess("Command", modes), "");
}

Test(near, the_beginning_of_a_word_is_near_to_it)
{
    const char *const isas[] = {"AVX2", "AVX512_CORE", "AVX512_CORE_AMX", NULL};
    cr_assert_str_eq(guess("AVX512", isas), "AVX512_CORE");
    cr_assert_str_eq(guess("avx2", isas), "AVX2", "nearer than any beginning");
    cr_assert_str_eq(guess("AV", isas), "", "two letters are no beginning");
}

Test(near, as_many_letters_count_as_are_said_and_what_stands_before_is_shown)
{
    struct near near = near_to("overwirte");
    near.before = "--";
    near_try(&near, "overwrite all", strlen("overwrite"));
    cr_assert_str_eq(near.question, "; did you mean --overwrite?");
    near_try(&near, "overwirt", 8);
    cr_assert_str_eq(near.best, "overwrite", "of two that are as near the first one");
}
