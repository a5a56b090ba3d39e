/* How a ring stops, and what it loses. */
#ifndef RM_COORDINATOR_RDZV_STOP_H
#define RM_COORDINATOR_RDZV_STOP_H

#include "coordinator/core/rdzv_state.h"

void rdzv_quiesce(const struct turn *turn, enum msg_stop_at at); /* begins a round of stops */
void rdzv_stopped(const struct turn *turn, struct rdzv_worker *w, const struct message *m);
void rdzv_stop_asked(struct rdzv_worker *w, rm_time now); /* a stop at once is sent to it */
void rdzv_ring_without(const struct turn *turn, struct rdzv_worker *w,
                       enum cause cause); /* the ring can't go on with it */
void rdzv_lose(const struct turn *turn, struct rdzv_worker *w,
               const char *why); /* its connection is closed and forgotten */

#endif
