/* Machines that somebody left a moment ago by a notice of their end: one leave a machine and minute.
 *
 * Whoever answers a worker in its machine's name can have it leave, and then who comes to that machine next.
 * So who came to a machine after it was left so is let go by no notice before a minute is over, also where
 * its moment is nearer; by a signal it is. Who was there with the one that left may go with it. Of which
 * machine a worker is it says with its notices; who does not say it is on one of its own. A successor of this
 * coordinator knows of no leave before its time. */
#ifndef RM_COORDINATOR_RDZV_MACHINE_H
#define RM_COORDINATOR_RDZV_MACHINE_H

#include "coordinator/core/rdzv_turn.h"

struct rdzv;
struct rdzv_worker;

/* The leave of a worker begins: if by a notice, its machine is left. */
void rdzv_machine_left(const struct turn *turn, const struct rdzv_worker *w);
/* Until when no notice lets this worker go; 0: nobody left its machine before it. */
rm_time rdzv_machine_holds_until(const struct rdzv *st, const struct rdzv_worker *w);
/* That is not over. */
bool rdzv_machine_holds(const struct rdzv *st, const struct rdzv_worker *w);

#endif
