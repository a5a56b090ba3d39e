/* spec.cost.idleAfter: where fewer than min have had a node for so long nobody pays for those that have one.
 * All end as at a suspension, with a checkpoint, their coordinator after them; then one worker waits for a
 * node. It costs nothing, and is what makes an autoscaler add one. When it has a node it is a worker like any
 * other, and the others follow.
 *
 * The machines that workers had when they were too few are free then. The probe would be put there at once,
 * and say nothing: for as long again it goes elsewhere. After that it goes anywhere, since more may have
 * become free on those as well. */
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "operator/core/instant.h"
#include "operator/core/plan_parts.h"
#include "operator/core/pod.h"

enum { SETTLE_MS = 10 * 1000 }; /* that a scheduler may take to find the nodes that there are */

void idle_note(struct planner *p)
{
    int base = 0, waiting = 0;
    p->next.idle.left.count = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct pod_view *pod = find_live(p, i);
        if (!pod)
            continue;
        account_unfit(&p->next.idle.left, pod->node);
        waiting += !*pod->node;
        base += !*pod->node && pod->base;
    }
    p->next.idle.base = waiting && base == waiting;
    RM_ASSERT(base <= waiting && p->next.idle.left.count <= OP_AVOIDED_MAX,
              "%d of %d that wait are of the base", base, waiting);
}

/* Whoever holds pods back by gates says itself when they may come. */
static bool is_below_min(const struct planner *p, const struct op_found *found)
{
    const struct coordinator_view *view = find_coordinator_view(p);
    return !p->finishing && !found->gated && found->scheduled < p->job->workers_min &&
           !(view && view->state == STATUS_TRAINING);
}

/* 0: not before something else happens. Between two attempts to start nobody has a node. */
static int64_t begins_at(const struct planner *p)
{
    RM_ASSERT(p->next.idle.short_ms, "too few workers since never, in mode %s", plan_mode_name(p));
    int64_t at = p->next.idle.short_ms + p->job->idle_after_ms,
            settled = p->next.workers.short_ms + SETTLE_MS;
    if (p->next.workers.retry_ms > p->s->now_ms)
        return at;
    if (!p->next.workers.short_ms)
        return 0;
    return at > settled ? at : settled;
}

static void begin_idle(struct planner *p, const struct op_found *found)
{
    char since[OP_INSTANT_TEXT];
    RM_ASSERT(!p->next.idle.since_ms && p->next.idle.short_ms, "idle twice, too few since %lld",
              (long long)p->next.idle.short_ms);
    if (found->scheduled + found->waiting)
        idle_note(p);
    p->next.idle.since_ms = p->s->now_ms;
    p->next.workers.short_ms = p->next.workers.retry_ms = 0;
    instant_text(p->next.idle.short_ms, since);
    plan_event(
        p, true, "Idle", "Delete",
        "fewer than min %d workers have had a node since %s: %s, but for one worker's, which waits for "
        "a node",
        p->job->workers_min, since,
        p->job->stepless ? "all pods end" : "a checkpoint is saved and all pods end");
}

bool idle_begins(struct planner *p)
{
    RM_ASSERT(p->mode == OP_RUN, "a job becomes idle in mode %s", plan_mode_name(p));
    struct op_found found = find_present(p);
    int64_t *since = &p->next.idle.short_ms;
    if (!p->job->idle_after_ms || !is_below_min(p, &found)) {
        memset(&p->next.idle, 0, sizeof p->next.idle);
        return false;
    }
    if (!*since)
        *since = p->next.workers.short_ms;
    int64_t at = *since ? begins_at(p) : 0;
    if (at > p->s->now_ms)
        plan_wake(p, at);
    if (!at || at > p->s->now_ms || plan_may_lose(p, &found))
        return false;
    begin_idle(p, &found);
    return true;
}

/* -1: there is none yet. */
static int find_probe(const struct planner *p)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        if (slot_is_live(&p->next.workers.slot[i]))
            return i;
    return -1;
}

static bool has_node(const struct planner *p, int probe)
{
    RM_ASSERT(probe >= -1 && probe < RM_WORKERS_MAX, "the node of worker %d", probe);
    const struct pod_view *pod = probe >= 0 ? find_live(p, probe) : NULL;
    return pod && *pod->node && !pod_is_over(pod);
}

/* Until when the probe is put on none of the machines that were left; 0: it may be put there. */
static int64_t barred_until(const struct planner *p, int probe)
{
    RM_ASSERT(probe >= -1 && probe < RM_WORKERS_MAX, "worker %d is barred", probe);
    const struct pod_view *pod = probe >= 0 ? find_live(p, probe) : NULL;
    return pod && p->next.idle.left.count ? pod->created_ms + p->job->idle_after_ms : 0;
}

/* A pod is never changed: one that asks for more than is wanted makes place for another. One that was not
 * seen yet is waited for. */
static void renew(struct planner *p, int probe)
{
    RM_ASSERT(p->mode == OP_RUN && p->next.idle.since_ms, "another probe, in mode %s", plan_mode_name(p));
    int64_t until = barred_until(p, probe);
    bool over = until && p->s->now_ms >= until;
    bool pinned = p->next.idle.base && !p->job->on_demand_base && probe >= 0 && find_live(p, probe);
    if (!over)
        plan_wake(p, until);
    if (!over && !pinned)
        return;
    p->next.idle.left.count = over ? 0 : p->next.idle.left.count;
    p->next.idle.base = p->next.idle.base && !pinned;
    RM_ASSERT(probe >= 0, "the pod of slot %d makes place", probe);
    p->next.workers.slot[probe].state = OP_SLOT_ENDED;
}

bool idle_goes_on(struct planner *p)
{
    int probe = find_probe(p);
    bool found = has_node(p, probe);
    if (!p->next.idle.since_ms)
        return false;
    if (p->mode != OP_RUN)
        return true;
    if (!found && p->job->idle_after_ms) {
        renew(p, probe);
        return true;
    }
    if (found)
        plan_event(p, false, "Idle", "Create", "it is over: worker %d has a node, and the others follow it",
                   probe);
    else
        plan_event(p, false, "Idle", "Create", "it is over, as spec.cost.idleAfter is gone");
    memset(&p->next.idle, 0, sizeof p->next.idle);
    return false;
}

void idle_choose(const struct planner *p, struct op_elsewhere *ret)
{
    const struct op_names *left = &p->stored->idle.left;
    RM_ASSERT(left->count <= RM_WORKERS_MAX && ret->barred_count == 0, "%d machines are barred, and %d are",
              left->count, ret->barred_count);
    ret->base = p->stored->idle.base;
    for (int i = 0; i < left->count; i++)
        if (!p->s->nodes_known || p->s->node(p->s->nodes, left->name[i]))
            ret->barred[ret->barred_count++] = left->name[i];
}

void idle_say(const struct planner *p, char *out, size_t size)
{
    char since[OP_INSTANT_TEXT], below[OP_INSTANT_TEXT], until[OP_INSTANT_TEXT], not_there[RM_WHY_MAX] = "";
    int probe = find_probe(p);
    instant_text(p->next.idle.since_ms, since);
    instant_text(p->next.idle.short_ms, below);
    instant_text(barred_until(p, probe), until);
    if (barred_until(p, probe))
        snprintf(not_there, sizeof not_there, " (until %s on none of those that were too few)", until);
    snprintf(out, size, "idle since %s, as fewer than min %d workers had had a node since %s; ", since,
             p->job->workers_min, below);
    size_t length = strlen(out);
    RM_ASSERT(length < size, "a sentence of %zu bytes", length);
    if (probe < 0)
        snprintf(out + length, size - length, "one of them is about to wait for one");
    else
        snprintf(out + length, size - length, "worker %d waits for one%s, and the others follow it", probe,
                 not_there);
}
