/* No process outlives the one that started it, however that one ends. */
#ifndef RM_OS_ORPHAN_H
#define RM_OS_ORPHAN_H

#include "common/base/error.h"

/* Called first in a child's main with the pid that its command line names (--parent): the kernel kills this
 * process when the thread that started it ends. -1 where the parent is already gone (ERR_MACHINE): the caller
 * then ends at once. parent_pid 0: somebody started the program by hand, nothing is done. */
int orphan_guard(int parent_pid, struct error *err);

#endif
