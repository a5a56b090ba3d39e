#include "agent/program/trainer_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/str.h"
#include "common/os/config.h"
#include "common/os/file.h"
#include "common/os/shelf.h"

int trainer_process_find(char *ret, size_t size, struct error *err)
{
    const char *given = config_get(CONFIG_TRAINER);
    if (!given)
        return file_sibling("ringmaster-trainer", ret, size, err);
    return text_copy(ret, size, given) ? 0 : err_set(err, ERR_USAGE, "the trainer's path is too long");
}

int trainer_process_start(struct loop_child **ret, struct loop *loop, const struct trainer_process *process,
                          struct error *err)
{
    char parent[16];
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    const char *args[18] = {"ringmaster-trainer", "work", "--link-fd",     "3",
                            "--state-fd",         "4",    "--snapshot-fd", "5",
                            "--parent",           parent, "--alone",       process->alone ? "1" : "0"};
    int fds[9] = {
        -1, STDERR_FILENO, STDERR_FILENO, process->link_fd, process->state_fd, process->snapshot_fd};
    int n = 12, at = 6;
    if (process->more) {
        args[n++] = process->more;
        args[n++] = "6";
        fds[at++] = process->more_fd;
    }
    if (process->shelf) {
        args[n++] = "--shelf-fd";
        args[n++] = at == 6 ? "6" : "7";
        fds[at++] = process->shelf->in;
        fds[at++] = process->shelf->out;
    }
    char **environment = config_without_secrets();
    if (!environment)
        return err_set(err, ERR_MACHINE, "no memory for a trainer");
    struct loop_child_options child = {.path = process->path,
                                       .args = args,
                                       .environment = environment,
                                       .fds = fds,
                                       .fd_count = at,
                                       .exited = process->exited,
                                       .ctx = process->ctx};
    int result = loop_child_open(ret, loop, &child, err);
    free(environment);
    return result;
}
