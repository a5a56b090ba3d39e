#include "operator/core/status.h"

#include <string.h>

#include "common/base/assert.h"

static const char *const condition_names[OP_CONDITIONS] = {
    [OP_ADMITTED] = "Admitted",   [OP_PODS_READY] = "PodsReady",   [OP_RING_FORMED] = "RingFormed",
    [OP_TRAINING] = "Training",   [OP_DEGRADED] = "Degraded",      [OP_STOPPING] = "Stopping",
    [OP_SUSPENDED] = "Suspended", [OP_COMPLETE] = "Complete",      [OP_FAILED] = "Failed",
    [OP_FINISHED] = "Finished",   [OP_STORE_READY] = "StoreReady", [OP_REACHABLE] = "CoordinatorReachable",
    [OP_IDLE] = "Idle",
};

const char *condition_name(enum op_condition_type type)
{
    RM_ASSERT((unsigned)type < OP_CONDITIONS, "condition %d has no name", (int)type);
    return condition_names[type];
}

const char *slot_state_name(enum op_slot_state state)
{
    static const char *const names[] = {"Free", "Wanted", "Present", "Ended", "Skipped"};
    RM_ASSERT((unsigned)state <= OP_SLOT_SKIPPED, "state %d of a slot has no name", (int)state);
    return names[state];
}

bool slot_is_live(const struct op_slot *slot)
{
    RM_ASSERT((unsigned)slot->state <= OP_SLOT_SKIPPED, "attempt %d is in state %d", slot->attempt,
              (int)slot->state);
    return slot->state == OP_SLOT_WANTED || slot->state == OP_SLOT_PRESENT;
}

bool condition_is(const struct job_status *status, enum op_condition_type type)
{
    RM_ASSERT((unsigned)type < OP_CONDITIONS, "condition %d is asked for", (int)type);
    return status->condition[type].status == OP_TRUE;
}

static void put_condition(struct op_condition *c, enum op_truth wanted, const char *reason,
                          const char *message, int64_t generation, int64_t now_ms)
{
    RM_ASSERT(wanted != OP_UNSET, "a condition becomes none: %s", reason);
    if (c->status != wanted)
        c->transition_ms = now_ms;
    c->status = wanted;
    c->generation = generation;
    text_copy(c->reason, sizeof c->reason, reason);
    text_copy(c->message, sizeof c->message, message);
}

void condition_set(struct job_status *status, enum op_condition_type type, bool truth, const char *reason,
                   const char *message, int64_t generation, int64_t now_ms)
{
    RM_ASSERT((unsigned)type < OP_CONDITIONS, "condition %d is set: %s", (int)type, reason);
    put_condition(&status->condition[type], truth ? OP_TRUE : OP_FALSE, reason, message, generation, now_ms);
}

void condition_unknown(struct job_status *status, enum op_condition_type type, const char *reason,
                       const char *message, int64_t generation, int64_t now_ms)
{
    RM_ASSERT((unsigned)type < OP_CONDITIONS, "condition %d is unknown: %s", (int)type, reason);
    put_condition(&status->condition[type], OP_UNKNOWN, reason, message, generation, now_ms);
}
