#include "common/base/time.h"

#include <criterion/criterion.h>

Test(time, a_sum_of_what_others_say_ends_at_never)
{
    cr_assert_eq(rm_sum(2, 3), 5);
    cr_assert_eq(rm_sum(0, RM_NEVER - 1), RM_NEVER - 1);
    cr_assert_eq(rm_sum(RM_NEVER - 1, 1), RM_NEVER);
    cr_assert_eq(rm_sum(RM_NEVER, RM_NEVER), RM_NEVER);
}
