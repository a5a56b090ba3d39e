/* `ringmaster checkpoint list|verify|export|delete`, as the manual has them. */
#ifndef RM_CLI_CHECKPOINT_H
#define RM_CLI_CHECKPOINT_H

#include "cli/core/manual.h"

/* command: one of those; argv[0] is its verb. The exit code, or -1 with *err. */
int checkpoint_command(const struct manual_command *command, int argc, char **argv, struct error *err);

#endif
