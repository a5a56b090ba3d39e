/* `ringmaster run FILE`: a whole TrainingJob on this machine, from the checks to the exit code. */
#ifndef RM_CLI_RUN_H
#define RM_CLI_RUN_H

#include <stdbool.h>

#include "cli/core/drill.h"
#include "common/base/error.h"

enum { RUN_SETS_MAX = 128 };

struct run_options {
    const char *file;
    const char *sets[RUN_SETS_MAX];
    int sets_count;
    struct drill_list drills;
    bool json, overwrite;
    bool look; /* check alone: nothing is made, locked or deleted */
    int port;  /* of the coordinator; 0: any free one */
};

/* The documented exit code; -1 with *err where nothing was started. Where the run itself failed, its sentence
 * is on stderr already. */
int run_command(struct run_options *options, struct error *err);

#endif
