#include "common/kube/bucket.h"

struct bucket bucket_init(double per_second, double burst, rm_time now)
{
    return (struct bucket){.per_second = per_second, .burst = burst, .tokens = burst, .at = now};
}

bool bucket_take(struct bucket *bucket, rm_time now, rm_time *ret_when)
{
    if (now > bucket->at) {
        bucket->tokens += (double)(now - bucket->at) / (double)RM_S * bucket->per_second;
        bucket->at = now;
    }
    if (bucket->tokens > bucket->burst)
        bucket->tokens = bucket->burst;
    if (bucket->tokens >= 1) {
        bucket->tokens -= 1;
        return true;
    }
    *ret_when = now + (rm_time)((1 - bucket->tokens) / bucket->per_second * (double)RM_S) + 1;
    return false;
}
