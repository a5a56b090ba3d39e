/* What it waits for, in words: a reason is told when it is another one. */
#ifndef RM_COORDINATOR_RDZV_WAITING_H
#define RM_COORDINATOR_RDZV_WAITING_H

#include "coordinator/core/rdzv_state.h"

void rdzv_describe_missing(const struct rdzv *st, char *out, size_t size);
void rdzv_tell_waiting_for(const struct turn *turn, const char *reason);
void rdzv_tell_waiting(const struct turn *turn); /* for those who are missing */

#endif
