/* Steps and evaluations, each told once. */
#ifndef RM_COORDINATOR_RDZV_PROGRESS_H
#define RM_COORDINATOR_RDZV_PROGRESS_H

#include "coordinator/core/rdzv_state.h"

/* A worker made a step. */
void rdzv_progress(const struct turn *turn, struct rdzv_worker *w, const struct message *m);
/* A worker evaluated a step. */
void rdzv_evaluated(const struct turn *turn, struct rdzv_worker *w, const struct msg_evaluated *e);
/* Tells the steps up to this one whose losses nobody knows; of a long gap as many as one call may. */
void rdzv_told_up_to(const struct turn *turn, int64_t step);
/* Tells all steps of the job. False: the next call goes on. */
bool rdzv_all_told(const struct turn *turn);

#endif
