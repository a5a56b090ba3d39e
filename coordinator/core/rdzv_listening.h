/* How far those are who listen to a ring and are not of it (rdzv_listen.h). */
#ifndef RM_COORDINATOR_RDZV_LISTENING_H
#define RM_COORDINATOR_RDZV_LISTENING_H

#include "coordinator/core/rdzv_state.h"

/* It is no member, and is not told to stop with the others: what it has heard would be lost, or it would miss
 * their last step. Who was called in is, until it has answered. */
bool rdzv_listens_on(const struct rdzv_worker *w);
/* It is there again. What it said of it may be lost: it is asked once more. */
void rdzv_listen_hello(struct rdzv_worker *w, bool same_trainer);
void rdzv_listen_stopped(struct rdzv_worker *w);
/* It has stopped, with less than who receives one update needs to go on from that state. */
bool rdzv_listen_missed(const struct rdzv_worker *w, const struct msg_state *held);
/* A ring trains: who had to stop for it, or has stopped only now, and is not in it, has to listen anew; the
 * second time it is given up, and gets the state as a ring is formed: steps are too short for it. */
void rdzv_listen_trains(struct rdzv_worker *w);

#endif
