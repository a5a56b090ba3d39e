/* Whose the lanes of a step are, by shares. */
#include "common/base/lane_shares.h"

#include <criterion/criterion.h>

Test(lane_shares, even_ones_differ_by_a_lane_at_most_and_have_each_lane_once)
{
    for (int world = 1; world <= 8; world++) {
        for (int lanes = 1; lanes <= 40; lanes++) {
            struct lane_shares s;
            shares_even(&s, lanes, world);
            cr_assert_eq(shares_lanes(&s), lanes);
            cr_assert(shares_are_even(&s), "%d lanes for %d", lanes, world);
            cr_assert_eq(shares_most(&s), (lanes + world - 1) / world);
            for (int lane = 0; lane < lanes; lane++) {
                struct lane_run run = shares_run(&s, shares_owner(&s, lane));
                cr_assert(lane >= run.first && lane < run.first + run.count, "lane %d", lane);
            }
        }
    }
}

Test(lane_shares, of_whatever_lengths_each_lane_has_one_owner)
{
    struct lane_shares s = {.world = 4, .count = {3, 0, 7, 1}};
    const int owners[] = {0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 3};
    cr_assert_eq(shares_lanes(&s), 11);
    cr_assert_eq(shares_most(&s), 7);
    cr_assert_not(shares_are_even(&s));
    for (int lane = 0; lane < 11; lane++)
        cr_assert_eq(shares_owner(&s, lane), owners[lane], "lane %d", lane);
    cr_assert_eq(shares_owner(&s, 11), -1);
    cr_assert_eq(shares_owner(&s, -1), -1);
    cr_assert_eq(shares_run(&s, 1).count, 0);
    cr_assert_eq(shares_run(&s, 2).first, 3);
}
