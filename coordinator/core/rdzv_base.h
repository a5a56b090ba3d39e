/* The words that every layer uses. */
#ifndef RM_COORDINATOR_RDZV_BASE_H
#define RM_COORDINATOR_RDZV_BASE_H

#include "coordinator/core/rdzv_state.h"

/* Keeps what was last decided as one sentence, for rdzv_why. */
void rdzv_say(struct rdzv *st, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets the end of the run and its reason; the first one counts. What is held is saved before the run ends. */
void rdzv_give_up(struct rdzv *st, int exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Why, in the words of who told a fault; or that it told none. */
const char *rdzv_reason(const char *told);
/* The number of a worker. */
int rdzv_index(const struct rdzv *st, const struct rdzv_worker *w);
/* A step, an evaluation, a new ring: nothing hangs that did so just now. */
void rdzv_ring_moved(const struct turn *turn);

#endif
