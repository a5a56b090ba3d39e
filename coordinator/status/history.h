/* What a coordinator has told so far, as much of it as its pages repeat: /v1/status, /metrics, and the
 * summary that is left behind at the end.
 *
 * The shell notes every tell; everything here is bounded and plain memory. `revision` grows with whatever a
 * watcher should hear of at once, so that a watcher may ask for what is newer than it knows: a change of the
 * state or its sentence, each event but steps, and a step now and then. Pure but for the memory of text. */
#ifndef RM_COORDINATOR_HISTORY_H
#define RM_COORDINATOR_HISTORY_H

#include "common/wire/exposition.h"
#include "coordinator/core/rdzv.h"

enum {
    HISTORY_RECOVERY_BOUNDS = 13,
    HISTORY_EVENTS = 64,
    STATUS_BYTES_MAX = 1024 * RM_WORKERS_MAX,
    RESULT_BYTES_MAX = 4096
};

struct history_event {
    int64_t sequence; /* from 1 */
    int64_t wall_ms;
    struct rdzv_tell tell; /* without the members of a ring */
};

/* The newest loss, or leave, of a worker. */
struct history_going {
    bool known;
    int attempt;
    int64_t wall_ms;
    char cause[RM_WHY_MAX];
};

struct history {
    int64_t revision;
    enum rdzv_state state;
    char why[MSG_DETAIL_MAX];
    int listed;         /* workers on the page */
    rm_time step_noted; /* when a step last counted as news */
    int64_t events;     /* all that were noted; the newest are kept at sequence % HISTORY_EVENTS */
    struct history_event event[HISTORY_EVENTS];
    int64_t formed_wall_ms;
    struct history_going lost[RM_WORKERS_MAX], left[RM_WORKERS_MAX];
    struct {
        int64_t count, wall_ms, step, bytes, bytes_all;
        bool final;
        rm_time took_all;
    } checkpoint;
    int64_t recoveries[CAUSES], redone_announced, redone_sudden;
    rm_time detect, agree, ring, state_time, first_step, total; /* of all recoveries together */
    int64_t took[HISTORY_RECOVERY_BOUNDS + 1]; /* how many took how long (history_recovery_bounds) */
    bool over;
    struct rdzv_tell end; /* complete, failed or interrupted */
};

/* Seconds: a recovery of took[i] took that long at most, and longer than the bound before. */
extern const double history_recovery_bounds[HISTORY_RECOVERY_BOUNDS];

/* Who is asked about. Strings are borrowed. */
struct history_terms {
    int64_t wall_ms;            /* it is now */
    const char *job;            /* what tells this job from others of its name */
    const char *checkpoint_uri; /* of the job */
    const char *waits_for;      /* said instead of the core's sentence, which has not begun; NULL: it has */
    int64_t told; /* by its sequence, the newest event that who asks knows: no older one, nor that; 0: none */
    bool unfenced; /* the store does not make sure that there is one owner of the checkpoints */
    const struct error *store_waits; /* why a store keeps it from beginning, or does not take its checkpoints
                                        as it is another's; NULL: none */
};

void history_note(struct history *c, const struct rdzv_tell *tell, int64_t wall_ms, rm_time now);
/* What the history doesn't keep has changed, as what is waited for before the core begins. */
void history_news(struct history *c);
/* Whether that worker stands on the page: it is there, or waited for. */
bool history_lists(const struct rdzv *st, int worker);
/* After each step of the core. That a worker is gone is news by itself: one that was let go ends no state,
 * and its pod's operator waits to hear of it. */
void history_look(struct history *c, const struct rdzv *st);

/* GET /v1/status: docs/coordinator-status.md. At most STATUS_BYTES_MAX bytes: the oldest events go first. */
void history_print_status(const struct history *c, const struct rdzv *st, const struct history_terms *terms,
                          rm_time now, struct str *out);
/* GET /metrics: docs/metrics.md. The page was begun, and is ended, by the caller. */
void history_print_metrics(const struct history *c, const struct rdzv *st, rm_time now,
                           struct exposition *page);
/* The `result` of the status alone, for whom the program's end is all that is left; "null" before the end. */
void history_print_result(const struct history *c, const struct history_terms *terms, struct str *out);

#endif
