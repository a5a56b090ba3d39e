/* What has to hold, asserted. */
#ifndef RM_COORDINATOR_RDZV_INVARIANTS_H
#define RM_COORDINATOR_RDZV_INVARIANTS_H

#include "coordinator/core/rdzv_state.h"

/* What a coordinator may be opened with. */
void rdzv_check_settings(const struct rdzv_settings *s);
/* What holds between two steps, whatever was told to it. */
void rdzv_check_invariants(const struct rdzv *st);

#endif
