/* The next process for each that runs, with the modules of launch.preload imported, so that a change of
 * members does not wait for them once more. It belongs to no generation: it has run nothing of the program
 * yet, and is handed its place, its streams and its environment when one begins (standby.py, which is
 * compiled in).
 *
 * A standby that can't be made costs nothing but the time that it would have spared: that is said once, and
 * none is made any more. */
#ifndef RM_LAUNCH_STANDBYS_H
#define RM_LAUNCH_STANDBYS_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/job/spec.h"
#include "common/loop/loop.h"

struct standbys;

struct standbys_options {
    const struct job_spec *spec; /* with a preload, checked; outlives it */
    const char *agent;           /* as processes_options */
    int count;                   /* of processes on this machine */
    char *const *environment;    /* what they are started in; read in standbys_make; outlives it */
    /* Once: the first of each are ready, or are given up, or take too long to be waited for. */
    void (*warm)(void *ctx);
    void *ctx;
};

int standbys_open(struct standbys **ret, struct loop *loop, const struct standbys_options *options,
                  struct error *err);

/* Those that are missing begin to import, after so many ns. */
void standbys_make(struct standbys *s, rm_time in);

/* The one for `local`, told to go: a child that belongs to the caller (loop_child_pass). out: as the
 * program's stdout and stderr; not taken over. NULL: none is there. */
struct loop_child *standbys_take(struct standbys *s, int local, char *const *environment, const int out[2]);

/* The process that was taken for `local` has ended. True: before it was the program, so that its end is not
 * the program's; no more of them are made. Asked once. */
bool standbys_never_became(struct standbys *s, int local);

bool standbys_have(const struct standbys *s, long pid); /* it is one that waits */
bool standbys_any(const struct standbys *s);
void standbys_free(struct standbys *s); /* those that wait are killed, not reaped */

#endif
