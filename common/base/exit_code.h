/* How a program ends, as scripts, `run`, the operator and people read it: one list for all programs. */
#ifndef RM_BASE_EXIT_CODE_H
#define RM_BASE_EXIT_CODE_H

struct str;

enum exit_code {
    EXIT_DONE = 0,
    EXIT_USAGE = 2,         /* the command line or the job file */
    EXIT_DATA = 3,          /* training data or a checkpoint; another machine's arithmetic */
    EXIT_MACHINE = 4,       /* port, disk, memory, a system call; whatever else has no code of its own */
    EXIT_TRAINING = 5,      /* NaN, failures over budget */
    EXIT_TOO_FEW = 6,       /* too few workers; a checkpoint is saved */
    EXIT_INTERRUPTED = 130, /* a person stopped it; a checkpoint is saved */
};

/* The table of docs/exit-codes-and-events.md: a row each. */
void exit_codes_markdown(struct str *out);

#endif
