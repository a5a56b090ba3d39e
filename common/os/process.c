#include "common/os/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool process_read(const char *pid, long *ret_parent, bool *ret_ended)
{
    char path[64], text[512], state;
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    char *rest = strrchr(text, ')'); /* a name may hold anything */
    if (!rest || sscanf(rest + 1, " %c %ld", &state, ret_parent) != 2)
        return false;
    *ret_ended = state == 'Z';
    return true;
}
