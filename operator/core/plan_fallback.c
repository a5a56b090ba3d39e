/* spot.onDemandFallback: where a job prefers spot machines, and these go again and again, new workers rather
 * take others for a while. Nobody is moved for that. When spot machines stay again, who is on another one
 * because of it goes back as from a machine that may go: first the replacement, then the leave. */
#include <string.h>

#include "common/base/assert.h"
#include "operator/core/plan_parts.h"

/* Where its Node is gone nobody knows any more what it was: the job asks for spot machines, and mostly gets
 * one. */
static bool was_on_spot(const struct planner *p, const struct pod_view *pod)
{
    const struct node_view *node = find_node(p, pod);
    return node ? node->machine.capacity == PRICE_SPOT : !pod->base && !pod->fallback;
}

/* A status of before each end was noted knows the first and the last of them: the others count from the first
 * on, as they did then. */
static void take_over(struct planner *p)
{
    int count = p->next.spot.interruptions;
    if (p->next.spot.ends_count || count <= 0)
        return;
    struct op_spot_end *end = p->next.spot.end;
    if (count > 1)
        end[p->next.spot.ends_count++] = (struct op_spot_end){p->next.spot.window_ms, count - 1};
    end[p->next.spot.ends_count++] = (struct op_spot_end){p->next.spot.last_ms, 1};
    RM_ASSERT(p->next.spot.ends_count <= OP_SPOT_ENDS_MAX, "%d ends are taken over", p->next.spot.ends_count);
}

/* Those that count now: each for so long as the job says, from its own moment on. */
static int ends_within(const struct planner *p)
{
    int64_t sum = 0, since = p->s->now_ms - p->job->fallback.within_ms;
    for (int i = 0; i < p->next.spot.ends_count; i++)
        sum += p->next.spot.end[i].at_ms > since ? p->next.spot.end[i].count : 0;
    RM_ASSERT(sum >= 0, "%lld ends within a while", (long long)sum);
    return sum < OP_COUNT_MAX ? (int)sum : OP_COUNT_MAX;
}

static void remove_end(struct planner *p, int at)
{
    RM_ASSERT(at >= 0 && at < p->next.spot.ends_count, "end %d of %d", at, p->next.spot.ends_count);
    struct op_spot_end *end = p->next.spot.end;
    for (int i = at; i + 1 < p->next.spot.ends_count; i++)
        end[i] = end[i + 1];
    end[--p->next.spot.ends_count] = (struct op_spot_end){0};
}

static void forget_old(struct planner *p)
{
    int64_t since = p->s->now_ms - p->job->fallback.within_ms;
    for (int i = p->next.spot.ends_count - 1; i >= 0; i--)
        if (p->next.spot.end[i].at_ms <= since)
            remove_end(p, i);
    RM_ASSERT(p->next.spot.ends_count >= 0, "%d ends are left", p->next.spot.ends_count);
}

/* A job may want up to a thousand of them: of more than there is room for, the two that lie nearest to each
 * other become one. It counts from the first one's moment on, so that nobody falls back for ends that lie
 * further apart than the job says. */
static void make_room(struct planner *p)
{
    struct op_spot_end *end = p->next.spot.end;
    int nearest = 0;
    if (p->next.spot.ends_count < OP_SPOT_ENDS_MAX)
        return;
    for (int i = 1; i + 1 < p->next.spot.ends_count; i++)
        if (end[i + 1].at_ms - end[i].at_ms < end[nearest + 1].at_ms - end[nearest].at_ms)
            nearest = i;
    int64_t both = (int64_t)end[nearest].count + end[nearest + 1].count;
    end[nearest].count = both < OP_COUNT_MAX ? (int)both : OP_COUNT_MAX;
    remove_end(p, nearest + 1);
    RM_ASSERT(p->next.spot.ends_count < OP_SPOT_ENDS_MAX, "no room among %d ends", p->next.spot.ends_count);
}

void plan_note_interruption(struct planner *p, const struct pod_view *pod, const struct op_ending *ending)
{
    int64_t now = p->s->now_ms;
    bool by_machine = ending->counted == OP_COUNT_PREEMPTION || ending->counted == OP_COUNT_INFRASTRUCTURE;
    if (!p->job->prefers_spot || !by_machine || !pod || !*pod->node || !was_on_spot(p, pod))
        return;
    take_over(p);
    forget_old(p);
    make_room(p);
    p->next.spot.end[p->next.spot.ends_count++] = (struct op_spot_end){now, 1};
    p->next.spot.interruptions = ends_within(p);
    p->next.spot.window_ms = p->next.spot.end[0].at_ms;
    p->next.spot.last_ms = now;
    RM_ASSERT(p->next.spot.ends_count > 0, "none of %d interruptions is noted", p->next.spot.interruptions);
}

static void fall_back(struct planner *p)
{
    int count = ends_within(p);
    RM_ASSERT(!p->next.spot.fell_ms && count >= p->job->fallback.after, "after %d of %d interruptions", count,
              p->job->fallback.after);
    p->next.spot.fell_ms = p->s->now_ms;
    plan_event(p, true, "FellBack", "Replace",
               "%d workers were interrupted on spot machines within %lld min: new ones rather go to machines "
               "on demand, until there was no such end for %lld min",
               count, (long long)(p->job->fallback.within_ms / 60000),
               (long long)(p->job->fallback.until_ms / 60000));
}

static void forget(struct planner *p)
{
    p->next.spot.fell_ms = p->next.spot.window_ms = 0;
    p->next.spot.interruptions = p->next.spot.ends_count = 0;
    memset(p->next.spot.end, 0, sizeof p->next.spot.end);
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
    take_over(p);
    if (!p->next.spot.fell_ms) {
        if (after && ends_within(p) >= after)
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
