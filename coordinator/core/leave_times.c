/* Keeps what the newest leaves took, and gives the next one longer than the longest of them: twice as long,
 * or by a quarter where little would be lost. */
#include "coordinator/core/leave_times.h"

#include "common/base/assert.h"
#include "common/base/lane_shares.h"
#include "common/notice/notice.h"

/* What is not whole in time is of no use. */
static const double margin = 1.25;
static const rm_time unmeasured = 2 * RM_S, most = 30 * RM_S;

void leave_times_add(struct leave_times *times, rm_time took, rm_time rest)
{
    RM_ASSERT(rest >= 0 && took >= rest && times->next < LEAVES_KEPT, "leave %d took %lld ns, %lld at rest",
              times->next, (long long)took, (long long)rest);
    times->took[times->next] = rm_earlier(took, most);
    times->rest[times->next] = rm_earlier(rest, most);
    times->next = (times->next + 1) % LEAVES_KEPT;
    times->count += times->count < LEAVES_KEPT;
}

rm_time leave_with_margin(rm_time takes)
{
    RM_ASSERT(takes >= 0, "a margin over %lld ns", (long long)takes);
    return (rm_time)(margin * (double)takes);
}

static rm_time longest_of(const rm_time *list, int count)
{
    RM_ASSERT(count >= 0 && count <= LEAVES_KEPT, "%d leaves are kept, of %d", count, LEAVES_KEPT);
    rm_time longest = count ? 0 : unmeasured;
    for (int i = 0; i < count; i++)
        longest = rm_later(longest, list[i]);
    return longest;
}

rm_time leave_times_margin(const struct leave_times *times, rm_time step)
{
    return 2 * rm_later(longest_of(times->took, times->count), step) + NOTICE_SAME_MOMENT;
}

rm_time leave_times_survived(const struct leave_times *times, rm_time step)
{
    RM_ASSERT(step >= 0, "a step of %lld ns", (long long)step);
    rm_time rest = longest_of(times->rest, times->count);
    rm_time longest = rm_later(longest_of(times->took, times->count), step + rest);
    return leave_with_margin(longest) + NOTICE_SAME_MOMENT;
}

rm_time leave_usual_longer(const struct leave_paces *p)
{
    struct lane_shares usual;
    double longest = 0, lanes = 0, each_ns = 0; /* of those who are known; done by all of them in a ns */
    RM_ASSERT(p->world >= 0 && p->world <= RM_WORKERS_MAX, "paces of %d ranks", p->world);
    if (p->world < 1 || p->lanes < 1)
        return 0;
    shares_even(&usual, p->lanes, p->world);
    for (int r = 0; r < p->world; r++) {
        if (p->lane[r] <= 0)
            continue;
        double takes = (double)p->lane[r] * usual.count[r];
        longest = takes > longest ? takes : longest;
        lanes += usual.count[r];
        each_ns += 1 / (double)p->lane[r];
    }
    double followed = each_ns > 0 ? lanes / each_ns : 0;
    return longest > followed ? (rm_time)(longest - followed) : 0;
}
