/* What each process of a program finds in its environment: torchrun's names with torchrun's meaning, JAX's,
 * and what torchrun itself reads where the command is torchrun. docs/programs.md has the table. Pure. */
#ifndef RM_LAUNCH_ENVIRONMENT_H
#define RM_LAUNCH_ENVIRONMENT_H

#include <stdbool.h>

#include "agent/launch/core/launch.h"
#include "common/base/str.h"
#include "common/job/spec.h"

struct launch_process {
    const struct launch_ring *ring; /* NULL: it has no place yet, and finds what all find everywhere */
    const char *job;
    int worker;           /* its number, where it has no rank */
    int local, processes; /* this one, of how many on each worker */
    int threads;          /* that it may well have, where it is the only one; 0: as it likes */
    bool torchrun;        /* it is started once, and starts the processes itself */
    /* Restart: where it may say how far it is; Elastic: of the trainer that it computes for. NULL: none */
    const char *socket;
    const char *python;     /* the folder of the Python package, behind all in PYTHONPATH; "" or NULL: none */
    const char *error_file; /* where a Python program of torch's leaves its traceback; NULL: nowhere */
};

enum { LAUNCH_NAMES_MAX = 48 };

/* NAME=VALUE, each with its zero byte, one behind the other in `text`. */
struct launch_environment {
    int count;
    struct str text;
    const char *entry[LAUNCH_NAMES_MAX + 1];
};

/* Words that are torchrun: it has ranks of its own to start. */
bool launch_is_torchrun(const struct job_list *command);
/* How many processes each worker starts: numProcPerNode, or one that is torchrun. */
int launch_processes(const struct job_spec *spec);

/* What this process gets, as an environment for exec: `base` (NAME=VALUE, ending in NULL) without the names
 * that are Ringmaster's own or said anew here, then these. What is aside (aside.h) stays aside: the program
 * that this environment is for is given it by `exec`. The array is for free(), the strings are base's
 * and out's. NULL: no memory. */
char **launch_environment_make(const struct launch_process *p, char *const *base,
                               struct launch_environment *out);
void launch_environment_clear(struct launch_environment *e);

#endif
