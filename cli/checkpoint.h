/* `ringmaster checkpoint list|verify URI`. */
#ifndef RM_CLI_CHECKPOINT_H
#define RM_CLI_CHECKPOINT_H

#include "common/base/error.h"

/* arguments: "list" or "verify" and a folder, NULL-terminated. The exit code, or -1 with *err. */
int checkpoint_command(char **arguments, struct error *err);

#endif
