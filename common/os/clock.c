#include "common/os/clock.h"

#include <time.h>

static rm_time clock_read(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (rm_time)t.tv_sec * RM_S + t.tv_nsec;
}

rm_time clock_now(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

rm_time clock_boot(void)
{
    return clock_read(CLOCK_BOOTTIME);
}

int64_t clock_wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
