/* A program's processes on this machine: started, told to go, killed with all that they started themselves.
 *
 * This process is to be a subreaper (processes_open makes it one): whatever a program started and left behind
 * becomes its child when its parent has ended, so "no child is left" means that nothing of it lives. */
#ifndef RM_LAUNCH_PROCESSES_H
#define RM_LAUNCH_PROCESSES_H

#include "agent/launch/core/launch.h"
#include "common/base/error.h"
#include "common/job/spec.h"
#include "common/loop/loop.h"

struct processes;

/* How a process ended. */
struct processes_end {
    int code;           /* 128 + signal by a signal */
    int signo;          /* 0: none */
    bool memory;        /* it was killed as memory was short */
    bool refused;       /* by our own package for Python: started anew it would end so again */
    const char *why;    /* its last word; borrowed for the call, and so is */
    const char *output; /* its traceback, or its last lines; "": nothing, or not to be told */
};

struct processes_options {
    const struct job_spec *spec; /* outlives it */
    const char *agent;           /* the program whose `exec` becomes the user's (exec.h); outlives it */
    bool shared;                 /* others write to the same stdout: each line gets its rank */
    int worker;                  /* in front of its lines where it has no rank, that is without a ring */
    int threads;        /* OMP_NUM_THREADS where nobody set it; 0: not said, but for several processes */
    const char *socket; /* RINGMASTER_SOCKET; NULL: none. Read at each start */
    long (*spared)(void *ctx); /* NULL, or: another child of this process, which lives on; 0: none */
    void (*ended)(void *ctx, int local, const struct processes_end *end); /* once for each that was started */
    void (*told)(void *ctx, const struct launch_progress *progress); /* how far a process says that it is */
    /* Once, where the job has a preload: nothing needs to be waited for before the first generation. */
    void (*warm)(void *ctx);
    void (*gone)(void *ctx); /* once after each processes_kill, after the last `ended` */
    void *ctx;
};

int processes_open(struct processes **ret, struct loop *loop, const struct processes_options *options,
                   struct error *err);
/* Those that can't be started end with code 126 in the next turn. ring: stays as it is until they are
 * stopped; NULL: they have no place in one. */
void processes_start(struct processes *p, const struct launch_ring *ring);
/* SIGTERM to each and its process group. From here on one has ended when its group has: what a shell starts
 * is not to be killed because the shell goes first. */
void processes_terminate(struct processes *p);
/* SIGSTOP to each and its process group, for a drill: only a kill goes on from here. */
void processes_freeze(struct processes *p);
/* SIGKILL to each, its group, and to every child and grandchild until none is left. */
void processes_kill(struct processes *p);
void processes_free(struct processes *p);

#endif
