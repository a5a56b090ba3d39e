/* How often a job's status is written. */
#include "operator/status_pace.h"

#include <criterion/criterion.h>

static const rm_time start = 1000 * RM_S;

/* How many of the changes that come each half second, for so many seconds, are written at once. */
static int written(struct status_paces *all, struct status_pace *own, enum op_change change, rm_time from,
                   int seconds)
{
    int count = 0;
    for (rm_time now = from; now < from + seconds * RM_S; now += 500 * RM_MS) {
        rm_time when = 0;
        bool comes = status_pace_allows(all, own, change, now, &when);
        cr_assert(comes || when > now, "who has to wait is told for how long");
        if (comes)
            own->written = now;
        count += comes;
    }
    return count;
}

Test(status_pace, urgent_changes_of_one_job_are_written_at_a_bounded_rate_and_hold_up_no_other)
{
    struct status_paces all = status_paces_init(start);
    struct status_pace flapping = {0}, calm = {0};
    rm_time when;
    cr_assert_leq(written(&all, &flapping, OP_URGENT, start, 3600), 30 + 1800);
    cr_assert(status_pace_allows(&all, &calm, OP_URGENT, start + 3600 * RM_S, &when));
    cr_assert_eq(written(&all, &calm, OP_URGENT, start + 3700 * RM_S, 10), 20, "a few are written at once");
}

Test(status_pace, numbers_that_move_are_written_every_ten_seconds)
{
    struct status_paces all = status_paces_init(start);
    struct status_pace own = {0};
    cr_assert_eq(written(&all, &own, OP_TICKING, start, 100), 10);
}

Test(status_pace, over_all_jobs_numbers_are_written_twenty_times_a_second)
{
    struct status_paces all = status_paces_init(start);
    int count = 0;
    for (int i = 0; i < 1000; i++) {
        struct status_pace own = {0};
        rm_time when;
        count += status_pace_allows(&all, &own, OP_TICKING, start, &when);
    }
    cr_assert_eq(count, 20);
}

Test(status_pace, what_is_no_change_waits_for_nothing)
{
    struct status_paces all = status_paces_init(start);
    struct status_pace own = {.written = start};
    rm_time when;
    cr_assert(status_pace_allows(&all, &own, OP_SAME, start, &when));
}
