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

/* The sum of two that are not negative, RM_NEVER where it would be more: others may say any number. */
static inline int64_t rm_sum(int64_t a, int64_t b)
{
    return a < RM_NEVER - b ? a + b : RM_NEVER;
}

/* How long to wait after one more failure, `before` (>= 0) having come in a row before it: first, then twice
 * as long each time, never longer than most. */
static inline rm_time rm_backoff(rm_time first, rm_time most, int before)
{
    rm_time pause = first;
    for (int i = 0; i < before && pause < most; i++)
        pause *= 2;
    return rm_earlier(pause, most);
}

#endif
