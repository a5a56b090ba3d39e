/* Filling a plan: its writes, its events, and when to look again; and the names of both. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "operator/core/plan_parts.h"

#include "common/base/assert.h"

/* `list` or a longer one in its place, with room for one more than `count` items of that many bytes. */
static void *with_room(void *list, int count, int *room, size_t bytes)
{
    RM_ASSERT(count >= 0 && count <= *room, "%d entries in room for %d", count, *room);
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
    RM_ASSERT((unsigned)resource < OP_RESOURCES && *name, "%s of resource %d is written", name,
              (int)resource);
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
    RM_ASSERT(*reason && *action, "an event without a reason, of %s", action);
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

const char *op_kind_name(enum op_kind kind)
{
    static const char *const names[] = {"create", "try", "apply", "delete", "write status of"};
    RM_ASSERT((unsigned)kind < sizeof names / sizeof *names, "write %d has no name", (int)kind);
    return names[kind];
}

const char *op_resource_name(enum op_resource resource)
{
    static const char *const names[OP_RESOURCES] = {
        [OP_PODS] = "pods",
        [OP_SECRETS] = "secrets",
        [OP_SERVICES] = "services",
        [OP_BUDGETS] = "poddisruptionbudgets",
        [OP_POLICIES] = "networkpolicies",
        [OP_JOBS] = "trainingjobs",
    };
    RM_ASSERT((unsigned)resource < OP_RESOURCES, "resource %d has no name", (int)resource);
    return names[resource];
}
