/* Steps and evaluations. */
#ifndef RM_COORDINATOR_RDZV_PROGRESS_H
#define RM_COORDINATOR_RDZV_PROGRESS_H

#include "coordinator/core/rdzv_state.h"

void rdzv_progress(const struct turn *turn, struct rdzv_worker *w, const struct message *m);
void rdzv_evaluated(const struct turn *turn, struct rdzv_worker *w, const struct msg_evaluated *e);
void rdzv_told_up_to(const struct turn *turn, int64_t step); /* losses not known */
bool rdzv_all_told(const struct turn *turn);

#endif
