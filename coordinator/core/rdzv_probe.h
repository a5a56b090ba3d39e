/* How who was left out because it and others can't reach each other comes back. */
#ifndef RM_COORDINATOR_RDZV_PROBE_H
#define RM_COORDINATOR_RDZV_PROBE_H

#include "coordinator/core/rdzv_state.h"

void rdzv_probe_left_out(
    const struct turn *turn); /* a ring goes: who is barred from it is told, and tried later */
void rdzv_probe_newcomer(const struct turn *turn, int worker); /* another process under this index */
void rdzv_probed(const struct turn *turn, const struct rdzv_worker *w, const struct msg_probed *m);
void rdzv_settle_probes(const struct turn *turn); /* in TRAINING */
rm_time rdzv_probe_at(const struct rdzv *st);

#endif
