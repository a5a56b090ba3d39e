#include "agent/launch/descendants.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/clock.h"

int descendants_take_in(struct error *err)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return err_errno(err, ERR_MACHINE, "can't take in what a program leaves behind");
    return 0;
}

/* The parent that /proc names for a process, and whether it has ended and waits to be reaped. */
static bool read_stat(const char *pid, long *ret_parent, bool *ret_ended)
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

int descendants_look(enum descendant (*who)(const void *ctx, long pid), const void *ctx, bool all)
{
    DIR *proc = opendir("/proc");
    long self = getpid();
    int seen = 0;
    for (struct dirent *entry; proc && (entry = readdir(proc));) {
        long parent, pid = strtol(entry->d_name, NULL, 10);
        bool ended;
        if (pid <= 0 || !read_stat(entry->d_name, &parent, &ended) || parent != self)
            continue;
        enum descendant it = who ? who(ctx, pid) : DESCENDANT_STRANGER;
        seen += it != DESCENDANT_SPARED;
        if (ended && it == DESCENDANT_STRANGER)
            waitpid((pid_t)pid, NULL, WNOHANG);
        else if (!ended && all && it != DESCENDANT_SPARED)
            kill((pid_t)pid, SIGKILL);
    }
    if (proc)
        closedir(proc);
    return proc ? seen : -1;
}

bool descendants_none(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

void descendants_end(rm_time within)
{
    for (rm_time until = clock_now() + within; !descendants_none() && clock_now() < until;) {
        descendants_look(NULL, NULL, true);
        poll(NULL, 0, 1); /* a killed process takes a moment to end, and may be in a call that holds it */
    }
}
