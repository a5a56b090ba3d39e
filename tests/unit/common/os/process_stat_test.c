/* What /proc says of this process and of children in each state. */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/process.h"

static pid_t child_that_waits(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a check that fails doesn't come to the end, where it is killed */
        for (;;)
            pause();
    }
    return pid;
}

Test(process_stat, one_that_runs_has_a_parent_and_memory)
{
    struct process_stat stat;
    cr_assert(process_read("self", &stat));
    cr_assert(stat.state == 'R' && stat.parent == getppid() && !(stat.flags & PROCESS_EXITING));
    cr_assert_geq(process_resident(getpid()), 4096);
}

Test(process_stat, one_that_a_signal_has_stopped_is_told_from_one_that_waits)
{
    struct process_stat stat;
    pid_t pid = child_that_waits();
    cr_assert(process_read_number(pid, &stat) && stat.state != 'T' && stat.parent == getpid());
    kill(pid, SIGSTOP);
    cr_assert_eq(waitpid(pid, NULL, WUNTRACED), pid);
    cr_assert(process_read_number(pid, &stat) && stat.state == 'T');
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

Test(process_stat, one_that_has_ended_is_there_until_it_is_reaped)
{
    struct process_stat stat;
    siginfo_t info;
    pid_t pid = child_that_waits();
    kill(pid, SIGKILL);
    cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    cr_assert(process_read_number(pid, &stat) && stat.state == 'Z' && (stat.flags & PROCESS_EXITING));
    waitpid(pid, NULL, 0);
    cr_assert_not(process_read_number(pid, &stat));
    cr_assert_eq(process_resident(pid), 0);
}
