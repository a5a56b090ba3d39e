/* How long to train between two checkpoints (checkpoint.every: Auto), and why so long.
 *
 * One machine's loss costs nothing, as long as another one holds the state: what costs work is the loss of
 * all who hold it. J. W. Young (A first order approximation to the optimum checkpoint interval, CACM 17,
 * 1974) has the time that loses least, sqrt(2 C / rate), with C for what a save costs and the rate of those
 * losses. C is what a save stalls training. Until it is safe training goes on, and that this takes long makes
 * each loss dearer by the same, however often is saved: it does not move the optimum (N. H. Vaidya, Impact of
 * checkpoint latency on overhead ratio of a checkpointing scheme, IEEE Trans. Computers 46, 1997). The
 * further terms of J. T. Daly (A higher order estimate of the optimum checkpoint interval, FGCS 22, 2006)
 * shorten it by less than C; near its optimum the loss is flat, and they are left out.
 *
 * The rate is what was seen, and one loss in one day beside it, which counts for less the longer it lasts
 * (the mean of a Gamma distribution): (1 + losses) / (1 day + time at risk).
 *
 * Bounds: a minute, and what the job says is the most to lose at once; within them no sooner than the save
 * before is safe. Until a save was measured it is the minute. Pure. */
#ifndef RM_COORDINATOR_INTERVAL_H
#define RM_COORDINATOR_INTERVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/time.h"

struct interval_facts {
    rm_time least, most; /* a minute, and checkpoint.maxLoss */
    rm_time believed;    /* a day: one loss in it, before any was seen */
    bool measured;       /* the next two are known */
    rm_time stall;       /* of training, by a save; below 0 where it is less than steps differ by */
    rm_time safe;        /* from the state that is saved to its manifest */
    int64_t losses;      /* of all at once who held the state */
    rm_time observed;    /* in which somebody held it */
};

enum interval_limit {
    INTERVAL_FREE,
    INTERVAL_FIRST, /* nothing was measured yet */
    INTERVAL_LEAST,
    INTERVAL_SAFE, /* the save before is not safe sooner */
    INTERVAL_MOST,
};

/* From f->least to f->most, in whole seconds. */
rm_time interval_choose(const struct interval_facts *f, enum interval_limit *ret_limit);
/* "every 312 s: a save stalls training for 0.84 s, and ..." */
void interval_sentence(const struct interval_facts *f, char *out, size_t size);

#endif
