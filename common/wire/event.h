/* The names of the events: one row each, for who tells one and for everybody who reads it.
 *
 * A coordinator tells its events to `run` (a JSON object a line) and on its status page, where the operator
 * reads them; `run` tells most of them on, and some of its own (docs/exit-codes-and-events.md). A row is what
 * all of these have to agree on; what else a new event needs, CONTRIBUTING.md says. */
#ifndef RM_WIRE_EVENT_H
#define RM_WIRE_EVENT_H

#include <stdbool.h>

enum event_kind {
    EVENT_LISTENING,          /* between coordinator and run alone: not shown */
    EVENT_WORKER_FAILED,      /* a failure of this worker was counted */
    EVENT_WORKER_REFUSED,     /* this worker does not fit the job */
    EVENT_RELEASED,           /* this worker may exit */
    EVENT_CHECKPOINT_LOADED,  /* the ring starts from this checkpoint */
    EVENT_CHECKPOINT_REFUSED, /* this one did not load */
    EVENT_ALIVE,
    EVENT_SHOWN, /* from here on: shown by --output json */
    EVENT_RING_FORMED = EVENT_SHOWN,
    EVENT_STEP,
    EVENT_WORKER_LOST,
    EVENT_WORKER_LEFT,
    EVENT_WORKER_JOINED,
    EVENT_WORKER_QUARANTINED,
    EVENT_WORKER_LEFT_OUT, /* it and another one can't reach each other: the ring is formed without it */
    EVENT_WORKER_DIFFERS,  /* its state is not that of the others: it gets theirs */
    EVENT_PROOF_FAILED,    /* what this worker was given as a step's sum is not that: nobody commits it */
    EVENT_WORKER_SLOW,     /* a lane has taken this worker much longer than most, for many steps */
    EVENT_NOTICE_RECEIVED, /* this worker's machine will go, or may */
    EVENT_NOTICE_WITHDRAWN,
    EVENT_PROGRAM_FAILED, /* a process of the user's program failed here: all are started anew */
    EVENT_PROGRESS,       /* how far the user's program says that it is */
    EVENT_JOIN_SKIPPED,
    EVENT_EVALUATED,
    EVENT_CHECKPOINT_SAVED,
    EVENT_CHECKPOINT_WAITING,  /* once per outage of the store */
    EVENT_CHECKPOINT_INTERVAL, /* how long to train between two, where the coordinator chooses it */
    EVENT_CHECKPOINT_SKIPPED,  /* those who hold it go, and there is no time (or wish) to save it */
    EVENT_RECOVERED,
    EVENT_WAITING,
    EVENT_FAILED,
    EVENT_INTERRUPTED,
    EVENT_COMPLETE,
    EVENT_OF_RUN, /* from here on: of `run` itself, never a coordinator's */
    EVENT_STARTED = EVENT_OF_RUN,
    EVENT_RESUMED,
    EVENT_DRILL,
    EVENT_KINDS
};

/* What an event is no event without. */
enum { EVENT_HAS_STEP = 1, EVENT_HAS_WORKER = 2, EVENT_HAS_EXIT_CODE = 4, EVENT_HAS_ADDRESS = 8 };

struct event_row {
    const char *name;   /* on the wire */
    unsigned has;       /* EVENT_HAS_... */
    const char *reason; /* of the Kubernetes event that the operator makes of it; NULL: of none */
    bool warning;       /* type of that one: Warning, not Normal */
};

const struct event_row *event_row(enum event_kind kind);
const char *event_name(enum event_kind kind);

/* EVENT_KINDS: nobody's. */
enum event_kind event_of_name(const char *name);

/* The members of events: one row each (event.c). A writer and a reader name them by these alone. */
enum event_key {
    EVENT_KEY_EVENT,
    EVENT_KEY_TIME,
    EVENT_KEY_TERM,
    EVENT_KEY_GENERATION,
    EVENT_KEY_WORLD,
    EVENT_KEY_STEP,
    EVENT_KEY_STEPS,
    EVENT_KEY_WORKER,
    EVENT_KEY_RANK,
    EVENT_KEY_OUTPUT,
    EVENT_KEY_MEMBERS,
    EVENT_KEY_AGENT_PID,
    EVENT_KEY_TRAINER_PID,
    EVENT_KEY_LOSS,
    EVENT_KEY_TOKENS_PER_SECOND,
    EVENT_KEY_SAMPLES_PER_SECOND,
    EVENT_KEY_GRADIENT_NORM,
    EVENT_KEY_CLIP_FACTOR,
    EVENT_KEY_LEARNING_RATE,
    EVENT_KEY_CAUSE,
    EVENT_KEY_SOURCE,
    EVENT_KEY_CERTAINTY,
    EVENT_KEY_LEFT_SECONDS,
    EVENT_KEY_REASON,
    EVENT_KEY_DETAIL,
    EVENT_KEY_ATTEMPT,
    EVENT_KEY_URI,
    EVENT_KEY_BYTES,
    EVENT_KEY_MS,
    EVENT_KEY_FROZEN_MS,
    EVENT_KEY_WAITED_SECONDS,
    EVENT_KEY_EVERY_SECONDS,
    EVENT_KEY_AGE_SECONDS,
    EVENT_KEY_EXIT_CODE,
    EVENT_KEY_PROGRAM_EXIT_CODE,
    EVENT_KEY_WEIGHTS_SHA256,
    EVENT_KEY_EXACT,
    EVENT_KEY_GOODPUT,
    EVENT_KEY_AT,
    EVENT_KEY_SPENT,
    EVENT_KEY_SAVES,
    EVENT_KEY_ADDRESS,
    EVENT_KEY_METRICS,
    EVENT_KEY_STEPS_REDONE,
    EVENT_KEY_COORDINATOR_PID,
    EVENT_KEY_SPEC,
    EVENT_KEY_SKIPPED,
    EVENT_KEY_SEQUENCE,
    EVENT_KEY_DETECT_MS,
    EVENT_KEY_AGREE_MS,
    EVENT_KEY_RING_MS,
    EVENT_KEY_STATE_MS,
    EVENT_KEY_FIRST_STEP_MS,
    EVENT_KEY_TOTAL_MS,
    EVENT_KEYS
};

const char *event_key(enum event_key key); /* "tokensPerSecond" */

/* Whether an event has that member: one row an event (event_members.c). */
enum event_need { EVENT_MAY_NOT, EVENT_MAY, EVENT_MUST };
enum event_need event_need(enum event_kind kind, enum event_key key);

struct js;
enum { EVENT_WHY_MAX = 120 };
/* Whether an event that was formed has the members that it must, and no others than it may; *why is then as
 * it was. Else "step lacks loss". For who writes one: what others say may have more. */
bool event_check(const struct js *event, char why[EVENT_WHY_MAX]);
void event_assert(const struct js *event);

/* Why a ring was formed again: `cause` of a recovery, of a drill's command, and a label of the metrics. */
enum cause {
    CAUSE_NONE,
    CAUSE_WORKER_LOST,
    CAUSE_WORKER_LEFT,
    CAUSE_WORKER_JOINED,
    CAUSE_TRAINER_EXIT,
    CAUSE_HANG,
    CAUSE_RING_ERROR,
    CAUSE_COORDINATOR_LOST,
    CAUSES
};

const char *cause_name(enum cause cause);   /* "WorkerLost" */
enum cause cause_of_name(const char *name); /* CAUSES: nobody's */

#endif
