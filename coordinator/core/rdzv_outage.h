/* A store that is away. */
#ifndef RM_COORDINATOR_RDZV_OUTAGE_H
#define RM_COORDINATOR_RDZV_OUTAGE_H

#include "coordinator/core/rdzv_state.h"

void rdzv_save_waits(const struct turn *turn, struct rdzv_worker *w, const struct msg_save_waits *m);
rm_time rdzv_outage_over(const struct turn *turn, int64_t step); /* published; how long it lasted, 0: none */
rm_time rdzv_save_gives_up_at(const struct rdzv *st); /* in SAVING; RM_NEVER: not while nothing waits */
bool rdzv_save_gives_up(const struct turn *turn);     /* true: the run has ended */

#endif
