/* The collective between threads of one process, for tests and simulations.
 *
 * The last rank to arrive adds everybody's segments in rank order and hands the sum to all. A rank that
 * aborts or closes is gone: the others' reduce, in flight or to come, returns ERR_PEER with its rank. */
#ifndef RM_COLLECTIVE_LOCAL_H
#define RM_COLLECTIVE_LOCAL_H

#include "trainer/collective/collective.h"

/* Fills ret[0 .. world-1], one for each rank's thread; each is closed on its own. world <= RM_WORKERS_MAX. */
int local_open(struct collective **ret, int world, struct error *err);

#endif
