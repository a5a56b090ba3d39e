/* How a worker comes back that was left out because it and others can't reach each other. */
#ifndef RM_COORDINATOR_RDZV_PROBE_H
#define RM_COORDINATOR_RDZV_PROBE_H

#include "coordinator/core/rdzv_state.h"

/* `go` is sent: who is barred from the ring is told, and tried later. */
void rdzv_probe_left_out(const struct turn *turn);
/* Another process came under this number: it is tried soon. */
void rdzv_probe_newcomer(const struct turn *turn, int worker);
/* An answer to a probe. */
void rdzv_probed(const struct turn *turn, const struct rdzv_worker *w, const struct msg_probed *m);
/* Ends a probe that nobody answers, begins the next one that is due: while it is TRAINING. */
void rdzv_settle_probes(const struct turn *turn);
/* When rdzv_settle_probes has something to do; RM_NEVER: not by time alone. */
rm_time rdzv_probe_at(const struct rdzv *st);

#endif
