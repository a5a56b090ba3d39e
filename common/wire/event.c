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
    [EVENT_WORKER_DIFFERS] = {"workerDiffers", .has = WORKER, .reason = "WorkerDiffers", .warning = true},
    [EVENT_PROOF_FAILED] = {"proofFailed", .has = WORKER, .reason = "ProofFailed", .warning = true},
    [EVENT_WORKER_SLOW] = {"workerSlow", .has = WORKER, .reason = "WorkerSlow", .warning = true},
    [EVENT_NOTICE_RECEIVED] = {"noticeReceived", .has = WORKER, .reason = "NoticeReceived"},
    [EVENT_NOTICE_WITHDRAWN] = {"noticeWithdrawn", .has = WORKER, .reason = "NoticeWithdrawn"},
    [EVENT_PROGRAM_FAILED] = {"programFailed", .has = WORKER, .reason = "ProgramFailed", .warning = true},
    [EVENT_PROGRESS] = {"progress", .has = STEP},
    [EVENT_JOIN_SKIPPED] = {.name = "joinSkipped"},
    [EVENT_EVALUATED] = {"evaluated", .has = STEP},
    [EVENT_CHECKPOINT_SAVED] = {"checkpointSaved", .has = STEP, .reason = "CheckpointSaved"},
    [EVENT_CHECKPOINT_WAITING] = {"checkpointWaiting", .has = STEP, .reason = "CheckpointWaiting",
                                  .warning = true},
    [EVENT_CHECKPOINT_INTERVAL] = {.name = "checkpointInterval", .reason = "CheckpointInterval"},
    [EVENT_CHECKPOINT_SKIPPED] = {"checkpointSkipped", .has = STEP},
    [EVENT_RECOVERED] = {"recovered", .reason = "Recovered"},
    [EVENT_WAITING] = {"waiting", .reason = "Waiting"},
    [EVENT_FAILED] = {"failed", .has = EVENT_HAS_EXIT_CODE},
    [EVENT_INTERRUPTED] = {"interrupted", .has = STEP},
    [EVENT_COMPLETE] = {.name = "complete"}, /* a program's has no step */

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

static const char *const keys[EVENT_KEYS] = {
    [EVENT_KEY_EVENT] = "event",
    [EVENT_KEY_TIME] = "time",
    [EVENT_KEY_TERM] = "term",
    [EVENT_KEY_GENERATION] = "generation",
    [EVENT_KEY_WORLD] = "world",
    [EVENT_KEY_STEP] = "step",
    [EVENT_KEY_STEPS] = "steps",
    [EVENT_KEY_WORKER] = "worker",
    [EVENT_KEY_RANK] = "rank",
    [EVENT_KEY_OUTPUT] = "output",
    [EVENT_KEY_MEMBERS] = "members",
    [EVENT_KEY_AGENT_PID] = "agentPid",
    [EVENT_KEY_TRAINER_PID] = "trainerPid",
    [EVENT_KEY_LOSS] = "loss",
    [EVENT_KEY_TOKENS_PER_SECOND] = "tokensPerSecond",
    [EVENT_KEY_SAMPLES_PER_SECOND] = "samplesPerSecond",
    [EVENT_KEY_GRADIENT_NORM] = "gradientNorm",
    [EVENT_KEY_CLIP_FACTOR] = "clipFactor",
    [EVENT_KEY_LEARNING_RATE] = "learningRate",
    [EVENT_KEY_CAUSE] = "cause",
    [EVENT_KEY_SOURCE] = "source",
    [EVENT_KEY_CERTAINTY] = "certainty",
    [EVENT_KEY_LEFT_SECONDS] = "leftSeconds",
    [EVENT_KEY_REASON] = "reason",
    [EVENT_KEY_DETAIL] = "detail",
    [EVENT_KEY_ATTEMPT] = "attempt",
    [EVENT_KEY_URI] = "uri",
    [EVENT_KEY_BYTES] = "bytes",
    [EVENT_KEY_MS] = "ms",
    [EVENT_KEY_FROZEN_MS] = "frozenMs",
    [EVENT_KEY_WAITED_SECONDS] = "waitedSeconds",
    [EVENT_KEY_EVERY_SECONDS] = "everySeconds",
    [EVENT_KEY_AGE_SECONDS] = "ageSeconds",
    [EVENT_KEY_EXIT_CODE] = "exitCode",
    [EVENT_KEY_PROGRAM_EXIT_CODE] = "programExitCode",
    [EVENT_KEY_WEIGHTS_SHA256] = "weightsSha256",
    [EVENT_KEY_EXACT] = "exact",
    [EVENT_KEY_GOODPUT] = "goodput",
    [EVENT_KEY_AT] = "at",
    [EVENT_KEY_SPENT] = "spent",
    [EVENT_KEY_SAVES] = "saves",
    [EVENT_KEY_ADDRESS] = "address",
    [EVENT_KEY_METRICS] = "metrics",
    [EVENT_KEY_STEPS_REDONE] = "stepsRedone",
    [EVENT_KEY_COORDINATOR_PID] = "coordinatorPid",
    [EVENT_KEY_SPEC] = "spec",
    [EVENT_KEY_SKIPPED] = "skipped",
    [EVENT_KEY_SEQUENCE] = "sequence",
    [EVENT_KEY_DETECT_MS] = "detectMs",
    [EVENT_KEY_AGREE_MS] = "agreeMs",
    [EVENT_KEY_RING_MS] = "ringMs",
    [EVENT_KEY_STATE_MS] = "stateMs",
    [EVENT_KEY_FIRST_STEP_MS] = "firstStepMs",
    [EVENT_KEY_TOTAL_MS] = "totalMs",
};

const char *event_key(enum event_key key)
{
    return keys[key];
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
