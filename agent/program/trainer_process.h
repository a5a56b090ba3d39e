/* A trainer's process: where its program lies, and how it is started. Whoever keeps it (an agent, or the
 * launcher of a program that computes for it) has its own link to it and its own idea of its end. */
#ifndef RM_AGENT_TRAINER_PROCESS_H
#define RM_AGENT_TRAINER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/loop/loop.h"

/* RINGMASTER_TRAINER, else the one beside this program. */
int trainer_process_find(char *ret, size_t size, struct error *err);

struct shelf;

struct trainer_process {
    const char *path;
    int link_fd, state_fd, snapshot_fd; /* the caller's */
    bool alone;                         /* no other worker has a share in what this one may use */
    const struct shelf *shelf;          /* for what is to outlive it (common/os/shelf.h); NULL: none */
    const char *more;                   /* "--data-fd" or "--program-fd", with more_fd; NULL: neither */
    int more_fd;
    void (*exited)(void *ctx, int code, int signo);
    void *ctx;
};

/* Without the secrets of this process's environment. It writes to standard error alone, and ends with this
 * process. */
int trainer_process_start(struct loop_child **ret, struct loop *loop, const struct trainer_process *process,
                          struct error *err);

#endif
