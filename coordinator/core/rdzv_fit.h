/* Who fits the job, and what the job is. */
#ifndef RM_COORDINATOR_RDZV_FIT_H
#define RM_COORDINATOR_RDZV_FIT_H

#include "coordinator/core/rdzv_state.h"

/* True where this worker can't take part; *ret then says why. What the job is gets learnt from who comes. */
bool rdzv_is_unfit(const struct turn *turn, const struct msg_hello *h, struct msg_abandon *ret);

/* The job goes on from this checkpoint (NULL: from none that is known): whoever computes in another
 * arithmetic than it was made in, or sees other data than it was trained on, is sent away. False: somebody
 * was. */
bool rdzv_fit_checkpoint(const struct turn *turn, const struct msg_checkpoint *newest);
/* Bits of several kinds of machines came together, as the job allows. */
bool rdzv_is_mixed(const struct rdzv *st);

#endif
