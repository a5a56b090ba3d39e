#include "agent/launch/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/launch/core/aside.h"
#include "common/base/exit_code.h"
#include "common/os/orphan.h"

extern char **environ;

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

/* What a pod may do so that its program can be frozen is not for the program, which may read the job's key
 * with it. It is uid 0: no exec gives anything back where that is said. */
static int drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capset, &head, none) < 0 ? -1 : 0;
}

int launch_exec(int argc, char **argv)
{
    struct error err;
    bool usage = argc < 5 || strcmp(argv[1], "--parent") != 0 || strcmp(argv[3], "--") != 0;
    if (usage) {
        fputs("usage: ringmaster-agent exec --parent PID -- COMMAND...\n", stderr);
        return EXIT_USAGE;
    }
    int parent = (int)strtol(argv[2], NULL, 10);
    if (orphan_guard(parent, &err) < 0)
        return SHELL_NOT_RUN;
    bool may_be_frozen = parent == 0; /* it lives again below another one */
    if (may_be_frozen && drop_capabilities() < 0) {
        fprintf(stderr, "the rights of its pod can't be taken from the program: %s\n", strerror(errno));
        return SHELL_NOT_RUN;
    }
    setsid();
    offer_to_the_kernel();
    forget_signals();
    aside_give_back(environ); /* not before: this program's own loader has read its environment by now */
    execvp(argv[4], argv + 4);
    int why = errno;
    fprintf(stderr, "%s: %s: %s\n", argv[4], why == EACCES ? "is not executable" : "can't be run",
            strerror(why));
    return why == ENOENT ? SHELL_NOT_THERE : SHELL_NOT_RUN;
}
