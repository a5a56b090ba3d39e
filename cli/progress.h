/* How far a command is that reads or copies many bytes: one line of standard error, on a terminal alone. */
#ifndef RM_CLI_PROGRESS_H
#define RM_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/time.h"

/* What stands on the last line of a terminal while bytes move. */
struct progress {
    bool terminal;
    const char *what; /* "verify final" */
    int64_t moved, all;
    rm_time begin, drawn;
};

void progress_begin(struct progress *p, const char *what, int64_t all);
void progress_moved(void *progress, int64_t bytes); /* so many more; a struct progress */
void progress_end(struct progress *p);              /* takes the line away */

#endif
