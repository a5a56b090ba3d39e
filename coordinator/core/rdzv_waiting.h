/* What it waits for, in words: a reason is told when it is another one. */
#ifndef RM_COORDINATOR_RDZV_WAITING_H
#define RM_COORDINATOR_RDZV_WAITING_H

#include "coordinator/core/rdzv_state.h"

void rdzv_describe_missing(const struct rdzv *st, char *out, size_t size);
void rdzv_tell_waiting_for(struct rdzv *st, const char *reason, struct rdzv_out *out);
void rdzv_tell_waiting(struct rdzv *st, struct rdzv_out *out); /* for those who are missing */

#endif
