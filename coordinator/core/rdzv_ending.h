/* The end of a run. */
#ifndef RM_COORDINATOR_RDZV_ENDING_H
#define RM_COORDINATOR_RDZV_ENDING_H

#include "coordinator/core/rdzv_state.h"

void rdzv_end(const struct turn *turn);
void rdzv_save_failed(const struct turn *turn, int64_t step,
                      const char *detail); /* ends: what was to be kept can't be */

#endif
