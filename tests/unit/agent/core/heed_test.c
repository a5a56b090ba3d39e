#include "agent/core/heed.h"

#include <criterion/criterion.h>

static struct heed heed;
static struct notices notices;
static struct notice will;

static void told(enum notice_source source, enum notice_certainty certainty, rm_time until)
{
    notices_take(&notices, &(struct notice){.source = source,
                                            .cause = NOTICE_CAUSE_RECLAIM,
                                            .certainty = certainty,
                                            .until = until});
}

static bool leaves(rm_time now)
{
    return heed_notices(&heed, &notices, true, now, &will);
}

static rm_time due(rm_time now)
{
    return heed_deadline(&heed, &notices, now);
}

static void arrange(void)
{
    heed_init(&heed);
    notices = (struct notices){.count = 0};
}

Test(heed, a_will_is_a_leave_at_once_and_a_may_is_none, .init = arrange)
{
    cr_assert_not(leaves(RM_S));
    told(NOTICE_AWS_REBALANCE, NOTICE_MAY, RM_NEVER);
    cr_assert_not(leaves(2 * RM_S));
    told(NOTICE_AWS_SPOT, NOTICE_WILL, 122 * RM_S);
    cr_assert(leaves(3 * RM_S));
    cr_assert_eq(will.source, NOTICE_AWS_SPOT);
    cr_assert_eq(will.until, 122 * RM_S);
}

Test(heed, told_again_it_says_nothing_unless_it_is_sooner, .init = arrange)
{
    leaves(RM_S);
    told(NOTICE_AWS_SPOT, NOTICE_WILL, 122 * RM_S);
    cr_assert(leaves(3 * RM_S));
    cr_assert_not(leaves(4 * RM_S));
    told(NOTICE_AWS_SPOT, NOTICE_WILL, 121 * RM_S);
    cr_assert_not(leaves(5 * RM_S), "by whole seconds of a Date alone");
    told(NOTICE_GCE_PREEMPTED, NOTICE_WILL, 40 * RM_S);
    cr_assert(leaves(6 * RM_S));
    cr_assert_eq(will.until, 40 * RM_S);
}

Test(heed, who_comes_to_a_machine_that_is_going_stays_for_a_minute, .init = arrange)
{
    told(NOTICE_AWS_SPOT, NOTICE_WILL, 122 * RM_S);
    cr_assert_not(leaves(RM_S));
    cr_assert_eq(due(RM_S), 62 * RM_S, "a minute before the end");
    cr_assert_not(leaves(61 * RM_S));
    cr_assert(leaves(62 * RM_S));
    cr_assert_eq(due(62 * RM_S), RM_NEVER);
    arrange();
    told(NOTICE_AWS_SPOT, NOTICE_WILL, 90 * RM_S);
    cr_assert_not(leaves(RM_S));
    cr_assert_eq(due(RM_S), 61 * RM_S);
    cr_assert(leaves(61 * RM_S));
}

Test(heed, a_moment_that_is_over_or_close_leaves_some_seconds, .init = arrange)
{
    static const rm_time untils[] = {0, 3 * RM_S, 6 * RM_S};
    for (size_t i = 0; i < sizeof untils / sizeof untils[0]; i++) {
        arrange();
        cr_assert_not(leaves(RM_S));
        told(NOTICE_AWS_SPOT, NOTICE_WILL, untils[i]);
        cr_assert(leaves(3 * RM_S));
        cr_assert_eq(will.until, 8 * RM_S, "%zu", i);
        cr_assert_not(leaves(4 * RM_S));
    }
}

/* The machine is there, though the moment is over: whoever comes to it would go, and come again. */
Test(heed, nobody_leaves_a_machine_for_a_moment_that_was_over_when_it_could, .init = arrange)
{
    for (rm_time until = 0; until <= 60 * RM_S; until += 20 * RM_S) {
        arrange();
        told(NOTICE_GCE_MAINTENANCE, NOTICE_WILL, until);
        for (rm_time now = RM_S; now < 7200 * RM_S; now += 20 * RM_S) {
            cr_assert_not(leaves(now));
            cr_assert_eq(due(now), RM_NEVER);
        }
    }
}

/* So it is with pages: of what is over no time is left, at each answer. */
Test(heed, a_moment_that_is_over_at_each_answer_moves_nobody_away_who_came_to_it, .init = arrange)
{
    for (rm_time now = RM_S; now < 7200 * RM_S; now += 55 * RM_S) {
        notices.count = 0;
        told(NOTICE_AZURE, NOTICE_WILL, now);
        cr_assert_not(leaves(now));
        cr_assert_eq(due(now), RM_NEVER);
    }
}

/* Each comes ten seconds after its predecessor has gone. */
Test(heed, for_one_moment_no_more_than_two_leave_a_machine, .init = arrange)
{
    static const rm_time leads[] = {30 * RM_S, 60 * RM_S, 120 * RM_S, 900 * RM_S, 3600 * RM_S};
    for (size_t i = 0; i < sizeof leads / sizeof leads[0]; i++) {
        int left = 1;
        rm_time gone = 0;
        for (rm_time now = 10 * RM_S; now < 2 * leads[i]; now += RM_S) {
            if (gone >= 0) {
                arrange();
                told(NOTICE_AZURE, NOTICE_WILL, leads[i]);
                now = gone + 10 * RM_S;
                gone = -1;
            }
            if (leaves(now)) {
                left++;
                gone = now;
            }
        }
        cr_assert_leq(left, 2, "%zu", i);
    }
}

Test(heed, who_stayed_as_no_time_was_known_leaves_when_one_is, .init = arrange)
{
    told(NOTICE_AZURE, NOTICE_WILL, RM_NEVER);
    cr_assert_not(leaves(RM_S));
    cr_assert_not(leaves(100 * RM_S));
    told(NOTICE_AZURE, NOTICE_WILL, 130 * RM_S);
    cr_assert(leaves(100 * RM_S));
    cr_assert_eq(will.until, 130 * RM_S);
}

Test(heed, a_notice_that_is_withdrawn_within_that_minute_is_none, .init = arrange)
{
    told(NOTICE_AZURE, NOTICE_WILL, 122 * RM_S);
    cr_assert_not(leaves(RM_S));
    notices_withdraw(&notices, NOTICE_AZURE, "", NULL);
    cr_assert_eq(due(2 * RM_S), RM_NEVER);
    cr_assert_not(leaves(63 * RM_S));
}

Test(heed, what_was_withdrawn_and_is_told_again_is_a_leave_with_its_own_time, .init = arrange)
{
    cr_assert_not(leaves(RM_S));
    told(NOTICE_AZURE, NOTICE_WILL, 122 * RM_S);
    cr_assert(leaves(2 * RM_S));
    notices_withdraw(&notices, NOTICE_AZURE, "", NULL);
    cr_assert_not(leaves(3 * RM_S));
    told(NOTICE_AZURE, NOTICE_WILL, 300 * RM_S);
    cr_assert(leaves(4 * RM_S));
    cr_assert_eq(will.until, 300 * RM_S);
}

Test(heed, who_has_heard_nothing_complete_does_not_know_whether_it_came_to_such_a_machine, .init = arrange)
{
    cr_assert_not(heed_notices(&heed, &notices, false, RM_S, &will));
    told(NOTICE_AWS_SPOT, NOTICE_WILL, 122 * RM_S);
    cr_assert_not(leaves(2 * RM_S));
    cr_assert(leaves(62 * RM_S));
}
