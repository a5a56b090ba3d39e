/* The only readers of the clocks. A program reads once per turn of its loop and hands the value down. */
#ifndef RM_OS_CLOCK_H
#define RM_OS_CLOCK_H

#include "common/base/time.h"

rm_time clock_now(void);  /* CLOCK_MONOTONIC, ns */
rm_time clock_boot(void); /* CLOCK_BOOTTIME, ns: goes on while the machine sleeps; for what others time out */
int64_t clock_wall_ms(void); /* ms since the epoch, for people and events only */

#endif
