/* When data that somebody uploads have come. Pure.
 *
 * Where nothing lay, files come one by one, and the first ones are not the data: they have come once there
 * were as many, of as many bytes, for a while. Where something lay from the start nobody waits. */
#ifndef RM_DATA_ARRIVAL_H
#define RM_DATA_ARRIVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/time.h"

#define ARRIVAL_SETTLES (30 * RM_S)

struct arrival_amount {
    int64_t files, bytes;
};

/* Zero at first. */
struct arrival {
    bool awaited; /* there was nothing at some look */
    struct arrival_amount there;
    rm_time since; /* there has been as much, by the caller's clock */
};

/* What there is at a look. True: training may begin with it. */
bool arrival_is_over(struct arrival *arrival, struct arrival_amount there, rm_time now);

#endif
