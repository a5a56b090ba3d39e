#include "common/os/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool read_text(const char *pid, const char *name, char *out, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%.20s/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, out, size - 1);
    close(fd);
    out[n > 0 ? n : 0] = 0;
    return true;
}

bool process_read(const char *pid, struct process_stat *ret)
{
    char text[512];
    if (!read_text(pid, "stat", text, sizeof text))
        return false;
    const char *rest = strrchr(text, ')'); /* a name may hold anything */
    return rest &&
           sscanf(rest + 1, " %c %ld %*d %*d %*d %*d %lu", &ret->state, &ret->parent, &ret->flags) == 3;
}

bool process_read_number(long pid, struct process_stat *ret)
{
    char name[24];
    snprintf(name, sizeof name, "%ld", pid);
    return process_read(name, ret);
}

int64_t process_resident(long pid)
{
    char name[24], text[128];
    long long pages;
    snprintf(name, sizeof name, "%ld", pid);
    bool there = read_text(name, "statm", text, sizeof text) && sscanf(text, "%*d %lld", &pages) == 1;
    return there ? pages * sysconf(_SC_PAGESIZE) : 0;
}
