/* A snapshot of a process that does nothing. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/snapshot/criu/snapshot.h"
#include "common/os/file.h"

/* The child waits until it is ended, and ends with whoever made it; closes all that it has, the pipe last. */
static _Noreturn void live_on(int ready)
{
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (ready > 0)
        close_range(0, (unsigned)ready - 1, 0);
    close_range((unsigned)ready + 1, ~0U, 0);
    close(ready);
    for (;;)
        pause();
}

/* A child that has closed all that it had: it can be dumped as it is. -1 with *err set. */
static pid_t start_child(struct error *err)
{
    int ready[2];
    char nothing;
    if (pipe2(ready, O_CLOEXEC) < 0)
        return err_errno(err, ERR_MACHINE, "can't start a process to try it on");
    pid_t child = fork();
    if (child == 0)
        live_on(ready[1]);
    close(ready[1]);
    if (child < 0)
        err_errno(err, ERR_MACHINE, "can't start a process to try it on");
    else
        while (read(ready[0], &nothing, 1) < 0 && errno == EINTR)
            ;
    close(ready[0]);
    return child;
}

static void end_child(long pid)
{
    kill((pid_t)pid, SIGKILL);
    waitpid((pid_t)pid, NULL, 0);
}

static int try_in(const char *binary, int folder, struct error *err)
{
    struct snapshot wish = {.binary = binary, .folder = folder, .travel = {.room = -1}, .out = -1, .err = -1};
    struct snapshot_stats stats;
    pid_t child = start_child(err);
    if (child < 0)
        return -1;
    wish.pid = child;
    int result = snapshot_dump(&wish, &stats, err);
    end_child(child);
    if (result < 0)
        return -1;
    long pid = snapshot_restore(&wish, err);
    if (pid < 0)
        return -1;
    end_child(pid);
    return 0;
}

int snapshot_try(const char *binary, struct error *err)
{
    char path[] = "/tmp/ringmaster-snapshot-XXXXXX";
    if (!mkdtemp(path))
        return err_errno(err, ERR_MACHINE, "can't make a folder in /tmp to try a snapshot in");
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return err_errno(err, ERR_MACHINE, "can't open %s", path);
    int result = try_in(binary, folder, err);
    file_folder_empty(folder); /* CRIU makes no folders */
    close(folder);
    rmdir(path);
    return result;
}
