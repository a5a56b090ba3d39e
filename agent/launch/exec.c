#include "agent/launch/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/launch/core/aside.h"
#include "common/base/exit_code.h"
#include "common/os/orphan.h"

extern char **environ;

enum { NOT_RUN = 126, NOT_THERE = 127 };

/* Where memory is short the kernel shall take the program, which can be started again, and not the agent. */
static void offer_to_the_kernel(void)
{
    static const char score[] = "500";
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)!write(fd, score, sizeof score - 1);
    close(fd);
}

static void forget_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int signo = 1; signo < NSIG; signo++)
        signal(signo, SIG_DFL);
}

int launch_exec(int argc, char **argv)
{
    struct error err;
    bool usage = argc < 5 || strcmp(argv[1], "--parent") != 0 || strcmp(argv[3], "--") != 0;
    if (usage) {
        fputs("usage: ringmaster-agent exec --parent PID -- COMMAND...\n", stderr);
        return EXIT_USAGE;
    }
    if (orphan_guard((int)strtol(argv[2], NULL, 10), &err) < 0)
        return NOT_RUN;
    setsid();
    offer_to_the_kernel();
    forget_signals();
    aside_give_back(environ); /* not before: this program's own loader has read its environment by now */
    execvp(argv[4], argv + 4);
    int why = errno;
    fprintf(stderr, "%s: %s: %s\n", argv[4], why == EACCES ? "is not executable" : "can't be run",
            strerror(why));
    return why == ENOENT ? NOT_THERE : NOT_RUN;
}
