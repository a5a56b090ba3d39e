/* What is done about a worker in trouble (rdzv_trouble.h). */
#ifndef RM_COORDINATOR_RDZV_REMEDY_H
#define RM_COORDINATOR_RDZV_REMEDY_H

#include "coordinator/core/rdzv_state.h"

/* Sends the worker's agent away. In a run its number stays empty from now on, which may end the job; in pods
 * another one may come, on another machine. */
void rdzv_leave_out(const struct turn *turn, struct rdzv_worker *w, const char *why, int exit_code);
/* Does what the table decided: the end, leaving it out, or waiting. */
void rdzv_act_on_trouble(const struct turn *turn, struct rdzv_worker *w, const struct fault_decision *d);
/* Another one was to get the state from it, and got, or was offered, something else. */
void rdzv_source_fault(const struct turn *turn, struct rdzv_worker *source, const struct msg_fault *f);
/* Its trainer can't work, and ends after this word. */
void rdzv_work_fault(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f);
/* It can't write its slice: training goes on, perhaps without it. */
void rdzv_slice_fault(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f);
/* The ring waits for a worker whose write does not return. */
void rdzv_stuck_in_ring(const struct turn *turn, struct rdzv_worker *w);

#endif
