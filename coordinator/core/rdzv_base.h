/* The small words that every layer uses. */
#ifndef RM_COORDINATOR_RDZV_BASE_H
#define RM_COORDINATOR_RDZV_BASE_H

#include "coordinator/core/rdzv_state.h"

/* What it last decided, in one sentence. */
void rdzv_say(struct rdzv *st, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets the end and its reason, of which the first counts. What is held is saved before. */
void rdzv_give_up(struct rdzv *st, int exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int rdzv_index(const struct rdzv *st, const struct rdzv_worker *w);
void rdzv_ring_moved(const struct turn *turn); /* a step, an evaluation, a new ring: it does not hang */

#endif
