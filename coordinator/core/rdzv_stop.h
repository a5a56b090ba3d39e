/* How a ring stops, and whom it loses. */
#ifndef RM_COORDINATOR_RDZV_STOP_H
#define RM_COORDINATOR_RDZV_STOP_H

#include "coordinator/core/rdzv_state.h"

/* Begins a round of stops: of the members at a common boundary, or at once, and of everybody else at once.
 * Who is away when all stop at once is lost, but with a program, whose processes may live there: it is waited
 * for until lostAfter. */
void rdzv_quiesce(const struct turn *turn, enum msg_stop_at at);
/* At once, for the sake of those outside of the ring: their answers are waited for, too. */
void rdzv_quiesce_for_all(const struct turn *turn);
/* The same at once for a ring that a predecessor was about to stop, as it seems: nobody is lost, so that a
 * program's processes have the time that they were given. */
void rdzv_quiesce_on(const struct turn *turn);
/* The same to one worker alone, of the round under way: to a member as to all, to anybody else at once. */
void rdzv_stop_one(const struct turn *turn, struct rdzv_worker *w);
/* How long a program's processes have to end, as in msg_stop: a second where the time that was told is over.
 */
rm_time rdzv_stop_within(const struct rdzv *st, rm_time now);
/* Somebody has less time than was told with the stop under way: those who have not answered are told again.
 */
void rdzv_stop_sooner(const struct turn *turn);
/* A worker answered a stop, with the state that it holds. */
void rdzv_stopped(const struct turn *turn, struct rdzv_worker *w, const struct message *m);
/* A stop at once was sent to this worker: it owes the answer since then. */
void rdzv_stop_asked(struct rdzv_worker *w, rm_time now);
/* The ring can't go on with this worker in it: a member leaves it, and the others stop at once. */
void rdzv_ring_without(const struct turn *turn, struct rdzv_worker *w, enum cause cause);
/* This worker is gone: its connection is closed and forgotten. The loss of a member is told, and its ring
 * goes on without it. */
void rdzv_lose(const struct turn *turn, struct rdzv_worker *w, const char *why);

#endif
