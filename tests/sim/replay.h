/* A trace of machines, played on the shipped cores in virtual time: how many there were at which moment, how
 * long before its end each is told, and what a job made of them.
 *
 * A trace is text, a line a moment: seconds since its begin, then how many machines there are from then on.
 * Moments go up; '#' begins a comment. That is all that tools/spot_trace.py knows of published traces when it
 * has read them. */
#ifndef RM_TESTS_REPLAY_H
#define RM_TESTS_REPLAY_H

#include "common/base/error.h"
#include "common/base/time.h"

enum { REPLAY_MOMENTS = 20000, REPLAY_TEXT_MAX = 1 << 20 };

struct replay_moment {
    rm_time at;
    int machines;
};

struct replay {
    int moments;
    struct replay_moment moment[REPLAY_MOMENTS];
    rm_time until;    /* the trace's end: its last moment */
    int least, lanes; /* workers.min; of a batch */
    /* What the program and its machines take. A step takes as many lanes as the worker with most of them has;
     * a save and a load are shared by the ring's members. */
    rm_time lead; /* before its end a machine is told; 0: it is not, and vanishes with its connections open */
    rm_time lane, start, transfer, save, load;
    struct replay_result {
        int64_t steps, back;  /* made and kept; made, and lost again */
        double allowed;       /* steps that the machines of each moment could make, where they are `least` */
        double machine_hours; /* of the trace */
        int64_t told, out,
            along; /* machines that were told; whose worker was out before the end, or was not */
        rm_time notice, trained; /* of those: told before the end; and of that time trained in */
        int64_t rings, loads;    /* formed; of them from a checkpoint */
    } ret;
};

/* ERR_DATA with a sentence that names the line: no number, too few or too many machines, a moment that is
 * not later than the one before, none at all. */
int replay_read(struct replay *r, const char *text, struct error *err);

#endif
