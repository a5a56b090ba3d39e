/* Real children of this process, as of a pod's first one. */
#include "common/pod/pod.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, ORPHANS = 100 };

/* Ends as `how` says (its exit code, or its signal as a negative number) when all that hold the other end of
 * that pipe have closed it. */
static int start(const int gate[2], int how)
{
    char byte;
    int pid = fork();
    if (pid)
        return pid;
    close(gate[1]);
    while (read(gate[0], &byte, 1) < 0 && errno == EINTR)
        ;
    if (how < 0)
        raise(-how);
    _exit(how);
}

/* Their parent ends, and this process takes them in. */
static void leave_orphans(const int gate[2], int count)
{
    int between = fork();
    if (between == 0) {
        for (int i = 0; i < count; i++)
            if (start(gate, 7) < 0)
                _exit(1);
        _exit(0);
    }
    int status;
    cr_assert_eq(waitpid(between, &status, 0), between);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "it could not start %d processes", count);
}

/* By its pid, as an event loop does; one at a time, so that others are still to be waited for when orphans
 * are looked for again. */
static void wait_for_one(const int *pid, int *code)
{
    int status;
    for (int i = 0; i < RANKS; i++) {
        if (code[i] >= 0 || waitpid(pid[i], &status, WNOHANG) != pid[i])
            continue;
        code[i] = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        return;
    }
}

static bool no_child_is_left(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

TestSuite(reap, .timeout = 60);

Test(reap, three_that_somebody_waits_for_keep_their_codes_beside_a_hundred_orphans_that_end_with_them)
{
    static const int how[RANKS] = {3, -SIGKILL, 0};
    int gate[2], rank[RANKS], code[RANKS] = {-1, -1, -1};
    cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    cr_assert_eq(pipe(gate), 0);
    for (int i = 0; i < RANKS; i++) {
        leave_orphans(gate, ORPHANS / RANKS + (i < ORPHANS % RANKS));
        rank[i] = start(gate, how[i]);
        cr_assert_gt(rank[i], 0);
    }
    close(gate[1]);
    while (!no_child_is_left()) {
        pod_reap(rank, RANKS);
        wait_for_one(rank, code);
        poll(NULL, 0, 1);
    }
    cr_assert(code[0] == 3 && code[1] == 137 && code[2] == 0, "%d %d %d", code[0], code[1], code[2]);
}
