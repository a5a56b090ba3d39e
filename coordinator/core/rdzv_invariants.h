/* What holds between two steps, asserted. */
#ifndef RM_COORDINATOR_RDZV_INVARIANTS_H
#define RM_COORDINATOR_RDZV_INVARIANTS_H

#include "coordinator/core/rdzv_state.h"

void rdzv_check_settings(const struct rdzv_settings *s); /* what it may be opened with */
void rdzv_check_invariants(const struct rdzv *st);

#endif
