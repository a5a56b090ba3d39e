/* No ring is at work: GATHERING and QUIESCING. */
#ifndef RM_COORDINATOR_RDZV_GATHER_H
#define RM_COORDINATOR_RDZV_GATHER_H

#include "coordinator/core/rdzv_state.h"

/* Forms a ring of those who are here, saves what they hold, waits, or ends. */
void rdzv_settle_gathering(const struct turn *turn);
/* When it would do so by time alone. */
rm_time rdzv_gathering_until(const struct rdzv *st);
/* When all have stopped: the next ring, or GATHERING, or the end. */
void rdzv_settle_quiescing(const struct turn *turn);
/* When those who want to join are waited for no longer. */
rm_time rdzv_quiescing_until(const struct rdzv *st);

#endif
