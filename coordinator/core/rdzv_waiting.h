/* What the coordinator waits for, in words. */
#ifndef RM_COORDINATOR_RDZV_WAITING_H
#define RM_COORDINATOR_RDZV_WAITING_H

#include "coordinator/core/rdzv_state.h"

/* How many are here, and what is known of each that is missing. */
void rdzv_describe_missing(const struct rdzv *st, char *out, size_t size);
/* Tells a reason to wait when it is another one than the last. */
void rdzv_tell_waiting_for(const struct turn *turn, const char *reason);
/* The same, for those who are missing. */
void rdzv_tell_waiting(const struct turn *turn);

#endif
