/* Who had no answer for too long stands still, and goes on with the next one. */
#include "agent/core/fence.h"

#include <criterion/criterion.h>

enum word { HEARS, WAITS }; /* an answer; time alone */

Test(fence, what_is_held_when)
{
    static const struct {
        rm_time at;
        enum word word;
        bool told, holds; /* what the call says; how it is then */
        rm_time deadline;
    } rows[] = {
        {0, WAITS, false, false, 10 * RM_S},
        {9 * RM_S, WAITS, false, false, 10 * RM_S},
        {9 * RM_S, HEARS, false, false, 19 * RM_S},
        {10 * RM_S, WAITS, false, false, 19 * RM_S},
        {19 * RM_S, WAITS, true, true, RM_NEVER},
        {25 * RM_S, WAITS, false, true, RM_NEVER}, /* told once */
        {90 * RM_S, HEARS, true, false, 100 * RM_S},
        {91 * RM_S, HEARS, false, false, 101 * RM_S},
        {999 * RM_S, WAITS, true, true, RM_NEVER}, /* this machine stood still itself: who knows what was
                                                      missed */
        {999 * RM_S, HEARS, true, false, 1009 * RM_S},
    };
    struct fence fence;
    fence_init(&fence, 10 * RM_S, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool told = rows[i].word == HEARS ? fence_hear(&fence, rows[i].at) : fence_is_due(&fence, rows[i].at);
        cr_assert_eq(told, rows[i].told, "row %zu", i);
        cr_assert_eq(fence.holds, rows[i].holds, "row %zu", i);
        cr_assert_eq(fence_deadline(&fence), rows[i].deadline, "row %zu", i);
    }
}

Test(fence, nobody_is_held_where_that_is_not_the_job_s_way)
{
    struct fence fence;
    fence_init(&fence, 0, 0);
    cr_assert(!fence_is_due(&fence, 1000 * RM_S) && !fence_hear(&fence, 1000 * RM_S));
    cr_assert_eq(fence_deadline(&fence), RM_NEVER);
}

Test(fence, a_time_that_never_comes_is_no_time)
{
    struct fence fence;
    fence_init(&fence, RM_NEVER, 5);
    cr_assert_eq(fence_deadline(&fence), RM_NEVER);
    cr_assert_not(fence_is_due(&fence, RM_NEVER - 1));
}
