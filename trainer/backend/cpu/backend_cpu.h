/* The C model on CPUs behind the table of who computes: model/ for lanes, sums/ for words and updates, and a
 * pool of threads for both. Its state lies in the memfd, and is near. */
#ifndef RM_BACKEND_CPU_H
#define RM_BACKEND_CPU_H

#include "trainer/backend/backend.h"

/* On the thread that will compute: it is thread 0 of the pool. */
int backend_cpu_open(struct backend **ret, const struct backend_options *options, struct error *err);

#endif
