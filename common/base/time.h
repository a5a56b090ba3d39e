/* Time as an argument: monotonic nanoseconds. Nothing below common/os reads a clock; a core gets `now`. */
#ifndef RM_BASE_TIME_H
#define RM_BASE_TIME_H

#include <stdint.h>

typedef int64_t rm_time; /* ns, monotonic, one origin for all processes of one machine */

#define RM_US    ((rm_time)1000)
#define RM_MS    ((rm_time)1000 * 1000)
#define RM_S     ((rm_time)1000 * 1000 * 1000)
#define RM_NEVER INT64_MAX

static inline double rm_ms(rm_time t)
{
    return (double)t / 1e6;
}

static inline rm_time rm_earlier(rm_time a, rm_time b)
{
    return a < b ? a : b;
}

static inline rm_time rm_later(rm_time a, rm_time b)
{
    return a > b ? a : b;
}

#endif
