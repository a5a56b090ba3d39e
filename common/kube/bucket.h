/* A token bucket: at most `burst` at once, `per_second` in the long run. Pure. */
#ifndef RM_KUBE_BUCKET_H
#define RM_KUBE_BUCKET_H

#include <stdbool.h>

#include "common/base/time.h"

struct bucket {
    double per_second, burst;
    double tokens;
    rm_time at; /* when tokens were counted */
};

struct bucket bucket_init(double per_second, double burst, rm_time now); /* full */

/* Takes one token and returns true; where there is none, *ret_when is when there will be. */
bool bucket_take(struct bucket *bucket, rm_time now, rm_time *ret_when);

/* Takes one whether it is there or not, and returns when it is: who takes the next one comes behind. */
rm_time bucket_queue(struct bucket *bucket, rm_time now);

#endif
