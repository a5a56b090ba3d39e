/* What /proc says of processes. */
#ifndef RM_OS_PROCESS_H
#define RM_OS_PROCESS_H

#include <stdbool.h>

/* The parent of a process, and whether it has ended and waits to be reaped; pid: as the name of its folder in
 * /proc. False where there is no such process (any more). */
bool process_read(const char *pid, long *ret_parent, bool *ret_ended);

#endif
