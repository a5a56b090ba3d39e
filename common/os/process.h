/* What /proc says of processes. */
#ifndef RM_OS_PROCESS_H
#define RM_OS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

struct process_stat {
    long parent;
    char state;          /* proc(5): 'Z' it has ended and waits to be reaped, 'T' a signal has stopped it */
    unsigned long flags; /* Linux' sched.h */
};

/* It has begun to end: its descriptors are closed then, before anybody may reap it. */
enum { PROCESS_EXITING = 4 };

/* pid: as the name of its folder in /proc. False where there is no such process (any more). */
bool process_read(const char *pid, struct process_stat *ret);
bool process_read_number(long pid, struct process_stat *ret); /* the same, of a number */

/* Bytes that it has in memory; 0: there is no such process (any more). */
int64_t process_resident(long pid);

#endif
