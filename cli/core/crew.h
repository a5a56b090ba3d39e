/* Which workers of a run live, which attempt each is at, and whether one that ended is started again.
 *
 * The coordinator counts failures, those of workers that it never saw too: it learns of them by the next
 * attempt. Where it does not put a worker into quarantine or end the job in time (it may have died in
 * between), those that ended before they were ever in a ring end it here, one later. Pure. */
#ifndef RM_CLI_CREW_H
#define RM_CLI_CREW_H

#include <stdbool.h>

#include "common/base/limits.h"
#include "common/base/str.h"
#include "common/base/time.h"

struct crew_member {
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

struct crew {
    int workers_max, restarts_max;
    rm_time within;
    struct crew_member member[RM_WORKERS_MAX];
    int unseen; /* workers that ended before they were seen, in the window that began at unseen_since */
    rm_time unseen_since;
};

enum crew_verdict {
    CREW_GONE,    /* it stays away */
    CREW_RESTART, /* start it again: crew_start gives the attempt */
    CREW_NEXT,    /* it stays away, and the newcomer that its index was promised to can start */
    CREW_FAIL,    /* the whole run can't succeed: exit_code and why say so */
};

struct crew_exit {
    int worker, code, signal; /* signal 0: it exited by itself with code */
};

struct crew_decision {
    enum crew_verdict verdict;
    int exit_code;
    char why[RM_WHY_MAX];
};

void crew_init(struct crew *crew, int workers_max, int restarts_max, rm_time within);
/* Lowest index below max for a newcomer; -1: all are taken. One whose worker was taken away on order is free
 * though its process may not have ended yet: then `alive` still holds, and crew_promise is what to do. */
int crew_free_index(const struct crew *crew);
void crew_promise(struct crew *crew, int worker);
/* Marks worker w as alive and returns its attempt: 0 the first time, one more each time. */
int crew_start(struct crew *crew, int worker);
void crew_drilled(struct crew *crew, int worker);
void crew_stopped(struct crew *crew, int worker);
void crew_seen(struct crew *crew, int worker);
void crew_released(struct crew *crew, int worker);
void crew_quarantined(struct crew *crew, int worker);
int crew_living(const struct crew *crew);
struct crew_decision crew_exited(struct crew *crew, const struct crew_exit *exit, rm_time now);

/* The `expect` line for the coordinator, with its newline: all who live or are on their way. */
void crew_expect(const struct crew *crew, struct str *out);

#endif
