/* How a program ends, for scripts, people, `run` and the operator: made by error_exit_code (error.h). */
#ifndef RM_BASE_EXIT_CODE_H
#define RM_BASE_EXIT_CODE_H

struct str;

enum exit_code {
    EXIT_DONE = 0,
    EXIT_USAGE = 2,         /* the command line or the job file */
    EXIT_DATA = 3,          /* training data or a checkpoint; another machine's arithmetic */
    EXIT_MACHINE = 4,       /* port, disk, memory, a system call; what that has no row for */
    EXIT_TRAINING = 5,      /* NaN, failures over budget */
    EXIT_TOO_FEW = 6,       /* too few workers; a checkpoint is saved */
    EXIT_INTERRUPTED = 130, /* a person stopped it; a checkpoint is saved */
};

/* The table of docs/exit-codes-and-events.md: a row each. */
void exit_codes_markdown(struct str *out);

#endif
