/* From one job's view to its plan, in four acts, each in files of its own: observe, decide, tell, act. */
#include "operator/core/plan.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "operator/core/plan_parts.h"

enum { TOLD_WITHIN_MS = 31 * 1000 }; /* by then a watch has told of what an answer showed */

int64_t plan_looks_again_ms(const struct op_plan *plan)
{
    RM_ASSERT(plan->actions_count >= 0 && plan->actions_count <= OP_ACTIONS_MAX, "%d writes",
              plan->actions_count);
    for (int i = 0; i < plan->actions_count; i++)
        if (plan->action[i].kind == OP_DRY_RUN || plan->action[i].resource == OP_SECRETS)
            return 0;
    return TOLD_WITHIN_MS;
}

struct op_plan *job_plan(const struct op_view *view)
{
    struct op_plan *plan = calloc(1, sizeof *plan);
    struct planner *p = calloc(1, sizeof *p);
    if (!plan || !p)
        abort();
    const struct job_view *job = view->job;
    RM_ASSERT(job && view->memo, "a plan of %p with %p remembered", (const void *)job,
              (const void *)view->memo);
    p->s = view;
    p->job = job;
    p->stored = &job->status;
    p->next = job->status;
    p->plan = plan;
    plan->told_sequence = view->memo->told_sequence;
    plan->told_term = view->memo->told_term;
    plan->cost = job->status.cost;
    if (job->managed && !job->deleting) {
        plan_meter(p);
        plan_budget(p);
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

void plan_print(const struct op_plan *plan, bool bodies, struct str *out)
{
    RM_ASSERT((unsigned)plan->change <= OP_URGENT, "a status changes by %d", (int)plan->change);
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
        str_addf(out, "poll %s term %d%s%s\n", plan->poll_ip, plan->poll_term, *plan->relief ? " " : "",
                 plan->relief);
}
