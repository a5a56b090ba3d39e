/* Assertions are in every build: what they say, and that the process ends. */
#include "common/base/assert.h"

#include <criterion/criterion.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static char heard[1024];
static jmp_buf back;

static void hear(const char *sentence)
{
    snprintf(heard, sizeof heard, "%s", sentence);
    longjmp(back, 1);
}

static int members(int world, int most)
{
    RM_ASSERT(world <= most, "a ring of %d, the job takes %d", world, most);
    return world;
}

Test(assert, what_holds_costs_nothing_and_says_nothing)
{
    assertion_hook = hear;
    cr_assert_eq(members(3, 4), 3);
    cr_assert_str_eq(heard, "");
}

Test(assert, what_does_not_hold_is_told_with_its_place_and_its_values)
{
    assertion_hook = hear;
    if (!setjmp(back))
        members(5, 4);
    cr_assert(strstr(heard, "tests/unit/common/base/assert_test.c:"), "%s", heard);
    cr_assert(strstr(heard, "world <= most (a ring of 5, the job takes 4)"), "%s", heard);
}

Test(assert, and_the_process_ends_also_where_nobody_listens, .signal = SIGABRT)
{
    members(5, 4);
}
