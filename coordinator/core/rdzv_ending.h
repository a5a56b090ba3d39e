/* The end of a run. */
#ifndef RM_COORDINATOR_RDZV_ENDING_H
#define RM_COORDINATOR_RDZV_ENDING_H

#include "coordinator/core/rdzv_state.h"

void rdzv_end(struct rdzv *st, rm_time now, struct rdzv_out *out);
void rdzv_save_failed(struct rdzv *st, int64_t step, const char *detail, rm_time now,
                      struct rdzv_out *out); /* ends: what was to be kept can't be */

#endif
