/* How a ring stops, and what it loses. */
#ifndef RM_COORDINATOR_RDZV_STOP_H
#define RM_COORDINATOR_RDZV_STOP_H

#include "coordinator/core/rdzv_state.h"

void rdzv_quiesce(struct rdzv *st, enum msg_stop_at at, rm_time now,
                  struct rdzv_out *out); /* begins a round of stops */
void rdzv_stopped(struct rdzv *st, struct rdzv_worker *w, const struct message *m, rm_time now,
                  struct rdzv_out *out);
void rdzv_stop_asked(struct rdzv_worker *w, rm_time now); /* a stop at once is sent to it */
void rdzv_ring_without(struct rdzv *st, struct rdzv_worker *w, enum cause cause, rm_time now,
                       struct rdzv_out *out); /* the ring can't go on with it */
void rdzv_lose(struct rdzv *st, struct rdzv_worker *w, const char *why, rm_time now,
               struct rdzv_out *out); /* its connection is closed and forgotten */

#endif
