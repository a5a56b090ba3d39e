#include "common/kube/bucket.h"

struct bucket bucket_init(double per_second, double burst, rm_time now)
{
    return (struct bucket){.per_second = per_second, .burst = burst, .tokens = burst, .at = now};
}

static void fill_bucket(struct bucket *bucket, rm_time now)
{
    if (now > bucket->at) {
        bucket->tokens += (double)(now - bucket->at) / (double)RM_S * bucket->per_second;
        bucket->at = now;
    }
    if (bucket->tokens > bucket->burst)
        bucket->tokens = bucket->burst;
}

static rm_time when_there(const struct bucket *bucket, rm_time now)
{
    return now + (rm_time)((1 - bucket->tokens) / bucket->per_second * (double)RM_S) + 1;
}

bool bucket_take(struct bucket *bucket, rm_time now, rm_time *ret_when)
{
    fill_bucket(bucket, now);
    if (bucket->tokens >= 1) {
        bucket->tokens -= 1;
        return true;
    }
    *ret_when = when_there(bucket, now);
    return false;
}

rm_time bucket_queue(struct bucket *bucket, rm_time now)
{
    fill_bucket(bucket, now);
    rm_time when = bucket->tokens >= 1 ? now : when_there(bucket, now);
    bucket->tokens -= 1;
    return when;
}
