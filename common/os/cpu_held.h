/* What kept this process from its processors' time: a CPU limit of its cgroups, or the host of a virtual
 * machine that gave it to others. Counters, of which two readings say what was between them. */
#ifndef RM_OS_CPU_HELD_H
#define RM_OS_CPU_HELD_H

#include <stdint.h>

struct cpu_held {
    int64_t periods, throttled; /* of the cgroups' limits: begun, and used up before their end; 0: none */
    int64_t ticks, stolen;      /* of all processors: in all, and taken away by the host; 0: not known */
};

enum cpu_held_by {
    CPU_HELD_BY_NONE,  /* of these two */
    CPU_HELD_BY_LIMIT, /* a fourth of the periods at least */
    CPU_HELD_BY_HOST,  /* a tenth of the time at least */
};

void cpu_held_read(struct cpu_held *ret);
/* The same of other places than /sys/fs/cgroup, /proc/self/cgroup and /proc/stat. A container sees its own
 * cgroup as the root: what is not there is passed over. */
void cpu_held_read_at(struct cpu_held *ret, const char *root, const char *membership, const char *stat);

enum cpu_held_by cpu_held_by(const struct cpu_held *before, const struct cpu_held *after);

#endif
