/* Who comes while a ring trains, and holds nothing, listens (trainer/io/transfer_listen.h): it is no member
 * until it has a state that goes on with the others'. No ring waits for what it has not heard yet: a stop
 * leaves it out, unless too few would be left without it. */
#ifndef RM_COORDINATOR_RDZV_LISTEN_H
#define RM_COORDINATOR_RDZV_LISTEN_H

#include "coordinator/core/rdzv_state.h"
#include "coordinator/core/rdzv_turn.h"

/* Those who want to join may be told to listen, and this one is worth it. */
void rdzv_listen(const struct turn *turn, struct rdzv_worker *w);
void rdzv_heard(const struct turn *turn, struct rdzv_worker *w, const struct msg_heard *m);

/* It is no member, and is not told to stop with the others: what it has heard would be lost, or it would miss
 * their last step. */
bool rdzv_listens_on(const struct rdzv_worker *w);

/* All members have stopped. At a planned stop, or where others are needed, those are told to stop who hold
 * what these hold; where even they are too few, all who listen. True: some of them have to answer. */
bool rdzv_listen_is_over(const struct turn *turn, bool needed);

/* It is there again. What it said of it may be lost: it is asked once more. */
void rdzv_listen_hello(struct rdzv_worker *w, bool same_trainer);
void rdzv_listen_stopped(struct rdzv_worker *w);
/* It has stopped, with less than who receives one update needs to go on from that state. */
bool rdzv_listen_missed(const struct rdzv_worker *w, const struct msg_state *held);
/* A ring trains: who had to stop for it, and is not in it, has to listen anew; the second time it is given
 * up, and gets the state as a ring is formed: steps are too short for it. */
void rdzv_listen_trains(struct rdzv_worker *w);

#endif
