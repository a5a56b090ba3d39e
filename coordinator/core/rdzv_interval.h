/* checkpoint.every: Auto. What a save costs is measured by the time from step to step, while a snapshot is
 * taken, written and published, and while none is; how often all who held the state were lost shows where a
 * ring begins from a checkpoint that is older than what they held. What comes of both (interval.h) is told to
 * the ring and to the person. Without settings.max_loss nothing of this happens. */
#ifndef RM_COORDINATOR_RDZV_INTERVAL_H
#define RM_COORDINATOR_RDZV_INTERVAL_H

#include "coordinator/core/interval.h"
#include "coordinator/core/rdzv_state.h"

/* A predecessor's knowledge; to be called once its progress is known (rdzv.told). */
void rdzv_interval_restore(struct rdzv *st);
/* A ring begins to train, or goes on under this coordinator: counts the loss that it begins with, if any, and
 * tells its members the time. */
void rdzv_interval_begins(const struct turn *turn);
/* A member of the ring that trains says hello again. */
void rdzv_interval_again(const struct turn *turn, const struct rdzv_worker *w);
/* Progress of the current ring, as any of its members tells it. */
void rdzv_interval_step(const struct turn *turn, const struct msg_progress *p);
/* That step's checkpoint is safe. To be called before an outage of the store is over by it. */
void rdzv_interval_published(const struct turn *turn, int64_t step);

/* What is known now. settings.max_loss is not 0. */
struct interval_facts rdzv_interval_facts(const struct rdzv *st, rm_time now);

#endif
