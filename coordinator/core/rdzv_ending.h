/* The end of a run. */
#ifndef RM_COORDINATOR_RDZV_ENDING_H
#define RM_COORDINATOR_RDZV_ENDING_H

#include "coordinator/core/rdzv_state.h"

/* Ends it, as complete or with the reason that was given, and releases everybody. While steps are left to
 * tell nothing ends; the next call goes on. */
void rdzv_end(const struct turn *turn);
/* Ends it because what was to be kept can't be written. */
void rdzv_save_failed(const struct turn *turn, int64_t step, const char *detail);

#endif
