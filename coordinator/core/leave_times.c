/* Keeps what the newest leaves took, and gives the next one twice as long as the longest of them. */
#include "coordinator/core/leave_times.h"

#include "common/base/assert.h"
#include "common/notice/notice.h"

/* What is not whole in time is of no use. */
static const double margin = 1.25;
static const rm_time unmeasured = 2 * RM_S, most = 30 * RM_S;

void leave_times_add(struct leave_times *times, rm_time took)
{
    RM_ASSERT(took >= 0 && times->next < LEAVES_KEPT, "leave %d took %lld ns", times->next, (long long)took);
    times->took[times->next] = rm_earlier(took, most);
    times->next = (times->next + 1) % LEAVES_KEPT;
    times->count += times->count < LEAVES_KEPT;
}

rm_time leave_with_margin(rm_time takes)
{
    return (rm_time)(margin * (double)takes);
}

rm_time leave_times_margin(const struct leave_times *times, rm_time step)
{
    rm_time longest = times->count ? 0 : unmeasured;
    for (int i = 0; i < times->count; i++)
        longest = rm_later(longest, times->took[i]);
    return 2 * rm_later(longest, step) + NOTICE_SAME_MOMENT;
}
