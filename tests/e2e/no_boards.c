/* Preloaded into a program: the kernel has no memory for ranks to share, as where a container's filter knows
 * no memfd. With REFUSED_ONE=FILE only the first process that asks is refused, for as long as it lives; who
 * it was is written into that file. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int is_refused(void)
{
    static int refused;
    const char *file = getenv("REFUSED_ONE");
    int fd = file && !refused ? open(file, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600) : -1;
    if (!file || fd >= 0)
        refused = 1;
    if (fd >= 0) {
        dprintf(fd, "%d", (int)getpid());
        close(fd);
    }
    return refused;
}

int memfd_create(const char *name, unsigned flags)
{
    int (*next)(const char *, unsigned) = dlsym(RTLD_NEXT, "memfd_create");
    if (!strcmp(name, "ringmaster-ring") && is_refused()) {
        errno = ENOSYS;
        return -1;
    }
    return next(name, flags);
}
