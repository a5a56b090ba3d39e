/* `ringmaster-agent launch` of a job in mode Elastic: a trainer, and the user's program that computes for it.
 *
 * What agent and trainer say to each other passes through here unchanged. The trainer listens for the program
 * at a socket in a folder of its own (0700), whose path the program finds as RINGMASTER_SOCKET. The two live
 * and die together: the state is in the program's memory, the words and the ring in the trainer's. Whichever
 * ends first, the other is ended, with all that the program started, and then this process: as the trainer
 * ended where that was first, else after telling a fault of the kind FAULT_PROGRAM with the program's last
 * word. Only a program whose trainer was released may go on to its end, for its gracePeriod. */
#ifndef RM_LAUNCH_PAIR_H
#define RM_LAUNCH_PAIR_H

#include <stdbool.h>

#include "common/base/error.h"

struct pair_options {
    int link_fd;               /* to the agent (common/net/link.h) */
    int state_fd, snapshot_fd; /* memory files, for the trainer */
    bool shared;               /* others write to this stdout, too, and have a share in the CPUs */
};

/* Returns the exit code. */
int pair_run(const struct pair_options *options);

#endif
