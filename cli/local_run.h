/* The processes of a run: the coordinator and the workers, their pipes, what they say, and their ends.
 *
 * local_run_to_its_end starts them, obeys the coordinator's events, does the drills, starts dead workers
 * again, and returns when every process has ended and everything they wrote was read. The job and its key go
 * to them as anonymous memory files (/proc/PID/fd/N of this process), so nothing of them is ever on a disk.
 * All children die with this process (PDEATHSIG, and their pipes close). */
#ifndef RM_CLI_LOCAL_RUN_H
#define RM_CLI_LOCAL_RUN_H

#include "cli/console.h"
#include "cli/prepare.h"

struct local_run_options {
    const struct prepared *prepared;
    struct drill_list *drills;
    struct console *console;
    struct report *report; /* initialised */
    int port;
};

/* The exit code; -1 with *err where it could not start. Its final sentence is on stderr already. */
int local_run_to_its_end(const struct local_run_options *options, struct error *err);

#endif
