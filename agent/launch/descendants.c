#include "agent/launch/descendants.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/clock.h"
#include "common/os/process.h"

int descendants_take_in(struct error *err)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return err_errno(err, ERR_MACHINE, "can't take in what a program leaves behind");
    return 0;
}

int descendants_look(enum descendant (*who)(const void *ctx, long pid), const void *ctx, bool all)
{
    DIR *proc = opendir("/proc");
    long self = getpid();
    int seen = 0;
    for (struct dirent *entry; proc && (entry = readdir(proc));) {
        long pid = strtol(entry->d_name, NULL, 10);
        struct process_stat stat;
        if (pid <= 0 || !process_read(entry->d_name, &stat) || stat.parent != self)
            continue;
        bool ended = stat.state == 'Z';
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
