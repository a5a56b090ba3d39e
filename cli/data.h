/* `ringmaster data index`, as the manual has it. */
#ifndef RM_CLI_DATA_H
#define RM_CLI_DATA_H

#include "cli/core/manual.h"

/* argv[0] is its verb. The exit code, or -1 with *err. */
int data_command(const struct manual_command *command, int argc, char **argv, struct error *err);

#endif
