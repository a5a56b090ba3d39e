/* spot.onDemandBase: so many workers are on machines that nobody takes away, so that somebody holds the state
 * when all others go at once. Which of them is decided when their pods are made, and stands on the pods. */
#include "operator/core/plan_parts.h"

#include "common/base/assert.h"

/* Who is about to be replaced has its place taken by another of the kind. */
bool plan_wants_base(const struct planner *p, int index)
{
    int have = 0;
    RM_ASSERT(index >= 0 && index < RM_WORKERS_MAX, "a machine for worker %d", index);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct op_slot *slot = &p->next.workers.slot[i];
        const struct pod_view *pod = find_live(p, i);
        if (pod)
            have += pod->base && !surge_is_uneasy(p, i);
        else
            have += slot->state == OP_SLOT_WANTED && i < index;
    }
    return have < p->job->on_demand_base;
}
