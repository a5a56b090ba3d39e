/* What kept this process from its processors' time: a CPU limit of its cgroups, or the host of a virtual
 * machine that gave it to others. Counters, of which two readings say what was between them. */
#ifndef RM_OS_HELD_CPU_H
#define RM_OS_HELD_CPU_H

#include <stdint.h>

struct held_cpu {
    int64_t periods, throttled; /* of the cgroups' limits: begun, and used up before their end; 0: none */
    int64_t ticks, stolen;      /* of all processors: in all, and taken away by the host; 0: not known */
};

enum held_cpu_by {
    HELD_CPU_BY_NONE,  /* of these two */
    HELD_CPU_BY_LIMIT, /* a fourth of the periods at least */
    HELD_CPU_BY_HOST,  /* a tenth of the time at least */
};

void held_cpu_read(struct held_cpu *ret);
/* The same of other places than /sys/fs/cgroup, /proc/self/cgroup and /proc/stat. A container sees its own
 * cgroup as the root: what is not there is passed over. */
void held_cpu_read_at(struct held_cpu *ret, const char *root, const char *membership, const char *stat);

enum held_cpu_by held_cpu_by(const struct held_cpu *before, const struct held_cpu *after);

#endif
