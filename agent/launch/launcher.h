/* `ringmaster-agent launch`: runs a job's program on this machine in place of a trainer (core/launch.h). It
 * is a process of its own, so that whatever the program leaves behind ends up here and is ended by it, and so
 * that the agent survives what the program does to its parent. */
#ifndef RM_LAUNCHER_H
#define RM_LAUNCHER_H

#include <stdbool.h>

#include "common/base/error.h"

/* link_fd: to the agent (common/net/link.h). shared: others write to this stdout, too. Returns the exit code.
 */
int launcher_run(int link_fd, bool shared);

#endif
