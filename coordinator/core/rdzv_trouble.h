/* Who fails at what. What is done about it is rdzv_remedy.h's. */
#ifndef RM_COORDINATOR_RDZV_TROUBLE_H
#define RM_COORDINATOR_RDZV_TROUBLE_H

#include "coordinator/core/rdzv_state.h"

/* Notes it, and asks the table of rdzv_fault.h. */
struct fault_decision rdzv_trouble(const struct turn *turn, struct rdzv_worker *w, enum fault_where where,
                                   const struct msg_fault *f, bool proven);
void rdzv_trouble_over(struct rdzv_worker *w, enum fault_where where); /* it has worked */
void rdzv_trouble_step(struct rdzv *st);
void rdzv_slice_is_in(struct rdzv *st, struct rdzv_worker *w, int64_t step, bool anew);
void rdzv_write_is_over(struct rdzv_worker *w, int64_t step); /* of that step or an older one, well */
bool rdzv_is_stuck(const struct rdzv *st, const struct rdzv_worker *w); /* a write of its does not return */
bool rdzv_waits_for_trouble(const struct rdzv *st);
rm_time rdzv_trouble_at(const struct rdzv *st); /* when the next one is held back no longer */
int rdzv_describe_trouble(const struct rdzv *st, int worker, char *out, size_t size);

#endif
