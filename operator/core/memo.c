#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "operator/core/plan.h"
#include "operator/core/read.h"

/* Texts of one length for equal bodies: what was applied is not applied again. */
uint64_t op_body_hash(const struct str *body)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < body->length; i++)
        hash = (hash ^ (unsigned char)body->data[i]) * 0x100000001b3u;
    return hash ? hash : 1;
}

enum op_resource op_applied_name(const char *job, enum op_applied which, char out[OP_NAME_MAX])
{
    static void (*const name[OP_APPLIED])(const char *, char[OP_NAME_MAX]) = {
        name_service, name_budget, name_policy_worker, name_policy_coordinator};
    static const enum op_resource resource[OP_APPLIED] = {OP_SERVICES, OP_BUDGETS, OP_POLICIES, OP_POLICIES};
    RM_ASSERT((unsigned)which < OP_APPLIED, "%d is applied of job %s", (int)which, job);
    name[which](job, out);
    return resource[which];
}

/* What an APPLY stands for in memo.applied. */
static enum op_applied applied_of(const struct job_view *job, const struct op_action *action)
{
    char name[OP_NAME_MAX];
    int which = 0;
    RM_ASSERT(action->kind == OP_APPLY, "%s %s is applied", op_kind_name(action->kind), action->name);
    while (which < OP_APPLIED &&
           (op_applied_name(job->name, (enum op_applied)which, name) != action->resource ||
            strcmp(name, action->name) != 0))
        which++;
    RM_ASSERT(which < OP_APPLIED, "%s %s is applied, and is none of the %d",
              op_resource_name(action->resource), action->name, (int)OP_APPLIED);
    return (enum op_applied)which;
}

/* "create pods": what a refusal is remembered by, and a success of the same kind forgotten. */
static void what_of(const struct op_action *action, char *out, size_t size)
{
    const char *verb = action->kind == OP_DRY_RUN ? "create" : op_kind_name(action->kind);
    snprintf(out, size, "%s %s", verb, op_resource_name(action->resource));
}

static bool is_refused(const struct op_memo *memo, const struct op_action *action)
{
    char what[OP_REASON_MAX];
    what_of(action, what, sizeof what);
    return memo->refusal.at_ms && !strcmp(memo->refusal.what, what);
}

bool op_memo_goes_on(const struct op_memo *memo, const struct op_action *action)
{
    return action->kind == OP_STATUS || (action->kind == OP_DELETE && !is_refused(memo, action));
}

/* Deletes come before a status, all else once it is written. */
static bool may_come_yet(const struct op_memo *memo, const struct op_action *action)
{
    return action->kind == OP_STATUS && strncmp(memo->refusal.what, "delete ", 7) != 0;
}

bool op_memo_forget(struct op_memo *memo, const struct op_plan *plan)
{
    for (int i = 0; i < plan->actions_count; i++)
        if (may_come_yet(memo, &plan->action[i]) || is_refused(memo, &plan->action[i]))
            return false;
    bool was = memo->refusal.at_ms;
    memo->refusal.at_ms = 0;
    return was;
}

bool op_memo_done(struct op_memo *memo, const struct job_view *job, const struct op_action *action)
{
    bool over = is_refused(memo, action);
    if (over)
        memo->refusal.at_ms = 0;
    if (action->kind == OP_DRY_RUN)
        memo->dry_generation = job->generation;
    else if (action->kind == OP_APPLY)
        memo->applied[applied_of(job, action)] = action->hash;
    else if (action->kind == OP_CREATE && action->resource == OP_SECRETS)
        text_copy(memo->key, sizeof memo->key, action->name);
    return over;
}

void op_memo_refused(struct op_memo *memo, const struct job_view *job, const struct op_action *action,
                     int code, const char *reason, const char *message, int64_t now_ms)
{
    if (action->kind == OP_STATUS)
        return; /* whoever can read of it in a status reads of what is over */
    RM_ASSERT(now_ms > 0, "refused at no time: %s", message);
    memo->refusal.at_ms = now_ms;
    memo->refusal.generation = job->generation;
    memo->refusal.code = code;
    what_of(action, memo->refusal.what, sizeof memo->refusal.what);
    text_copy(memo->refusal.reason, sizeof memo->refusal.reason, reason);
    text_tame_ends(message, memo->refusal.message, sizeof memo->refusal.message);
}

bool op_status_refusal(const struct op_action *action, int code, const char *message,
                       char out[OP_MESSAGE_MAX])
{
    char what[OP_REASON_MAX], words[OP_REFUSAL_MAX];
    if (action->kind != OP_STATUS || code < 400 || code >= 500 || code == 429)
        return false;
    what_of(action, what, sizeof what);
    text_tame_ends(message, words, sizeof words);
    snprintf(out, OP_MESSAGE_MAX, "the API server refused to %s: %s", what, words);
    return true;
}

void op_trials_note(struct op_trials *trials, uint64_t trial, int64_t now_ms)
{
    RM_ASSERT(trials->next >= 0 && trials->next < OP_TRIALS, "trial %d of %d", trials->next, OP_TRIALS);
    trials->taken[trials->next].hash = trial;
    trials->taken[trials->next].at_ms = now_ms;
    trials->next = (trials->next + 1) % OP_TRIALS;
}

bool op_trials_know(const struct op_trials *trials, uint64_t trial, int64_t now_ms)
{
    for (int i = 0; trials && i < OP_TRIALS; i++) {
        int64_t age = now_ms - trials->taken[i].at_ms;
        if (trials->taken[i].hash == trial && age >= 0 && age < OP_TRIAL_HOLDS_MS)
            return true;
    }
    return false;
}

void op_memo_told(struct op_memo *memo, const struct op_plan *plan)
{
    memo->told_sequence = plan->told_sequence;
    memo->told_term = plan->told_term;
}

void op_memo_metered(struct op_memo *memo, const struct job_view *job, const struct op_plan *plan)
{
    memo->cost = plan->cost;
    memo->cost_from_ms = job->status.cost.accounted_ms;
    memo->cost_from = job->status.cost.hours;
}
