/* Whether the kernel killed for memory in this process's cgroup: what a signal 9 alone does not say. Read
 * once before and once after. */
#ifndef RM_OS_MEMORY_KILLS_H
#define RM_OS_MEMORY_KILLS_H

#include <stdbool.h>
#include <stdint.h>

/* What is added to "killed by signal 9", whoever saw it. */
#define MEMORY_KILLS_WORDS ", out of memory"

struct memory_kills {
    int64_t kills; /* of processes of the group, for want of memory; -1: not told */
    int64_t hits;  /* times that it was at its limit, told by old kernels of version 1 alone; -1: not told */
};

/* The number of the line "oom_kill N" in memory.events (version 2) or memory.oom_control (version 1); -1:
 * there is none. Pure. */
int64_t memory_kills_in(const char *text);
/* Where kills are told they alone count: a group is at its limit again and again without any. Pure. */
bool memory_kills_grew(struct memory_kills before, struct memory_kills after);
/* Of the cgroup that `membership` (as /proc/self/cgroup) names below `root` (as /sys/fs/cgroup). A container
 * sees its own cgroup as the root: a path that is not there stands for the nearest one above it that is. */
struct memory_kills memory_kills_read(const char *root, const char *membership);
struct memory_kills memory_kills_now(void);

#endif
