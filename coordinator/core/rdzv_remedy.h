/* What is done about a worker in trouble (rdzv_trouble.h). */
#ifndef RM_COORDINATOR_RDZV_REMEDY_H
#define RM_COORDINATOR_RDZV_REMEDY_H

#include "coordinator/core/rdzv_state.h"

/* Its agent is sent away, and another process under its index comes in pods alone. */
void rdzv_leave_out(struct rdzv *st, struct rdzv_worker *w, const char *why, int exit_code, rm_time now,
                    struct rdzv_out *out);
void rdzv_act_on_trouble(struct rdzv *st, struct rdzv_worker *w, const struct fault_decision *d, rm_time now,
                         struct rdzv_out *out);
void rdzv_work_fault(struct rdzv *st, struct rdzv_worker *w, const struct msg_fault *f, rm_time now,
                     struct rdzv_out *out);
void rdzv_slice_fault(struct rdzv *st, struct rdzv_worker *w, const struct msg_fault *f, rm_time now,
                      struct rdzv_out *out); /* training goes on, perhaps without it */
void rdzv_stuck_in_ring(struct rdzv *st, struct rdzv_worker *w, rm_time now, struct rdzv_out *out);

#endif
