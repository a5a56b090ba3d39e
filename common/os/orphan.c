#include "common/os/orphan.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

int orphan_guard(int parent_pid, struct error *err)
{
    if (!parent_pid)
        return 0;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return err_errno(err, ERR_MACHINE, "cannot tie this process to its parent");
    /* It may have ended before the line above: then nobody sends the signal. */
    if (getppid() != parent_pid)
        return err_set(err, ERR_MACHINE, "the parent process %d has ended", parent_pid);
    return 0;
}
