/* Where the time goes: each moment since the job began is of one class (struct rdzv_goodput). */
#ifndef RM_COORDINATOR_RDZV_GOODPUT_H
#define RM_COORDINATOR_RDZV_GOODPUT_H

#include "coordinator/core/rdzv_turn.h"
#include "coordinator/core/rdzv_types.h"

/* Adds the time since the last call to the class of the state that it was spent in; to be called before that
 * changes. */
void rdzv_account(const struct turn *turn);
/* Takes what a ring that broke has stood still from productive time, and counts it as recovery. Of a user's
 * program it takes all since its last report, and counts it as rework. */
void rdzv_count_stall(const struct turn *turn);
/* A program's processes stood still for so long, while it was taken to run: for a snapshot, or because they
 * heard of no coordinator. */
void rdzv_count_frozen(const struct turn *turn, rm_time frozen, bool waited);
/* The sums, up to now. */
struct rdzv_goodput rdzv_goodput(const struct rdzv *st, rm_time now);
/* 0..1; 0 where no time has passed. */
double rdzv_productive_share(struct rdzv_goodput g);

#endif
