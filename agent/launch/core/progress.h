/* What a process of a user's program says of its own progress: one datagram, `step=40 steps=1000 loss=2.31
 * rank=0` (docs/programs.md). Names in any order, with spaces or line ends between; names that are not known
 * here are passed over, so that a newer program may say more. Anybody in the container may send one, so that
 * nothing of it is trusted. Pure. */
#ifndef RM_LAUNCH_PROGRESS_H
#define RM_LAUNCH_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

enum { LAUNCH_PROGRESS_MAX = 512 /* bytes of a datagram */ };

struct launch_progress {
    int64_t rank;        /* -1: not said */
    int64_t step, steps; /* committed; of the whole training, 0: not said */
    double loss;         /* NaN: not said, or none that is a number */
};

/* ERR_USAGE with a sentence: it is none, and *ret is undefined. */
int launch_progress_read(struct launch_progress *ret, const char *bytes, size_t length, struct error *err);

#endif
