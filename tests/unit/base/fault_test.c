#include "common/os/fault.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs the given number of visits of "here" in a child; true where the fault killed it. */
static int killed(const char *setting, int worker, int visits)
{
    pid_t child = fork();
    if (child == 0) {
        setenv("RINGMASTER_FAULT", setting, 1);
        fault_worker(worker);
        for (int i = 0; i < visits; i++)
            FAULT("here");
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

Test(fault, strikes_at_its_name_only)
{
    cr_assert(killed("here", 0, 1));
    cr_assert(!killed("elsewhere", 0, 9));
}

Test(fault, strikes_at_the_nth_visit)
{
    cr_assert(!killed("here:3", 0, 2));
    cr_assert(killed("here:3", 0, 3));
}

Test(fault, strikes_in_one_worker_only)
{
    cr_assert(killed("here@2", 2, 1));
    cr_assert(!killed("here@2", 1, 1));
    cr_assert(killed("here:2@1", 1, 2));
}
