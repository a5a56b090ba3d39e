/* Workers whose machines will go, and that train on meanwhile: when the leave of each begins.
 *
 * Such a worker is a member like any other until its place is taken, or until its machine's time is only what
 * a leave takes. Who comes takes a place: the next ring has those who stay, and of those who go as many as
 * fill it up to as many members as it had, or the job wants; the others go. So join and leave are one change,
 * and where that ring comes to nothing those who go are still there. */
#ifndef RM_COORDINATOR_RDZV_WILL_H
#define RM_COORDINATOR_RDZV_WILL_H

#include "coordinator/core/rdzv_state.h"

/* Lets the leaves begin that are due, and with one those that would be due within a second. */
void rdzv_will_settle(const struct turn *turn);
/* How much of its machine's time a leave takes that begins now, by what leaves took; others_stay: somebody
 * holds what goes, so that it need not be saved. -1: it is, and no save was measured. */
rm_time rdzv_will_takes(const struct rdzv *st, bool others_stay);
/* When the next one is due by time; RM_NEVER: none. */
rm_time rdzv_will_at(const struct rdzv *st);

/* It goes, and another one may have its place: not where its machine was left a moment ago (rdzv_machine.h).
 */
bool rdzv_will_makes_room(const struct rdzv *st, const struct rdzv_worker *w);
/* Such members of the ring as it stands. */
int rdzv_will_members(const struct rdzv *st);
/* Takes out of the members that were chosen for the next ring those who go and whose places others have;
 * before: members of the ring as it stood. */
void rdzv_will_make_room(struct rdzv *st, int before);

#endif
