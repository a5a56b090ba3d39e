/* Words that are nearly right. */
#include "common/base/near.h"

#include <criterion/criterion.h>

Test(near, a_letter_more_less_or_other_is_one)
{
    cr_assert_eq(near_distance("list", "list"), 0);
    cr_assert_eq(near_distance("lst", "list"), 1);
    cr_assert_eq(near_distance("lists", "list"), 1);
    cr_assert_eq(near_distance("lost", "list"), 1);
    cr_assert_eq(near_distance("", "list"), 4);
    cr_assert_eq(near_distance("overwirte", "overwrite"), 2);
}

Test(near, what_is_too_long_is_near_to_nothing)
{
    const char *longest = "0123456789012345678901234567890123456789",
               *longer = "01234567890123456789012345678901234567890";
    cr_assert_eq(near_distance(longest, longest), 0);
    cr_assert_eq(near_distance(longer, longer), NEAR_LONGEST);
    cr_assert_eq(near_distance("a", longer), NEAR_LONGEST);
}

Test(near, half_of_a_word_may_be_wrong)
{
    cr_assert_eq(near_enough("ab"), 1);
    cr_assert_eq(near_enough("list"), 2);
}
