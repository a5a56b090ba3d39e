#include "operator/core/plan.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "operator/core/plan_parts.h"

enum { TOLD_WITHIN_MS = 31 * 1000 }; /* by then a watch has told of what an answer showed */

int64_t plan_looks_again_ms(const struct op_plan *plan)
{
    for (int i = 0; i < plan->actions_count; i++)
        if (plan->action[i].kind == OP_DRY_RUN || plan->action[i].resource == OP_SECRETS)
            return 0;
    return TOLD_WITHIN_MS;
}

/* `list` or a longer one in its place, with room for one more than `count` items of that many bytes. */
static void *with_room(void *list, int count, int *room, size_t bytes)
{
    if (count < *room)
        return list;
    *room = *room ? 2 * *room : 4;
    list = realloc(list, (size_t)*room * bytes);
    if (!list)
        abort();
    return list;
}

struct op_action *plan_add(struct planner *p, enum op_kind kind, enum op_resource resource, const char *name,
                           const char *format, ...)
{
    va_list arguments;
    struct op_plan *plan = p->plan;
    if (plan->actions_count == OP_ACTIONS_MAX)
        return NULL;
    plan->action = with_room(plan->action, plan->actions_count, &plan->actions_room, sizeof *plan->action);
    struct op_action *action = &plan->action[plan->actions_count++];
    *action = (struct op_action){.kind = kind, .resource = resource, .body = str_init(2 * OP_SPEC_TEXT_MAX)};
    text_copy(action->name, sizeof action->name, name);
    va_start(arguments, format);
    vsnprintf(action->why, sizeof action->why, format, arguments);
    va_end(arguments);
    return action;
}

void plan_event(struct planner *p, bool warning, const char *reason, const char *action, const char *format,
                ...)
{
    va_list arguments;
    struct op_plan *plan = p->plan;
    if (plan->events_count == OP_EVENTS_MAX)
        return;
    plan->event = with_room(plan->event, plan->events_count, &plan->events_room, sizeof *plan->event);
    struct op_event *event = &plan->event[plan->events_count++];
    event->warning = warning;
    text_copy(event->reason, sizeof event->reason, reason);
    text_copy(event->action, sizeof event->action, action);
    va_start(arguments, format);
    vsnprintf(event->note, sizeof event->note, format, arguments);
    va_end(arguments);
}

void plan_wake(struct planner *p, int64_t at_ms)
{
    if (at_ms && (!p->plan->wake_ms || at_ms < p->plan->wake_ms))
        p->plan->wake_ms = at_ms;
}

struct op_plan *job_plan(const struct job_snapshot *snapshot)
{
    struct op_plan *plan = calloc(1, sizeof *plan);
    struct planner *p = calloc(1, sizeof *p);
    if (!plan || !p)
        abort();
    const struct job_view *job = snapshot->job;
    p->s = snapshot;
    p->job = job;
    p->stored = &job->status;
    p->next = job->status;
    p->plan = plan;
    plan->told_sequence = snapshot->memo->told_sequence;
    plan->told_term = snapshot->memo->told_term;
    if (job->managed && !job->deleting) {
        plan_observe(p);
        plan_decide(p);
        plan_tell(p);
        plan_act(p);
        plan_check(p);
    }
    free(p);
    return plan;
}

void plan_free(struct op_plan *plan)
{
    if (!plan)
        return;
    for (int i = 0; i < plan->actions_count; i++)
        str_clear(&plan->action[i].body);
    free(plan->action);
    free(plan->event);
    free(plan);
}

const char *op_kind_name(enum op_kind kind)
{
    static const char *const names[] = {"create", "try", "apply", "delete", "write status of"};
    return names[kind];
}

const char *op_resource_name(enum op_resource resource)
{
    static const char *const names[OP_RESOURCES] = {
        [OP_PODS] = "pods",         [OP_CONFIG_MAPS] = "configmaps",       [OP_SECRETS] = "secrets",
        [OP_SERVICES] = "services", [OP_BUDGETS] = "poddisruptionbudgets", [OP_POLICIES] = "networkpolicies",
        [OP_JOBS] = "trainingjobs",
    };
    return names[resource];
}

void plan_print(const struct op_plan *plan, bool bodies, struct str *out)
{
    static const char *const changes[] = {"same", "ticking", "urgent"};
    for (int i = 0; i < plan->actions_count; i++) {
        const struct op_action *a = &plan->action[i];
        if (a->kind == OP_STATUS)
            str_addf(out, "status (%s)  %s\n", changes[plan->change], a->why);
        else
            str_addf(out, "%s %s %s  %s\n", op_kind_name(a->kind), op_resource_name(a->resource), a->name,
                     a->why);
        if (bodies && a->body.length)
            str_addf(out, "    %s\n", str_text(&a->body));
    }
    for (int i = 0; i < plan->events_count; i++)
        str_addf(out, "%s %s  %s\n", plan->event[i].warning ? "warn" : "event", plan->event[i].reason,
                 plan->event[i].note);
    if (*plan->poll_ip)
        str_addf(out, "poll %s term %d\n", plan->poll_ip, plan->poll_term);
}
