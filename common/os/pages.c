#include "common/os/pages.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LARGE = 2 << 20 };

void *pages_alloc(size_t bytes)
{
    if (bytes > SIZE_MAX - LARGE)
        return NULL;
    if (bytes < LARGE)
        return aligned_alloc(64, (bytes + 63) / 64 * 64);
    size_t whole = (bytes + LARGE - 1) / LARGE * LARGE;
    void *memory = aligned_alloc(LARGE, whole);
    if (memory)
        (void)madvise(memory, whole, MADV_HUGEPAGE);
    return memory;
}

/* The number behind the name in a file of lines; the name "" is in front of the first one. */
static bool read_number(const char *path, const char *name, size_t *ret)
{
    char line[128];
    bool found = false;
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    while (!found && fgets(line, sizeof line, file)) {
        char *end = line;
        if (strncmp(line, name, strlen(name)) != 0)
            continue;
        unsigned long long number = strtoull(line + strlen(name), &end, 10);
        found = end != line + strlen(name); /* "max" is none */
        *ret = (size_t)number;
    }
    fclose(file);
    return found;
}

size_t pages_available(void)
{
    size_t available, most, used;
    if (!read_number("/proc/meminfo", "MemAvailable:", &available))
        return 0;
    available *= 1024;
    if (read_number("/sys/fs/cgroup/memory.max", "", &most) &&
        read_number("/sys/fs/cgroup/memory.current", "", &used)) {
        size_t left = most > used ? most - used : 0;
        available = left < available ? left : available;
    }
    return available;
}
