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
    /* Its processes may live again elsewhere: nothing of this pod is to end them. */
    bool freezes;
    long (*tool)(void *ctx);    /* with it: a child that somebody else waits for; 0: none */
    bool (*awaited)(void *ctx); /* with it: one is about to be taken in (processes_adopt) */
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
/* What one gets as standard output and standard error that is about to be taken in, in place of the first of
 * those that processes_start would start. The caller closes them. */
int processes_output(struct processes *p, int ret_out[2], struct error *err);
/* A child that somebody else has made is that one: `ended` comes once for it. ring: as for processes_start.
 */
void processes_adopt(struct processes *p, const struct launch_ring *ring, long pid);
/* It could not be: `ended` comes in the next turn, with why. */
void processes_give_up(struct processes *p, const struct launch_ring *ring, const char *why);
/* The process of that place; 0: it has ended, or there never was one. */
long processes_pid(const struct processes *p, int local);
/* SIGTERM to each and its process group. From here on one has ended when its group has: what a shell starts
 * is not to be killed because the shell goes first. */
void processes_terminate(struct processes *p);
/* SIGSTOP to each and its process group, for a drill: only a kill goes on from here. */
void processes_freeze(struct processes *p);
/* SIGKILL to each, its group, and to every child and grandchild until none is left. */
void processes_kill(struct processes *p);
void processes_free(struct processes *p);

#endif
