/* Makes a whole tree of processes stand still, and go on. What had stopped by itself before stays stopped
 * then. */
#ifndef RM_LAUNCH_STANDSTILL_H
#define RM_LAUNCH_STANDSTILL_H

#include <stdbool.h>

#include "common/base/error.h"

struct standstill;

/* SIGSTOP to all below this process but for `spared` and what is below that (0: nobody), again until nothing
 * new appears: a process may start another one before it is told. NULL: not all of them stand still, and
 * none is held. Blocks, for as long as that takes. */
struct standstill *standstill_begin(long spared, struct error *err);
/* They go on, and what it is is freed. NULL is fine. */
void standstill_end(struct standstill *s);

#endif
