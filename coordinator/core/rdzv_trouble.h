/* Who fails at what, and for how long. What is done about it is rdzv_remedy.h's. */
#ifndef RM_COORDINATOR_RDZV_TROUBLE_H
#define RM_COORDINATOR_RDZV_TROUBLE_H

#include "coordinator/core/rdzv_state.h"

/* Notes a fault, and asks the table of rdzv_fault.h what follows. proven: it was shown to be no passing one.
 */
struct fault_decision rdzv_trouble(const struct turn *turn, struct rdzv_worker *w, enum fault_where where,
                                   const struct msg_fault *f, bool proven);
/* The worker has done that well. */
void rdzv_trouble_over(struct rdzv_worker *w, enum fault_where where);
/* A step is made: all members can do their work. */
void rdzv_trouble_step(struct rdzv *st);
/* The worker wrote its slice of that step; anew: it was not known before. */
void rdzv_slice_is_in(struct rdzv *st, struct rdzv_worker *w, int64_t step, bool anew);
/* A write of that step ended well; trouble with a newer one stays. */
void rdzv_write_is_over(struct rdzv_worker *w, int64_t step);
/* A ring goes on from that step, which may be older than what could not be written. */
void rdzv_writes_go_back(struct rdzv *st, int64_t step);
/* With those in trouble there would be enough: no other time runs out meanwhile. */
bool rdzv_waits_for_trouble(const struct rdzv *st);
/* When the next worker is held back no longer. */
rm_time rdzv_trouble_at(const struct rdzv *st);
/* Of those who have been failing at listing or reading checkpoints for FAULT_PATIENCE, while nobody else can,
 * the one heard last; NULL: it is not so. Borrowed from st. */
const struct rdzv_trouble *rdzv_store_trouble(const struct rdzv *st, rm_time now);
/* Writes a part of a sentence; returns its length, 0 where the worker is in no trouble. */
int rdzv_describe_trouble(const struct rdzv *st, int worker, char *out, size_t size);

#endif
