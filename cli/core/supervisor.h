/* Which workers of a run live, which attempt each is at, and whether one that ended is started again.
 *
 * The coordinator counts failures, those of workers that it never saw too: it learns of them by the next
 * attempt. Where it does not put a worker into quarantine or end the job in time (it may have died in
 * between), those that ended before they were ever in a ring end it here, one later. Pure. */
#ifndef RM_CLI_SUPERVISOR_H
#define RM_CLI_SUPERVISOR_H

#include <stdbool.h>

#include "common/base/limits.h"
#include "common/base/str.h"
#include "common/base/time.h"

struct supervised_worker {
    bool alive;       /* its process is there (or about to be) */
    bool drilled;     /* taken away on order: not replaced */
    bool promised;    /* its index belongs to a newcomer as soon as its process has ended */
    bool seen;        /* this attempt was in a ring */
    bool stands;      /* a drill stopped its process: it keeps its index until that has ended */
    bool stopped;     /* given up while its process stands still: not expected any more */
    bool released;    /* the coordinator let it go */
    bool quarantined; /* the coordinator takes nobody under this index any more */
    int attempt;      /* of the living process, or of the last one; -1: never started */
};

struct supervisor {
    int workers_max, restarts_max;
    rm_time within;
    struct supervised_worker member[RM_WORKERS_MAX];
    int unseen; /* workers that ended before they were seen, in the window that began at unseen_since */
    rm_time unseen_since;
};

enum supervisor_action {
    SUPERVISOR_GONE,    /* it stays away */
    SUPERVISOR_RESTART, /* start it again: supervisor_start gives the attempt */
    SUPERVISOR_NEXT,    /* it stays away, and the newcomer that its index was promised to can start */
    SUPERVISOR_FAIL,    /* the whole run can't succeed: exit_code and why say so */
};

struct supervisor_exit {
    int worker, code, signal; /* signal 0: it exited by itself with code */
};

struct supervisor_decision {
    enum supervisor_action action;
    int exit_code;
    char why[RM_WHY_MAX];
};

void supervisor_init(struct supervisor *supervisor, int workers_max, int restarts_max, rm_time within);
/* Lowest index below max for a newcomer; -1: all are taken. One whose worker was taken away on order is free
 * though its process may not have ended yet: then `alive` still holds, and supervisor_promise is what to do.
 */
int supervisor_free_index(const struct supervisor *supervisor);
void supervisor_promise(struct supervisor *supervisor, int worker);
/* Marks worker w as alive and returns its attempt: 0 the first time, one more each time. */
int supervisor_start(struct supervisor *supervisor, int worker);
void supervisor_drilled(struct supervisor *supervisor, int worker);
void supervisor_stopped(struct supervisor *supervisor, int worker);
void supervisor_seen(struct supervisor *supervisor, int worker);
void supervisor_released(struct supervisor *supervisor, int worker);
void supervisor_quarantined(struct supervisor *supervisor, int worker);
int supervisor_living(const struct supervisor *supervisor);
struct supervisor_decision supervisor_exited(struct supervisor *supervisor,
                                             const struct supervisor_exit *exit, rm_time now);

/* The `expect` line for the coordinator, with its newline: all who live or are on their way. */
void supervisor_expect(const struct supervisor *supervisor, struct str *out);

#endif
