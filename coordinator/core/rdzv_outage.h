/* A store that is away. */
#ifndef RM_COORDINATOR_RDZV_OUTAGE_H
#define RM_COORDINATOR_RDZV_OUTAGE_H

#include "coordinator/core/rdzv_state.h"

/* A worker says that the store does not take its checkpoint. May end the run where the job has no patience.
 */
void rdzv_save_waits(const struct turn *turn, struct rdzv_worker *w, const struct msg_save_waits *m);
/* The step is saved in other parts: what was said of those before says nothing of them. */
void rdzv_save_is_cut(struct rdzv *st);
/* The store has taken a part from this worker. */
void rdzv_save_is_taken(const struct turn *turn, struct rdzv_worker *w);
/* That step is published: how long the store was away before, 0 where it was not. */
rm_time rdzv_outage_over(const struct turn *turn, int64_t step);
/* The store has taken no part of what the run is complete with: each of its writers has said so for 30 s, or
 * fails, or patience is over. */
bool rdzv_save_waits_in_vain(const struct turn *turn);
/* When patience with what SAVING waits for is over; RM_NEVER while nothing waits. */
rm_time rdzv_save_gives_up_at(const struct rdzv *st);
/* True: patience is over, and the run has ended. */
bool rdzv_save_gives_up(const struct turn *turn);

#endif
