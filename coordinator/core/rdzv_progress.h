/* Steps and evaluations. */
#ifndef RM_COORDINATOR_RDZV_PROGRESS_H
#define RM_COORDINATOR_RDZV_PROGRESS_H

#include "coordinator/core/rdzv_state.h"

void rdzv_progress(struct rdzv *st, struct rdzv_worker *w, const struct message *m, rm_time now,
                   struct rdzv_out *out);
void rdzv_evaluated(struct rdzv *st, struct rdzv_worker *w, const struct msg_evaluated *e,
                    struct rdzv_out *out);
void rdzv_told_up_to(struct rdzv *st, int64_t step, struct rdzv_out *out); /* losses not known */
bool rdzv_all_told(struct rdzv *st, struct rdzv_out *out);

#endif
