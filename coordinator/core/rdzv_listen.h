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

/* It does, and is given the state while all wait: what it listens to will be gone. */
void rdzv_listen_no_more(struct rdzv *st, struct rdzv_worker *w);
/* Who has heard nothing for long gets the state while all wait; and when the next one will have. */
void rdzv_listen_settle(const struct turn *turn);
rm_time rdzv_listen_until(const struct rdzv *st);

/* Somebody who listens has heard all of the state that the members hold, and goes on with theirs. */
bool rdzv_listen_holds(const struct rdzv *st);
/* All members have stopped. At a planned stop, where others are needed, or where what was told is held by
 * nobody else, those are told to stop who hold what these hold; where even they are too few, all who listen.
 * True: some of them have to answer. */
bool rdzv_listen_is_over(const struct turn *turn, bool needed);

#endif
