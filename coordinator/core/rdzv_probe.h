/* How who was left out because it and others can't reach each other comes back. */
#ifndef RM_COORDINATOR_RDZV_PROBE_H
#define RM_COORDINATOR_RDZV_PROBE_H

#include "coordinator/core/rdzv_state.h"

void rdzv_probe_left_out(
    struct rdzv *st, rm_time now,
    struct rdzv_out *out); /* a ring goes: who is barred from it is told, and tried later */
void rdzv_probe_newcomer(struct rdzv *st, int worker, rm_time now); /* another process under this index */
void rdzv_probed(struct rdzv *st, const struct rdzv_worker *w, const struct msg_probed *m, rm_time now);
void rdzv_settle_probes(struct rdzv *st, rm_time now, struct rdzv_out *out); /* in TRAINING */
rm_time rdzv_probe_at(const struct rdzv *st);

#endif
