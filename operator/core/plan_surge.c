/* First the replacement, then the leave.
 *
 * Of a machine that *may* go nobody knows whether it does: a cordon, a proposal of Karpenter's, a warning of
 * a cloud. It is no reason to train with fewer. So one more worker is made than the target says, elsewhere;
 * when it is in the ring who is on that machine goes. Where there is no place for another one nothing
 * changes, and where the warning is withdrawn who came last goes. How many at a time: scheduling.surge.
 *
 * Whose machine *will* go at a moment that is known trains on, and its coordinator lets it go when another
 * one has its place, or when it is time. So for each of those another one is made at once, and nobody is told
 * to leave by us. */
#include <string.h>

#include "operator/core/plan_parts.h"
#include "operator/core/pod.h"

/* NULL: it is not connected under its attempt. */
static const struct op_present *present(const struct planner *p, int index)
{
    const struct coordinator_view *view = find_coordinator_view(p);
    for (int i = 0; view && i < view->workers_count; i++)
        if (view->worker[i].worker == index && view->worker[i].attempt == p->next.workers.slot[index].attempt)
            return &view->worker[i];
    return NULL;
}

/* On a machine; NULL: on none, or over. */
static const struct pod_view *placed_pod(const struct planner *p, int index)
{
    const struct pod_view *pod = find_live(p, index);
    return pod && *pod->node && !pod_is_over(pod) ? pod : NULL;
}

static bool is_heard(const struct planner *p)
{
    return find_coordinator_view(p) && find_silence(p) < OP_SILENCE_MS;
}

static bool will_go(const struct planner *p, int index)
{
    const struct op_present *there = placed_pod(p, index) ? present(p, index) : NULL;
    return there && there->will_go;
}

/* A coordinator that says nothing lets nobody go. */
bool surge_leaves_by_itself(const struct planner *p, int index)
{
    return is_heard(p) && will_go(p, index);
}

static bool may_have_to_go(const struct planner *p, int index)
{
    const struct pod_view *pod = placed_pod(p, index);
    if (!pod || will_go(p, index))
        return false;
    const struct node_view *node = find_node(p, pod);
    const struct op_present *there = present(p, index);
    return (node && *node->may_leave) || (there && there->may_go) || plan_may_return(p, pod);
}

bool surge_is_uneasy(const struct planner *p, int index)
{
    return may_have_to_go(p, index) || will_go(p, index);
}

/* Of those who leave by themselves the job is told how many more it is to have, not asked. */
int surge_decide(const struct planner *p)
{
    int may = 0, will = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        may += may_have_to_go(p, i);
        will += will_go(p, i);
    }
    return (may < p->job->surge ? may : p->job->surge) + will;
}

/* Would who waits have a place as soon as somebody leaves, and not before? A program that a change of members
 * restarts takes the two in one. */
static bool waits_for_a_leave(const struct planner *p, const struct coordinator_view *view)
{
    return p->job->stepless || view->ring_size >= p->job->workers_max;
}

/* That train, or do so as soon as another one leaves. */
static int in_their_places(const struct planner *p, const struct coordinator_view *view)
{
    int count = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct op_present *there = find_live(p, i) ? present(p, i) : NULL;
        if (there)
            count += (there->in_ring && !there->will_go) ||
                     (there->waits && waits_for_a_leave(p, view) && !surge_is_uneasy(p, i));
    }
    return count;
}

bool surge_relieves(const struct planner *p, int index)
{
    const struct coordinator_view *view = find_coordinator_view(p);
    if (!is_heard(p) || view->state != STATUS_TRAINING || !may_have_to_go(p, index))
        return false;
    const struct op_present *there = present(p, index);
    int places = find_places(p), least = p->job->workers_min;
    int stay = in_their_places(p, view) - (there && there->in_ring);
    return stay >= places && stay >= least;
}

/* What its Node says keeps the next ones away by itself. Of what the machine alone was told nobody knows any
 * more when no worker is there: it is remembered, or the next replacement would be put there and be told. */
void surge_relieve(struct planner *p, int index)
{
    const char *why = "is no spot machine";
    const struct pod_view *pod = find_live(p, index);
    const struct node_view *node = find_node(p, pod);
    const struct op_present *there = present(p, index);
    if (node && *node->may_leave)
        why = node->may_leave;
    else if (there && there->may_go) {
        why = "may go, as it was told";
        account_unfit(&p->next.workers.left, pod->node);
    }
    plan_event(p, false, "Relieved", "Replace",
               "worker %d leaves %s, which %s; another one has taken its place", index, pod->node, why);
}

/* Of those to be made the last ones: the others are in places that nobody else has. */
bool surge_is_more(const struct planner *p, int index)
{
    int before = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        enum op_slot_state state = p->next.workers.slot[i].state;
        before += state == OP_SLOT_PRESENT || (state == OP_SLOT_WANTED && i < index);
    }
    return before >= find_places(p);
}

static bool is_there(const struct planner *p, const char *node)
{
    return !p->s->nodes_known || p->s->node(p->s->nodes, node);
}

static bool is_barred(const struct op_elsewhere *all, const char *node)
{
    for (int i = 0; i < all->barred_count; i++)
        if (!strcmp(all->barred[i], node))
            return true;
    return false;
}

void surge_bar(const struct planner *p, struct op_elsewhere *ret)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct pod_view *pod = surge_is_uneasy(p, i) ? find_live(p, i) : NULL;
        if (pod && !is_barred(ret, pod->node))
            ret->barred[ret->barred_count++] = pod->node;
    }
    const struct op_names *left = &p->stored->workers.left;
    for (int i = 0; i < left->count && ret->barred_count < RM_WORKERS_MAX; i++)
        if (!is_barred(ret, left->name[i]) && is_there(p, left->name[i]))
            ret->barred[ret->barred_count++] = left->name[i];
}
