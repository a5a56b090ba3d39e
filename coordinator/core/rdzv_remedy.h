/* What is done about a worker in trouble (rdzv_trouble.h). */
#ifndef RM_COORDINATOR_RDZV_REMEDY_H
#define RM_COORDINATOR_RDZV_REMEDY_H

#include "coordinator/core/rdzv_state.h"

/* Its agent is sent away, and another process under its index comes in pods alone. */
void rdzv_leave_out(const struct turn *turn, struct rdzv_worker *w, const char *why, int exit_code);
void rdzv_act_on_trouble(const struct turn *turn, struct rdzv_worker *w, const struct fault_decision *d);
void rdzv_work_fault(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f);
void rdzv_slice_fault(const struct turn *turn, struct rdzv_worker *w,
                      const struct msg_fault *f); /* training goes on, perhaps without it */
void rdzv_stuck_in_ring(const struct turn *turn, struct rdzv_worker *w);

#endif
