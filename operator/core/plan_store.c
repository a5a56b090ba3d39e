/* Whether the job's object stores answer, as its coordinator tells it, and whether what the workers hold can
 * be saved. */
#include <stdio.h>
#include <string.h>

#include "operator/core/plan_parts.h"

#include "common/base/assert.h"

static void set_store_ready(struct planner *p, bool truth, const char *reason, const char *message)
{
    condition_set(&p->next, OP_STORE_READY, truth, reason, message, p->job->generation, p->s->now_ms);
}

/* Only of a store that answered again: that the first one does is no news. */
static void tell_back(struct planner *p)
{
    if (p->stored->condition[OP_STORE_READY].status == OP_FALSE)
        plan_event(p, false, "StoreReady", "Wait", "the object stores answer again");
}

static void tell_away(struct planner *p, const struct coordinator_view *view)
{
    RM_ASSERT(*view->store.why, "the store of job %s is away, and nobody says why", p->job->name);
    const struct op_condition *before = &p->stored->condition[OP_STORE_READY];
    const char *reason = view->store.person ? "StoreRefuses" : "StoreAway";
    set_store_ready(p, false, reason, view->store.why);
    if (before->status != OP_FALSE || strcmp(before->reason, reason) != 0)
        plan_event(p, true, "StoreNotReady", "Wait", "%.300s", view->store.why);
}

static void tell_fence(struct planner *p, const struct coordinator_view *view)
{
    p->next.unfenced = view->unfenced;
    if (view->unfenced && !p->stored->unfenced)
        plan_event(
            p, true, "NotFenced", "Train",
            "the store of spec.checkpoint overwrites what is to be created only where nothing is: start no "
            "second job on this place while this one may still live");
}

/* No answer, or one of a coordinator that still looks: the last word stands. */
void plan_tell_store(struct planner *p, const struct coordinator_view *view)
{
    RM_ASSERT(p->mode == OP_RUN || p->mode == OP_HOLD, "a store is told of in mode %s", plan_mode_name(p));
    if (!view || !p->job->has_store)
        return;
    if (*view->store.why)
        tell_away(p, view);
    else if (*view->outage)
        set_store_ready(p, false, "CheckpointWaiting", view->outage);
    else if (!view->preparing) {
        tell_back(p);
        tell_fence(p, view);
        set_store_ready(p, true, "Ready", "the object stores answer");
    }
}

/* NULL: of a coordinator that does not answer nobody knows. */
static const struct coordinator_view *heard(const struct planner *p)
{
    const struct coordinator_view *view = find_coordinator_view(p);
    return view && find_silence(p) < OP_SILENCE_MS ? view : NULL;
}

/* Those who hold a state that nobody could save now keep it, and their nodes. */
bool plan_may_lose(const struct planner *p, const struct op_found *found)
{
    RM_ASSERT(found->scheduled >= 0, "%d workers have a node", found->scheduled);
    const struct coordinator_view *view = heard(p);
    bool holds = found->scheduled && p->job->has_store && p->stored->progress.known;
    bool saves = view && !*view->outage && !*view->store.why && view->state != STATUS_SAVING;
    return holds && !saves;
}

void plan_say_unsaved(const struct planner *p, char *out, size_t size)
{
    const struct coordinator_view *view = heard(p);
    if (!view)
        snprintf(out, size, "the coordinator gives no answer");
    else if (*view->outage)
        snprintf(out, size, "the store does not take the newest checkpoint: %s", view->outage);
    else if (*view->store.why)
        snprintf(out, size, "%s", view->store.why);
    else
        snprintf(out, size, "a checkpoint is being saved");
}
