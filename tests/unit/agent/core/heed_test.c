#include "agent/core/heed.h"

#include <criterion/criterion.h>

static struct heed heed;
static struct notices notices;
static struct notice will;

static void told(enum notice_source source, enum notice_certainty certainty, rm_time until)
{
    notices_take(
        &notices,
        &(struct notice){.source = source, .cause = CAUSE_RECLAIM, .certainty = certainty, .until = until});
}

static bool leaves(rm_time now)
{
    return heed_notices(&heed, &notices, true, now, &will);
}

static void arrange(void)
{
    heed_init(&heed, 0);
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
    cr_assert_eq(heed_deadline(&heed, &notices), 60 * RM_S);
    cr_assert_not(leaves(59 * RM_S));
    cr_assert(leaves(60 * RM_S));
    cr_assert_eq(heed_deadline(&heed, &notices), RM_NEVER);
}

Test(heed, a_notice_that_is_withdrawn_within_that_minute_is_none, .init = arrange)
{
    told(NOTICE_AZURE, NOTICE_WILL, 122 * RM_S);
    cr_assert_not(leaves(RM_S));
    notices_withdraw(&notices, NOTICE_AZURE, "", NULL);
    cr_assert_eq(heed_deadline(&heed, &notices), RM_NEVER);
    cr_assert_not(leaves(61 * RM_S));
}

Test(heed, who_has_heard_nothing_complete_does_not_know_whether_it_came_to_such_a_machine, .init = arrange)
{
    cr_assert_not(heed_notices(&heed, &notices, false, RM_S, &will));
    told(NOTICE_AWS_SPOT, NOTICE_WILL, 122 * RM_S);
    cr_assert_not(leaves(2 * RM_S));
    cr_assert(leaves(60 * RM_S));
}
