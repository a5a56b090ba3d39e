#include <string.h>

#include "operator/core/plan_parts.h"

#include "common/base/assert.h"

const struct node_view *find_node(const struct planner *p, const struct pod_view *pod)
{
    if (!p->s->nodes_known || !pod || !*pod->node)
        return NULL;
    return p->s->node(p->s->nodes, pod->node);
}

static const struct pod_view *find_pod(const struct planner *p, enum pod_role role, int index, int attempt)
{
    for (int i = 0; i < p->s->pods_count; i++) {
        const struct pod_view *pod = p->s->pods[i];
        if (pod->role == role && pod->index == index && pod->attempt == attempt)
            return pod;
    }
    return NULL;
}

const struct pod_view *find_worker(const struct planner *p, int index, int attempt)
{
    return find_pod(p, OP_WORKER, index, attempt);
}

const struct pod_view *find_live(const struct planner *p, int index)
{
    const struct op_slot *slot = &p->next.workers.slot[index];
    RM_ASSERT(index >= 0 && index < RM_WORKERS_MAX, "the slot of worker %d", index);
    return slot_is_live(slot) ? find_worker(p, index, slot->attempt) : NULL;
}

const struct pod_view *find_coordinator(const struct planner *p, int term)
{
    return find_pod(p, OP_COORDINATOR, -1, term);
}

/* A node that is gone, or a grace that is long over: the kubelet that should end this pod is no more. One
 * that is only not ready may come back, so this holds for pods that were told to end alone. */
bool pod_is_vanished(const struct planner *p, const struct pod_view *pod)
{
    if (p->s->nodes_known && *pod->node) {
        const struct node_view *node = find_node(p, pod);
        if (!node || (!node->ready && pod->deletion_ms))
            return true;
    }
    return pod->deletion_ms && p->s->now_ms > pod->deletion_ms + OP_DEAD_PATIENCE_MS;
}

/* Neither over nor vanished. */
static bool is_alive(const struct planner *p, const struct pod_view *pod)
{
    return !pod_is_over(pod) && !pod_is_vanished(p, pod);
}

bool pod_is_failed(const struct pod_view *pod)
{
    return pod->terminated && pod->exit_code && !*pod->disruption && !pod->left;
}

const struct coordinator_view *find_coordinator_view(const struct planner *p)
{
    char identity[OP_NAME_MAX];
    const struct coordinator_view *view = p->s->coordinator;
    const struct op_slot *slot = &p->stored->ring.coordinator;
    name_identity(p->job->name, p->job->uid, identity);
    if (!view || !slot_is_live(slot) || view->term != slot->attempt || strcmp(view->job, identity) != 0)
        return NULL;
    return view;
}

static bool differ(const char *pinned, const char *image)
{
    return *pinned && *image && strcmp(pinned, image) != 0;
}

bool pod_is_of_other_image(const struct planner *p, const struct pod_view *pod)
{
    const struct op_images *images = &p->next.images;
    return differ(pod->role == OP_WORKER ? images->trainer : images->coordinator, pod->image) ||
           differ(images->bundle, pod->bundle);
}

int64_t find_silence(const struct planner *p)
{
    const struct op_slot *slot = &p->stored->ring.coordinator;
    const struct pod_view *pod = slot_is_live(slot) ? find_coordinator(p, slot->attempt) : NULL;
    return pod && !pod_is_over(pod) && !pod->deletion_ms ? silence_ms(p->s->silence) : 0;
}

int find_places(const struct planner *p)
{
    RM_ASSERT(p->next.workers.target >= 0, "%d workers are wanted", p->next.workers.target);
    const struct coordinator_view *view = find_coordinator_view(p);
    return p->next.workers.target - (view ? view->quarantined_count : 0);
}

bool find_any_alive(const struct planner *p, enum pod_role role)
{
    for (int i = 0; i < p->s->pods_count; i++)
        if (p->s->pods[i]->role == role && is_alive(p, p->s->pods[i]))
            return true;
    return false;
}

bool find_any_unwanted(const struct planner *p)
{
    for (int i = 0; i < p->s->pods_count; i++) {
        const struct pod_view *pod = p->s->pods[i];
        RM_ASSERT(pod->role == OP_COORDINATOR || (pod->index >= 0 && pod->index < RM_WORKERS_MAX),
                  "pod %s is of worker %d", pod->name, pod->index);
        const struct op_slot *slot =
            pod->role == OP_COORDINATOR ? &p->next.ring.coordinator : &p->next.workers.slot[pod->index];
        if (is_alive(p, pod) && !(slot_is_live(slot) && slot->attempt == pod->attempt))
            return true;
    }
    return false;
}

struct op_found find_present(const struct planner *p)
{
    struct op_found found = {0};
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct op_slot *slot = &p->next.workers.slot[i];
        const struct pod_view *pod = slot->state == OP_SLOT_PRESENT ? find_worker(p, i, slot->attempt) : NULL;
        found.scheduled += pod && *pod->node;
        found.waiting += pod && !*pod->node;
        found.gated += pod && !*pod->node && *pod->gates;
    }
    RM_ASSERT(found.gated <= found.waiting && found.scheduled + found.waiting <= RM_WORKERS_MAX,
              "%d pods have a node, %d wait, %d are gated", found.scheduled, found.waiting, found.gated);
    return found;
}
