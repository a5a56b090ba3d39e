/* Drills: faults made on purpose, so that a person or a test sees what they cost.
 *
 *     kill:W@S     SIGKILL to worker W's agent and trainer once step S is committed
 *     trainer:W@S  SIGKILL to its trainer alone
 *     term:W@S     SIGTERM to its agent: an announced leave
 *     join@S       one more worker, at the lowest free index
 *     stop:W@S     SIGSTOP to worker W's agent and trainer
 *     hang:W@S     SIGSTOP to its trainer alone, or to its program of mode Restart
 *     coordinator@S  SIGKILL to the coordinator; a successor takes over
 *     corrupt:W@S  a bit flips in what worker W adds to the next step that it exchanges
 *     random:SEED  a history drawn from a seed that never goes below workers.min
 *
 * Instead of a step a time may stand, "kill:1@20s": so long after the first ring was formed. It is the only
 * way for a program, whose steps nobody knows. A list has steps or times.
 *
 * drill_add reads one, drill_list_check puts them in order and plays them through against the workers that
 * each leaves, drill_due hands them out as steps go by. Pure. */
#ifndef RM_CLI_DRILL_H
#define RM_CLI_DRILL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "common/base/time.h"
#include "common/wire/event.h"

enum drill_kind {
    DRILL_KILL,
    DRILL_TRAINER,
    DRILL_TERM,
    DRILL_JOIN,
    DRILL_COORDINATOR,
    DRILL_STOP,
    DRILL_HANG,
    DRILL_CORRUPT, /* the last: no random history has it */
};

enum { DRILLS_MAX = 256, DRILL_TEXT_MAX = 40 };

struct drill {
    enum drill_kind kind;
    int worker; /* -1 for join and coordinator */
    int64_t step;
    rm_time after;             /* where the list is timed, ns; step means nothing then */
    char spec[DRILL_TEXT_MAX]; /* as it was written */
};

struct drill_list {
    int count, next;
    bool timed;
    bool random;
    uint64_t seed;
    struct drill drill[DRILLS_MAX];
};

/* What a list is checked against. */
struct drill_terms {
    int workers_min, workers_max, workers_target;
    int64_t steps, resume_step; /* resume_step: 0 where training starts anew; steps: 0 of a program */
    bool proven;                /* sums carry checksums: a wrong one is seen */
};

/* Reads one drill as written on the command line; ERR_USAGE with the form that was meant. */
int drill_add(struct drill_list *list, const char *text, struct error *err);

/* Sorts by step (those at one step stay in order), draws a random history, and refuses what can't be:
 * a step outside [1, steps) or already behind the resume step, a worker that is not there at that moment,
 * more workers at once than max. ERR_USAGE. */
int drill_list_check(struct drill_list *list, const struct drill_terms *terms, struct error *err);

/* The next drill whose step has come, NULL where there is none (yet). */
const struct drill *drill_due(struct drill_list *list, int64_t step);
/* The same of a timed list, and when its next one comes; RM_NEVER: there is none. */
const struct drill *drill_due_after(struct drill_list *list, rm_time elapsed);
rm_time drill_next_after(const struct drill_list *list);

/* The cause that `run` names in the command `act`, by which the coordinator hears of the drill before it is
 * done. */
enum cause drill_cause(enum drill_kind kind);

#endif
