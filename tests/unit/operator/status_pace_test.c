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

enum { MANY = 10000, LINE_S = MANY / 20 };

/* Each asks again when it was told to, as the reconciler does, and in between as its coordinator speaks. */
Test(status_pace, ten_thousand_jobs_stand_in_a_line_and_each_asks_when_its_turn_comes)
{
    static struct status_pace own[MANY];
    static rm_time due[MANY];
    struct status_paces all = status_paces_init(start);
    int asked = 0, count = 0;
    for (int i = 0; i < MANY; i++)
        due[i] = start;
    for (rm_time now = start; now < start + (LINE_S + 5) * RM_S; now += 10 * RM_MS)
        for (int i = 0; i < MANY; i++) {
            rm_time when;
            if (due[i] > now)
                continue;
            asked++;
            bool comes = status_pace_allows(&all, &own[i], OP_TICKING, now, &when);
            count += comes;
            due[i] = comes ? RM_NEVER : when;
            cr_assert(comes || !status_pace_allows(&all, &own[i], OP_TICKING, now, &when));
            cr_assert(comes || when == due[i], "who asks again has the same place");
        }
    cr_assert_eq(count, MANY, "%d of them were written", count);
    cr_assert_leq(asked, 2 * MANY, "they asked %d times", asked);
}

Test(status_pace, a_place_in_the_line_is_not_kept_for_later)
{
    static struct status_pace own[MANY];
    struct status_paces all = status_paces_init(start);
    rm_time later = start + 3600 * RM_S, when;
    int count = 0;
    for (int i = 0; i < MANY; i++)
        status_pace_allows(&all, &own[i], OP_TICKING, start, &when);
    for (int i = 0; i < MANY; i++)
        count += status_pace_allows(&all, &own[i], OP_TICKING, later, &when);
    cr_assert_eq(count, 20, "%d jobs came at once", count);
}

Test(status_pace, what_is_no_change_waits_for_nothing)
{
    struct status_paces all = status_paces_init(start);
    struct status_pace own = {.written = start};
    rm_time when;
    cr_assert(status_pace_allows(&all, &own, OP_SAME, start, &when));
}
