/* spot.onDemandFallback: where a job prefers spot machines, and these go again and again, new workers rather
 * take others for a while. Nobody is moved for that. When spot machines stay again, who is on another one
 * because of it goes back as from a machine that may go: first the replacement, then the leave. */
#include "operator/core/plan_parts.h"

#include "common/base/assert.h"

/* Where its Node is gone nobody knows any more what it was: the job asks for spot machines, and mostly gets
 * one. */
static bool was_on_spot(const struct planner *p, const struct pod_view *pod)
{
    const struct node_view *node = find_node(p, pod);
    return node ? node->machine.capacity == PRICE_SPOT : !pod->base && !pod->fallback;
}

void plan_note_interruption(struct planner *p, const struct pod_view *pod, const struct op_ending *ending)
{
    int64_t now = p->s->now_ms;
    bool by_machine = ending->counted == OP_COUNT_PREEMPTION || ending->counted == OP_COUNT_INFRASTRUCTURE;
    if (!p->job->prefers_spot || !by_machine || !pod || !*pod->node || !was_on_spot(p, pod))
        return;
    if (!p->next.spot.window_ms || now - p->next.spot.window_ms >= p->job->fallback.within_ms) {
        p->next.spot.window_ms = now;
        p->next.spot.interruptions = 0;
    }
    p->next.spot.interruptions++;
    p->next.spot.last_ms = now;
    RM_ASSERT(p->next.spot.interruptions > 0, "%d interruptions", p->next.spot.interruptions);
}

static void fall_back(struct planner *p)
{
    RM_ASSERT(!p->next.spot.fell_ms && p->next.spot.interruptions >= p->job->fallback.after,
              "after %d of %d interruptions", p->next.spot.interruptions, p->job->fallback.after);
    p->next.spot.fell_ms = p->s->now_ms;
    plan_event(p, true, "FellBack", "Replace",
               "%d workers were interrupted on spot machines within %lld min: new ones rather go to machines "
               "on demand, until there was no such end for %lld min",
               p->next.spot.interruptions, (long long)(p->job->fallback.within_ms / 60000),
               (long long)(p->job->fallback.until_ms / 60000));
}

static void forget(struct planner *p)
{
    p->next.spot.fell_ms = p->next.spot.window_ms = 0;
    p->next.spot.interruptions = 0;
}

static void go_back(struct planner *p)
{
    RM_ASSERT(p->next.spot.fell_ms, "%s goes back to where it is", p->job->name);
    forget(p);
    plan_event(p, false, "BackOnSpot", "Replace",
               "no worker was interrupted on a spot machine for %lld min: new ones go there again, and who "
               "is elsewhere for it follows one after the other",
               (long long)(p->job->fallback.until_ms / 60000));
}

void plan_fallback(struct planner *p)
{
    RM_ASSERT(p->mode == OP_RUN || p->mode == OP_HOLD, "machines are chosen in mode %s", plan_mode_name(p));
    int64_t now = p->s->now_ms, until = p->next.spot.last_ms + p->job->fallback.until_ms;
    int after = p->job->prefers_spot ? p->job->fallback.after : 0;
    if (!p->next.spot.fell_ms) {
        if (after && p->next.spot.interruptions >= after &&
            now - p->next.spot.window_ms < p->job->fallback.within_ms)
            fall_back(p);
    } else if (!after) /* somebody has changed the job */
        forget(p);
    else if (now >= until)
        go_back(p);
    if (p->next.spot.fell_ms)
        plan_wake(p, until);
}

bool plan_may_return(const struct planner *p, const struct pod_view *pod)
{
    const struct node_view *node = find_node(p, pod);
    return pod->fallback && !p->next.spot.fell_ms && p->job->prefers_spot && node &&
           node->machine.capacity != PRICE_SPOT;
}
