#include "common/wire/event.h"

#include <string.h>

enum { STEP = EVENT_HAS_STEP, WORKER = EVENT_HAS_WORKER };

static const struct event_row rows[EVENT_KINDS] = {
    [EVENT_LISTENING] = {"listening", .has = EVENT_HAS_ADDRESS},
    [EVENT_WORKER_FAILED] = {"workerFailed", .has = WORKER},
    [EVENT_WORKER_REFUSED] = {.name = "workerRefused"},
    [EVENT_RELEASED] = {"released", .has = WORKER},
    [EVENT_CHECKPOINT_LOADED] = {.name = "checkpointLoaded"},
    [EVENT_CHECKPOINT_REFUSED] = {.name = "checkpointRefused"},
    [EVENT_ALIVE] = {.name = "alive"},

    [EVENT_RING_FORMED] = {"ringFormed", .has = STEP, .reason = "RingFormed"},
    [EVENT_STEP] = {"step", .has = STEP},
    [EVENT_WORKER_LOST] = {"workerLost", .has = WORKER, .reason = "WorkerLost", .warning = true},
    [EVENT_WORKER_LEFT] = {"workerLeft", .has = WORKER, .reason = "WorkerLeft"},
    [EVENT_WORKER_JOINED] = {"workerJoined", .has = WORKER, .reason = "WorkerJoined"},
    [EVENT_WORKER_QUARANTINED] = {"workerQuarantined", .has = WORKER, .reason = "Quarantined",
                                  .warning = true},
    [EVENT_WORKER_LEFT_OUT] = {"workerLeftOut", .has = WORKER, .reason = "WorkerLeftOut", .warning = true},
    [EVENT_JOIN_SKIPPED] = {.name = "joinSkipped"},
    [EVENT_EVALUATED] = {"evaluated", .has = STEP},
    [EVENT_CHECKPOINT_SAVED] = {"checkpointSaved", .has = STEP, .reason = "CheckpointSaved"},
    [EVENT_CHECKPOINT_WAITING] = {"checkpointWaiting", .has = STEP, .reason = "CheckpointWaiting",
                                  .warning = true},
    [EVENT_CHECKPOINT_SKIPPED] = {"checkpointSkipped", .has = STEP},
    [EVENT_RECOVERED] = {"recovered", .reason = "Recovered"},
    [EVENT_WAITING] = {"waiting", .reason = "Waiting"},
    [EVENT_FAILED] = {"failed", .has = EVENT_HAS_EXIT_CODE},
    [EVENT_INTERRUPTED] = {"interrupted", .has = STEP},
    [EVENT_COMPLETE] = {"complete", .has = STEP},

    [EVENT_STARTED] = {.name = "started"},
    [EVENT_RESUMED] = {.name = "resumed"},
    [EVENT_DRILL] = {"drill", .has = STEP},
};

const struct event_row *event_row(enum event_kind kind)
{
    return &rows[kind];
}

const char *event_name(enum event_kind kind)
{
    return rows[kind].name;
}

enum event_kind event_of_name(const char *name)
{
    int kind = 0;
    while (kind < EVENT_KINDS && strcmp(rows[kind].name, name) != 0)
        kind++;
    return (enum event_kind)kind;
}

static const char *const cause_names[CAUSES] = {
    [CAUSE_NONE] = "None",
    [CAUSE_WORKER_LOST] = "WorkerLost",
    [CAUSE_WORKER_LEFT] = "WorkerLeft",
    [CAUSE_WORKER_JOINED] = "WorkerJoined",
    [CAUSE_TRAINER_EXIT] = "TrainerExit",
    [CAUSE_HANG] = "Hang",
    [CAUSE_RING_ERROR] = "RingError",
    [CAUSE_COORDINATOR_LOST] = "CoordinatorLost",
};

const char *cause_name(enum cause cause)
{
    return cause_names[cause];
}

enum cause cause_of_name(const char *name)
{
    int cause = 0;
    while (cause < CAUSES && strcmp(cause_names[cause], name) != 0)
        cause++;
    return (enum cause)cause;
}
