/* A ring as others see it. */
#ifndef RM_COORDINATOR_RDZV_RING_H
#define RM_COORDINATOR_RDZV_RING_H

#include "coordinator/core/rdzv_state.h"

/* Fills in how the others reach a worker; the role stays as it is. */
void rdzv_fill_member(const struct rdzv *st, struct msg_member *m, int worker);
/* Tells that the ring is formed, and who joined it. */
void rdzv_tell_formed(const struct turn *turn);

/* A step of this ring took that long, in ns. */
void rdzv_ring_paced(struct rdzv *st, double took);
/* Whether step_time is that of a ring of this size: until its first step it is another one's. */
bool rdzv_ring_has_pace(const struct rdzv *st);

#endif
