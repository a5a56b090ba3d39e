/* What holds of each plan, whatever the view says: checked before anybody acts on it, in every build.
 * What the operator must never do is act under an attempt that is not on record, or take one back: two pods
 * would bear one name, or a coordinator would be obeyed that has a successor. */
#include "common/base/assert.h"
#include "operator/core/plan_parts.h"

/* `who`: a worker's index, -1: the coordinator. */
static void check_slot(const struct op_slot *stored, const struct op_slot *next, int who)
{
    RM_ASSERT(next->attempt >= stored->attempt, "slot %d went from attempt %d to %d", who, stored->attempt,
              next->attempt);
    bool was_over = stored->state == OP_SLOT_FREE || stored->state == OP_SLOT_ENDED;
    RM_ASSERT(!was_over || !slot_is_live(next) || next->attempt > stored->attempt,
              "slot %d goes on under attempt %d, which is over", who, next->attempt);
    RM_ASSERT(next->quick >= 0, "slot %d ended soon %d times in a row", who, next->quick);
}

static void check_counts(const struct job_status *stored, const struct job_status *next)
{
    RM_ASSERT(next->restarts.preemption >= stored->restarts.preemption &&
                  next->restarts.failure >= stored->restarts.failure &&
                  next->restarts.misfit >= stored->restarts.misfit &&
                  next->restarts.infrastructure >= stored->restarts.infrastructure,
              "%d preemptions, %d failures and %d endings of machines became %d, %d and %d",
              stored->restarts.preemption, stored->restarts.failure, stored->restarts.infrastructure,
              next->restarts.preemption, next->restarts.failure, next->restarts.infrastructure);
    RM_ASSERT(next->ring.size >= 0 && next->ring.size <= RM_WORKERS_MAX, "a ring of %d", next->ring.size);
    RM_ASSERT(next->workers.unfit.types.count <= OP_AVOIDED_MAX &&
                  next->workers.unfit.nodes.count <= OP_AVOIDED_MAX,
              "%d types and %d nodes are avoided", next->workers.unfit.types.count,
              next->workers.unfit.nodes.count);
}

static void check_action(const struct planner *p, int n)
{
    const struct op_action *a = &p->plan->action[n];
    bool last = n == p->plan->actions_count - 1;
    RM_ASSERT(a->kind != OP_STATUS || last, "the status is write %d of %d", n + 1, p->plan->actions_count);
    RM_ASSERT(a->kind != OP_DELETE || *a->uid, "%s %s is deleted whoever bears the name",
              op_resource_name(a->resource), a->name);
    bool makes_pod = a->kind == OP_CREATE && a->resource == OP_PODS;
    RM_ASSERT(!makes_pod || p->mode == OP_RUN || p->mode == OP_IDLING,
              "pod %s is made of a job that does not run (mode %s)", a->name, plan_mode_name(p));
}

/* Two of them would run at once, as far as anybody knows. */
static void check_fence(const struct planner *p)
{
    bool fenced = p->s->now_ms < plan_fenced_until(p);
    int live = 0;
    for (int i = 0; i < RM_WORKERS_MAX && p->job->freezes; i++) {
        const struct op_slot *stored = &p->stored->workers.slot[i], *next = &p->next.workers.slot[i];
        RM_ASSERT(!fenced || slot_is_live(stored) || !slot_is_live(next),
                  "worker %d is wanted while another one may run its program", i);
        live += slot_is_live(next);
    }
    RM_ASSERT(live <= 1, "%d workers of a program that runs once", live);
}

void plan_check(const struct planner *p)
{
    check_slot(&p->stored->ring.coordinator, &p->next.ring.coordinator, -1);
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        check_slot(&p->stored->workers.slot[i], &p->next.workers.slot[i], i);
    check_counts(p->stored, &p->next);
    check_fence(p);
    RM_ASSERT(p->mode != OP_IDLING || plan_live(&p->next) <= 1, "%d workers of an idle job are wanted",
              plan_live(&p->next));
    for (int i = 0; i < p->plan->actions_count; i++)
        check_action(p, i);
}
