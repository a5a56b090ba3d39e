/* How far a user's program says that it is, one whose reports stand still, and what became of its snapshots.
 * A launcher says the reports again and again (struct msg_reported), so that nothing is kept for who did not
 * hear: a successor knows them after a heartbeat. */
#ifndef RM_COORDINATOR_RDZV_REPORT_H
#define RM_COORDINATOR_RDZV_REPORT_H

#include "coordinator/core/rdzv_turn.h"
#include "coordinator/core/rdzv_types.h"

struct rdzv_worker;

/* A worker's launcher says it. The worker with the lowest rank that says any speaks for the program. The
 * program is stopped where its step was the same for longer than stepTimeout: one failure. */
void rdzv_reported(const struct turn *turn, struct rdzv_worker *w, const struct message *m);

/* A worker's launcher says it: what became of a snapshot of the program's processes. */
void rdzv_frozen(const struct turn *turn, const struct message *m);

#endif
