/* `ringmaster checkpoint list|verify|export|delete`: see checkpoint_usage. */
#ifndef RM_CLI_CHECKPOINT_H
#define RM_CLI_CHECKPOINT_H

#include "common/base/error.h"

/* The words behind `checkpoint`, NULL-terminated. The exit code, or -1 with *err. */
int checkpoint_command(int argc, char **argv, struct error *err);

#endif
