/* When a program stands still because nobody answers: where its processes may live again in another pod,
 * those here must not go on beside them. Pure.
 *
 * Whoever sees no connection may be the one that is cut off, so it is answers that count, and time. Held are
 * the processes of an agent that has had no answer for `after`; they go on with the next answer, whoever
 * gives it. No answer is that this agent is to end, nor a welcome, behind which that may come. */
#ifndef RM_AGENT_CORE_FENCE_H
#define RM_AGENT_CORE_FENCE_H

#include <stdbool.h>

#include "common/base/time.h"

struct fence {
    rm_time after; /* 0: nobody is held */
    rm_time heard; /* the newest answer */
    bool holds;
};

void fence_init(struct fence *fence, rm_time after, rm_time now);
/* An answer came. True: what is held goes on. */
bool fence_hear(struct fence *fence, rm_time now);
/* True once: from now on it is held. */
bool fence_is_due(struct fence *fence, rm_time now);
rm_time fence_deadline(const struct fence *fence); /* RM_NEVER: nothing comes by time alone */

#endif
