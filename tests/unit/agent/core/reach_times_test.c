/* When a try to reach the coordinator is given up, and for what it is given more time. */
#include "agent/core/reach.h"

#include <criterion/criterion.h>

Test(reach_times, an_address_where_nobody_is_has_a_second_and_a_coordinator_that_says_nothing_all_of_it)
{
    struct reach reach;
    reach_begin(&reach, 100 * RM_S, 10 * RM_S);
    cr_assert_eq(reach.look, 101 * RM_S);
    cr_assert_eq(reach_look(&reach, false, reach.look), REACH_NOBODY);
    cr_assert_eq(reach_look(&reach, true, reach.look), REACH_WAIT);
    cr_assert_eq(reach.look, 110 * RM_S);
    cr_assert_eq(reach_look(&reach, true, reach.look), REACH_SILENT);
}

Test(reach_times, who_was_held_up_looks_once_more_and_finds_what_had_come_meanwhile)
{
    struct reach reach;
    reach_begin(&reach, 0, 10 * RM_S);
    cr_assert_eq(reach_look(&reach, false, 1700 * RM_MS), REACH_WAIT);
    cr_assert_eq(reach.look, 2700 * RM_MS);
    cr_assert_eq(reach_look(&reach, true, 2700 * RM_MS), REACH_WAIT);
    cr_assert_eq(reach.look, 10 * RM_S);
}

Test(reach_times, it_looks_once_more_also_where_all_of_the_time_was_spent_standing_still)
{
    struct reach reach;
    reach_begin(&reach, 0, 10 * RM_S);
    cr_assert_eq(reach_look(&reach, false, 60 * RM_S), REACH_WAIT);
    cr_assert_eq(reach_look(&reach, true, 61 * RM_S), REACH_SILENT); /* it had that second to greet in */
    reach_begin(&reach, 0, 10 * RM_S);
    cr_assert_eq(reach_look(&reach, true, RM_S), REACH_WAIT);
    cr_assert_eq(reach_look(&reach, true, 11 * RM_S), REACH_WAIT);
    cr_assert_eq(reach_look(&reach, true, 12 * RM_S), REACH_SILENT);
}

Test(reach_times, a_try_ends_however_often_its_process_is_held_up)
{
    struct reach reach;
    reach_begin(&reach, 0, RM_S / 2);
    cr_assert_eq(reach.look, RM_S / 2);
    cr_assert_eq(reach_look(&reach, false, 2 * RM_S), REACH_WAIT);
    cr_assert_eq(reach_look(&reach, false, 5 * RM_S), REACH_NOBODY);
}

Test(reach_times, a_machine_is_missed_after_the_jobs_lost_after_where_that_says_anything)
{
    static const struct {
        rm_time lost_after, patience;
    } rows[] = {
        {0, RM_S},
        {RM_S / 4, RM_S},
        {5 * RM_S, 5 * RM_S},
        {300 * RM_S, 300 * RM_S},
        {3600 * RM_S, 300 * RM_S},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_assert_eq(reach_patience(rows[i].lost_after), rows[i].patience, "row %zu", i);
}
