#include "agent/core/fence.h"

#include "common/base/assert.h"

void fence_init(struct fence *fence, rm_time after, rm_time now)
{
    RM_ASSERT(after >= 0, "held after %lld ns", (long long)after);
    *fence = (struct fence){.after = after, .heard = now};
}

bool fence_hear(struct fence *fence, rm_time now)
{
    bool goes_on = fence->holds;
    RM_ASSERT(now >= fence->heard, "an answer from %lld ns ago", (long long)(fence->heard - now));
    fence->heard = now;
    fence->holds = false;
    return goes_on;
}

rm_time fence_deadline(const struct fence *fence)
{
    RM_ASSERT(fence->after >= 0, "held after %lld ns", (long long)fence->after);
    return fence->after && !fence->holds ? rm_sum(fence->heard, fence->after) : RM_NEVER;
}

bool fence_is_due(struct fence *fence, rm_time now)
{
    bool due = now >= fence_deadline(fence);
    RM_ASSERT(!due || fence->after, "it is held at %lld, and is not to be", (long long)now);
    fence->holds = fence->holds || due;
    return due;
}
