/* One tree of processes at a time, of a program of which snapshots are made: two would do to the outside what
 * one should, and only one of them could be gone on from.
 *
 * Where a pod's container was seen to end there is nothing to wait for. Where it was not (its machine is cut
 * off, or somebody took the pod out of the API by force) the program may run where nobody sees it. Its agent
 * stops it once its coordinator has given it no answer for lostAfter (docs/protocol.md); so the next worker
 * comes 2 * lostAfter after the moment from which on there can have been none. That moment is taken by our
 * own clock, and for as long as its coordinator says that it is connected, or says nothing, there is none. */
#include <stdint.h>

#include "common/base/assert.h"
#include "operator/core/plan_parts.h"

enum { FENCE_TIMES = 2 }; /* lostAfter: one until its agent stops it, and one for all that is slow */

static bool is_listed(const struct coordinator_view *view, const struct pod_view *pod)
{
    RM_ASSERT(view->workers_count >= 0 && view->workers_count <= RM_WORKERS_MAX, "%d workers are connected",
              view->workers_count);
    for (int i = 0; i < view->workers_count; i++)
        if (view->worker[i].worker == pod->index && view->worker[i].attempt == pod->attempt)
            return true;
    return false;
}

/* By this coordinator. One that gives us no answer may well give him one. */
static bool may_answer(const struct planner *p, const struct pod_view *coordinator,
                       const struct pod_view *pod)
{
    RM_ASSERT(coordinator->role == OP_COORDINATOR, "pod %s is no coordinator", coordinator->name);
    const struct coordinator_view *view = find_coordinator_view(p);
    if (pod_is_over(coordinator) || pod_is_vanished(p, coordinator) || coordinator->phase != OP_RUNNING)
        return false;
    if (!view || view->term != coordinator->attempt || find_silence(p) > 0)
        return true;
    return is_listed(view, pod);
}

static bool may_be_answered(const struct planner *p, const struct pod_view *pod)
{
    RM_ASSERT(p->job->freezes, "pod %s is of a job without snapshots", pod->name);
    for (int i = 0; i < p->s->pods_count; i++)
        if (p->s->pods[i]->role == OP_COORDINATOR && may_answer(p, p->s->pods[i], pod))
            return true;
    return false;
}

/* Wanted no more, and nobody has seen its program end. */
static bool is_stray(const struct planner *p, const struct pod_view *pod)
{
    RM_ASSERT(pod->role == OP_COORDINATOR || (pod->index >= 0 && pod->index < RM_WORKERS_MAX),
              "pod %s is of worker %d", pod->name, pod->index);
    const struct op_slot *slot = pod->role == OP_WORKER ? &p->next.workers.slot[pod->index] : NULL;
    return slot && !pod_is_over(pod) && !(slot_is_live(slot) && slot->attempt == pod->attempt);
}

/* It ends with this plan, and nobody saw how. */
static bool ends_unseen(const struct planner *p, int index)
{
    RM_ASSERT(index >= 0 && index < RM_WORKERS_MAX, "worker %d ends unseen", index);
    const struct op_slot *stored = &p->stored->workers.slot[index], *next = &p->next.workers.slot[index];
    const struct pod_view *pod = find_worker(p, index, next->attempt);
    if (slot_is_live(next) || stored->state == OP_SLOT_FREE || stored->state == OP_SLOT_ENDED)
        return false;
    return pod ? !pod_is_over(pod) : stored->state == OP_SLOT_PRESENT;
}

/* The last one of each index was seen to end, and is still there to show it. */
static bool all_were_seen(const struct planner *p)
{
    RM_ASSERT(p->job->freezes, "of job %s no snapshots are made", p->job->name);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct op_slot *slot = &p->next.workers.slot[i];
        const struct pod_view *pod = find_worker(p, i, slot->attempt);
        if (slot->state == OP_SLOT_ENDED && !(pod && pod_is_over(pod)))
            return false;
    }
    return true;
}

/* A status keeps whole seconds. */
static int64_t now_at_least(const struct planner *p)
{
    RM_ASSERT(p->s->now_ms >= 0, "it is %lld ms", (long long)p->s->now_ms);
    return (p->s->now_ms + 999) / 1000 * 1000;
}

void plan_fence(struct planner *p)
{
    struct op_stray *stray = &p->next.workers.stray;
    bool any = false, answered = false, ended = false;
    if (!p->job->freezes || p->mode == OP_DONE)
        return;
    for (int i = 0; i < p->s->pods_count; i++)
        if (is_stray(p, p->s->pods[i])) {
            any = true;
            answered = answered || may_be_answered(p, p->s->pods[i]);
        }
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        ended = ended || ends_unseen(p, i);
    if (answered)
        *stray = (struct op_stray){.answered = true};
    else if (ended || (stray->answered && (any || !all_were_seen(p))))
        *stray = (struct op_stray){.silent_ms = now_at_least(p)};
    else if (!any && (all_were_seen(p) || plan_fenced_until(p) <= p->s->now_ms))
        *stray = (struct op_stray){0};
    RM_ASSERT(!stray->answered || !stray->silent_ms, "a stray is answered, and silent since %lld",
              (long long)stray->silent_ms);
}

int64_t plan_fenced_until(const struct planner *p)
{
    const struct op_stray *stray = &p->next.workers.stray;
    if (!p->job->freezes)
        return 0;
    if (stray->answered)
        return INT64_MAX;
    return stray->silent_ms ? stray->silent_ms + FENCE_TIMES * p->job->lost_after_ms : 0;
}

bool plan_is_fenced(struct planner *p)
{
    int64_t until = plan_fenced_until(p);
    if (p->s->now_ms >= until)
        return false;
    plan_wake(p, until == INT64_MAX ? 0 : until);
    return true;
}
