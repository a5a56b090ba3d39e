/* First the replacement, then the leave.
 *
 * Of a machine that *may* go nobody knows whether it does: a cordon, a proposal of Karpenter's, a warning of
 * a cloud. It is no reason to train with fewer. So one more worker is made than the target says, elsewhere;
 * when it is in the ring who is on that machine goes. Where there is no place for another one nothing
 * changes, and where the warning is withdrawn who came last goes. How many at a time: scheduling.surge.
 *
 * When that is its coordinator decides, which is asked with each question for its status, from before the
 * replacement is made: it alone knows whose place who comes has taken, as others may go at the same time
 * whose machines *will* go. We tell nobody to leave on account of who waits beside a ring. Of a replacement
 * that was in the ring before that was asked we do; but nobody by its machine's own word who has not had that
 * machine for a minute: whoever lies in its name could have each one leave that comes there.
 *
 * Nor does a taint by which a machine *will* go end who trains there at once: another one is made, and the
 * coordinator lets who is there go as it comes in its place. What is left of the time that such a taint
 * promises is for the leave: as long as the coordinator says that one takes, else half.
 *
 * Whose machine *will* go at a moment that is known trains on, and its coordinator lets it go when another
 * one has its place, or when it is time. So for each of those another one is made at once, and nobody is told
 * to leave by us. */
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/notice/notice.h"
#include "common/wire/question.h"
#include "operator/core/plan_parts.h"
#include "operator/core/pod.h"

enum {
    APART_MS = 60 * 1000, /* as coordinator/core/rdzv_machine.h has it */
    HEARS_MS = 10 * 1000, /* until a worker whose pod is deleted hears it */
    /* Until another operator has taken over from one that is gone: it is we who delete the pod, and who saw
     * the taint first. common/kube/lease.h has it. */
    SUCCEEDS_MS = 15 * 1000,
    STEP_S = 10, /* what time is left is said in steps of that: each change is another question */
};

/* NULL: it is not connected under its attempt. */
static const struct op_present *present(const struct planner *p, int index)
{
    RM_ASSERT(index >= 0 && index < RM_WORKERS_MAX, "worker %d is connected", index);
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

/* Its Node has a taint by which its machine will go after a while. */
static bool is_tainted(const struct planner *p, int index)
{
    const struct pod_view *pod = placed_pod(p, index);
    const struct node_view *node = find_node(p, pod);
    return node && *node->leave && node->lead_ms && p->next.workers.slot[index].state == OP_SLOT_PRESENT;
}

/* Of those who train, others that stay. */
static int others_staying(const struct planner *p, int index)
{
    int count = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct pod_view *pod = i != index ? placed_pod(p, i) : NULL;
        const struct node_view *node = find_node(p, pod);
        const struct op_present *there = pod ? present(p, i) : NULL;
        count += there && there->in_ring && !there->will_go && !(node && *node->leave);
    }
    RM_ASSERT(count < RM_WORKERS_MAX, "%d others than worker %d stay", count, index);
    return count;
}

/* When its machine goes by its Node's taint, as far as is known: no Node says when a taint came, and what is
 * promised counts from when it was first seen. Of two that stand only the one that promises less is told of:
 * where the first one's moment is nearer it stays, and where the nearer one is taken back the other's counts
 * from the first word on. */
static int64_t gone_at(const struct planner *p, int index, const struct node_view *node)
{
    RM_ASSERT(*node->leave && node->lead_ms > 0, "node %s goes after %lld ms", node->name,
              (long long)node->lead_ms);
    static const int64_t same_ms = NOTICE_SAME_MOMENT / RM_MS;
    const struct op_slot *slot = &p->next.workers.slot[index];
    int64_t now_ms = p->s->now_ms / 1000 * 1000, known_ms = slot->until_ms;
    if (!known_ms || now_ms + node->lead_ms < known_ms - same_ms)
        return now_ms + node->lead_ms;
    if (slot->told_ms && slot->told_ms + node->lead_ms > known_ms + same_ms)
        return slot->told_ms + node->lead_ms;
    return known_ms;
}

/* What is left for the leave when its pod is deleted: half of what the taint promises, where its coordinator
 * does not say how much that takes. */
static int64_t kept_ms(const struct planner *p, int index, int64_t lead_ms)
{
    RM_ASSERT(lead_ms > 0, "worker %d's machine goes after %lld ms", index, (long long)lead_ms);
    const struct op_present *there = is_heard(p) ? present(p, index) : NULL;
    if (!there || !there->leave_ms)
        return lead_ms / 2;
    int64_t reserve_ms = HEARS_MS + SUCCEEDS_MS;
    int64_t takes_ms = there->leave_ms + (reserve_ms < lead_ms / 2 ? reserve_ms : lead_ms / 2);
    return takes_ms < lead_ms ? takes_ms : lead_ms;
}

static int64_t held_until(const struct planner *p, int index, const struct node_view *node)
{
    return gone_at(p, index, node) - kept_ms(p, index, node->lead_ms);
}

/* That train, and stay. */
static int in_their_places(const struct planner *p)
{
    int count = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct op_present *there = find_live(p, i) ? present(p, i) : NULL;
        count += there && there->in_ring && !there->will_go && !is_tainted(p, i);
    }
    RM_ASSERT(count <= RM_WORKERS_MAX, "%d are in their places", count);
    return count;
}

/* Without it fewer than min would be left, or its place is nobody's yet. Of the latter its coordinator has to
 * be told. Who only waits for a place, or has not come yet, is kept as well: its coordinator, which is told
 * of it, sends it away, where one whose pod we are about to delete would still be taken in for another one.
 */
static bool is_of_use(const struct planner *p, int index)
{
    RM_ASSERT(placed_pod(p, index), "worker %d is on no machine, and of use there", index);
    if (others_staying(p, index) < p->job->workers_min)
        return true;
    return is_heard(p) && !p->job->freezes && in_their_places(p) < find_places(p);
}

/* Where fewer than min would be left also while no coordinator is there, who would let it go with what it
 * holds. */
bool surge_holds(struct planner *p, int index)
{
    const struct pod_view *pod = placed_pod(p, index);
    const struct node_view *node = find_node(p, pod);
    if (!node || !*node->leave || !node->lead_ms || pod->deletion_ms || *pod->disruption ||
        !is_of_use(p, index))
        return false;
    int64_t until_ms = held_until(p, index, node);
    if (p->s->now_ms >= until_ms)
        return false;
    plan_wake(p, until_ms);
    return true;
}

/* A coordinator that says nothing lets nobody go. */
bool surge_leaves_by_itself(const struct planner *p, int index)
{
    return is_heard(p) && will_go(p, index);
}

static bool was_asked(const struct planner *p, int index)
{
    RM_ASSERT(index >= 0 && index < RM_WORKERS_MAX, "worker %d was asked", index);
    const struct op_slot *slot = &p->stored->workers.slot[index];
    return slot->asked && slot->attempt == p->next.workers.slot[index].attempt;
}

/* Who was asked and is not there any more may have left by it. */
static bool may_have_to_go(const struct planner *p, int index)
{
    const struct pod_view *pod = placed_pod(p, index);
    if (!pod || will_go(p, index) || is_tainted(p, index))
        return false;
    const struct node_view *node = find_node(p, pod);
    const struct op_present *there = present(p, index);
    bool told = there ? there->may_go : was_asked(p, index);
    return told || (node && *node->may_leave) || plan_may_return(p, pod);
}

bool surge_is_uneasy(const struct planner *p, int index)
{
    return may_have_to_go(p, index) || will_go(p, index) || is_tainted(p, index);
}

/* Of those who leave by themselves the job is told how many more it is to have, not asked. */
int surge_decide(const struct planner *p)
{
    RM_ASSERT(p->mode != OP_DONE && p->job->surge >= 0, "%d more in mode %s", p->job->surge,
              plan_mode_name(p));
    int may = 0, will = 0;
    if (p->job->freezes)
        return 0; /* who comes goes on from what who goes leaves behind */
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        may += may_have_to_go(p, i);
        will += will_go(p, i) || is_tainted(p, i);
    }
    return (may < p->job->surge ? may : p->job->surge) + will;
}

/* As many as scheduling.surge says; who was asked for stays so while its machine may go. */
void surge_ask(struct planner *p)
{
    int asked = 0;
    bool runs = p->mode == OP_RUN && !p->finishing && !p->job->freezes;
    for (int first = 1; first >= 0; first--)
        for (int i = 0; i < RM_WORKERS_MAX; i++) {
            struct op_slot *slot = &p->next.workers.slot[i];
            bool may = runs && slot->state == OP_SLOT_PRESENT && may_have_to_go(p, i);
            if (was_asked(p, i) != (first != 0))
                continue;
            slot->asked = may && asked < p->job->surge;
            asked += slot->asked;
        }
    RM_ASSERT(asked <= p->job->surge, "%d are asked, of %d at a time", asked, p->job->surge);
}

/* A worker of this job that is told of, and on that machine. */
static const struct op_slot *slot_there(const struct planner *p, int index, const struct node_view *node)
{
    RM_ASSERT(index >= 0 && index < RM_WORKERS_MAX, "worker %d is on node %s", index, node->name);
    const struct pod_view *pod = placed_pod(p, index);
    const struct op_slot *slot = &p->next.workers.slot[index];
    bool there = pod && slot->state == OP_SLOT_PRESENT && !strcmp(pod->node, node->name);
    return there ? slot : NULL;
}

static int others_there(const struct planner *p, int index, const struct node_view *node)
{
    int count = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        count += i != index && slot_there(p, i, node);
    RM_ASSERT(count < RM_WORKERS_MAX, "%d others than worker %d are on %s", count, index, node->name);
    return count;
}

/* Of another worker there the same was told: a machine's word is told once, for all of the job. */
static bool is_told_there(const struct planner *p, int index, const struct node_view *node, int64_t until_ms)
{
    const struct op_slot *own = &p->next.workers.slot[index];
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct op_slot *other = i != index ? slot_there(p, i, node) : NULL;
        bool as_sure = other && other->told_ms && (!until_ms || other->until_ms);
        if (as_sure && (!own->until_ms || other->until_ms == until_ms))
            return true;
    }
    return false;
}

/* What is taken back is taken back for all: the first of them says so. */
static bool speaks_for_all(const struct planner *p, int index, const struct node_view *node)
{
    RM_ASSERT(p->stored->workers.slot[index].told_ms, "of worker %d nothing was told", index);
    for (int i = 0; i < index; i++)
        if (slot_there(p, i, node) && p->stored->workers.slot[i].told_ms)
            return false;
    return true;
}

static void tell_received(struct planner *p, int index, const struct node_view *node, bool will)
{
    const char *why = will ? node->leave : node->may_leave;
    RM_ASSERT(*why && placed_pod(p, index), "worker %d is on node %s, which does not go", index, node->name);
    bool karpenters = placed_pod(p, index)->undrained && strstr(why, "karpenter.sh/");
    char more[40] = "";
    if (others_there(p, index, node))
        snprintf(more, sizeof more, " (and %d more there)", others_there(p, index, node));
    plan_event(p, false, "NoticeReceived", "Replace", "worker %d%s: its machine %s go: %.80s %s%s", index,
               more, will ? "will" : "may", node->name, why,
               karpenters ? "; its pod tolerates it, so Karpenter won't drain it" : "");
}

/* What stands in the slot is what was told: once for each word, and again where it is surer, or its moment is
 * another one. A word that its metadata says as well, or a surer one, its coordinator tells. */
static void tell_word(struct planner *p, int index, const struct node_view *node, int64_t until_ms)
{
    RM_ASSERT(*node->leave || *node->may_leave, "worker %d is on node %s, which stays", index, node->name);
    struct op_slot *slot = &p->next.workers.slot[index];
    const struct op_present *there = present(p, index);
    bool will = until_ms != 0, surer_heard = there && there->will_go;
    bool heard = surer_heard || (there && there->may_go && !will);
    int64_t now_ms = p->s->now_ms / 1000 * 1000;
    if (!slot->told_ms || (will && until_ms != slot->until_ms)) {
        if (heard)
            return;
        if (!is_told_there(p, index, node, until_ms))
            tell_received(p, index, node, will);
        if (!slot->told_ms || !slot->until_ms)
            slot->told_ms = now_ms;
    } else if (!will && slot->until_ms) {
        if (!surer_heard && speaks_for_all(p, index, node))
            plan_event(p, false, "NoticeWithdrawn", "Replace",
                       "worker %d: its machine %s will not go for sure any more: it %s", index, node->name,
                       node->may_leave);
        slot->told_ms = now_ms;
    }
}

/* Of one on a Node that goes for good, or is not to be seen, nothing is withdrawn. The moment is kept also
 * where others tell of it. */
static void tell_of(struct planner *p, int index, bool aloud)
{
    struct op_slot *slot = &p->next.workers.slot[index];
    const struct node_view *node = find_node(p, placed_pod(p, index));
    const struct op_present *there = present(p, index);
    if (!node || slot->state != OP_SLOT_PRESENT || (*node->leave && !node->lead_ms))
        return;
    int64_t until_ms = *node->leave ? gone_at(p, index, node) : 0;
    if (aloud && (*node->leave || *node->may_leave))
        tell_word(p, index, node, until_ms);
    else if (aloud && slot->told_ms) {
        if ((!there || (!there->may_go && !there->will_go)) && speaks_for_all(p, index, node))
            plan_event(p, false, "NoticeWithdrawn", "Replace",
                       "worker %d: its machine %s does not go: nobody says so any more", index, node->name);
        slot->told_ms = 0;
    }
    slot->until_ms = until_ms;
}

/* It is withdrawn by whoever said it last: where its Node says so still, that it does no more is told then.
 */
bool surge_has_told(const struct planner *p, const struct op_coordinator_event *notice)
{
    RM_ASSERT(notice->kind == EVENT_NOTICE_RECEIVED || notice->kind == EVENT_NOTICE_WITHDRAWN,
              "event %d is no notice", (int)notice->kind);
    if (notice->worker < 0 || notice->worker >= RM_WORKERS_MAX)
        return false;
    const struct op_slot *slot = &p->stored->workers.slot[notice->worker];
    bool same = slot->attempt == p->next.workers.slot[notice->worker].attempt;
    return same && slot->told_ms && (!notice->will || slot->until_ms);
}

void surge_tell(struct planner *p)
{
    bool aloud = p->mode == OP_RUN && !p->finishing;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        tell_of(p, i, aloud);
}

/* Of whom that stands in the status, so that it is known why they went. */
static bool is_asked(const struct planner *p, int index)
{
    return p->stored->workers.slot[index].asked && p->next.workers.slot[index].asked;
}

static bool is_deleted(const struct planner *p, int index)
{
    const struct pod_view *pod = find_worker(p, index, p->stored->workers.slot[index].attempt);
    return pod && !pod_is_over(pod) && pod->deletion_ms;
}

/* It is kept although its Node has a taint, and the moment stands in the status. Who knows by itself tells
 * its coordinator. */
static bool is_told_of(const struct planner *p, int index)
{
    const struct op_slot *stored = &p->stored->workers.slot[index];
    bool runs = p->mode == OP_RUN && !p->finishing && !p->job->freezes;
    return runs && is_tainted(p, index) && !is_deleted(p, index) && !will_go(p, index) && stored->until_ms &&
           stored->attempt == p->next.workers.slot[index].attempt;
}

static bool is_to_go(const struct planner *p, int index)
{
    return is_asked(p, index) || is_told_of(p, index);
}

static int64_t seconds_left(const struct planner *p, int index)
{
    int64_t left_s = (p->next.workers.slot[index].until_ms - p->s->now_ms) / 1000;
    return left_s > 0 ? left_s / STEP_S * STEP_S : 0;
}

/* Its pod is deleted on such a machine: it is to know that it has no more time than that. */
static bool is_deleted_there(const struct planner *p, int index)
{
    const struct op_slot *stored = &p->stored->workers.slot[index];
    const struct node_view *node = find_node(p, find_worker(p, index, stored->attempt));
    return is_deleted(p, index) && stored->until_ms && node && *node->leave;
}

static bool has_time_left(const struct planner *p, int index)
{
    return (is_told_of(p, index) || is_deleted_there(p, index)) && seconds_left(p, index) > 0;
}

/* Says "relieve=" or what else is before the first, and "2.1,4.3" of as many as there is room for; timed:
 * with the seconds that are left, "2.1.110". */
static void say_those(const struct planner *p, bool (*is_one)(const struct planner *p, int index), bool timed,
                      const char *first, struct str *text)
{
    enum { ROOM = 64 }; /* for one of them, and what stands behind all */
    int count = 0;
    for (int i = 0; i < RM_WORKERS_MAX && text->length < OP_RELIEF_MAX - ROOM; i++) {
        if (!is_one(p, i))
            continue;
        str_addf(text, "%s%d.%d", count++ ? "," : first, i, p->stored->workers.slot[i].attempt);
        if (timed)
            str_addf(text, ".%lld", (long long)seconds_left(p, i));
    }
    RM_ASSERT(!text->truncated, "%d are asked to go, and there is no room for them", count);
}

/* "relieve=2.1,4.3&deleted=5.1&will=4.3.110&stay=3": who is named with `will` is with
 * `relieve` or `deleted` as well, for coordinators that know no more. */
void surge_say_asked(const struct planner *p, char out[OP_RELIEF_MAX])
{
    struct str text = str_init(OP_RELIEF_MAX - 1);
    int places = find_places(p), least = p->job->workers_min;
    say_those(p, is_to_go, false, QUESTION_RELIEVE "=", &text);
    const char *first = text.length ? "&" QUESTION_DELETED "=" : QUESTION_RELIEVE "=&" QUESTION_DELETED "=";
    say_those(p, is_deleted, false, first, &text);
    say_those(p, has_time_left, true, "&" QUESTION_WILL "=", &text);
    if (text.length)
        str_addf(&text, "&" QUESTION_STAY "=%d", places > least ? places : least);
    text_copy(out, OP_RELIEF_MAX, str_text(&text));
    str_clear(&text);
}

/* Nobody but its machine itself says that it may go. */
static bool is_told_alone(const struct planner *p, int index)
{
    const struct pod_view *pod = placed_pod(p, index);
    RM_ASSERT(pod, "worker %d is on no machine that could say something", index);
    const struct node_view *node = find_node(p, pod);
    return !(node && *node->may_leave) && !plan_may_return(p, pod);
}

static int64_t relieved_from(const struct planner *p, int index)
{
    const struct pod_view *pod = placed_pod(p, index);
    RM_ASSERT(pod, "worker %d is on no machine that it could leave", index);
    int64_t since_ms = pod->bound_ms ? pod->bound_ms : pod->created_ms;
    return is_told_alone(p, index) ? since_ms + APART_MS : 0;
}

bool surge_relieves(struct planner *p, int index)
{
    const struct coordinator_view *view = find_coordinator_view(p);
    if (!is_heard(p) || view->state != STATUS_TRAINING || !may_have_to_go(p, index))
        return false;
    if (p->s->now_ms < relieved_from(p, index)) {
        plan_wake(p, relieved_from(p, index));
        return false;
    }
    const struct op_present *there = present(p, index);
    int places = find_places(p), least = p->job->workers_min;
    int stay = in_their_places(p) - (there && there->in_ring);
    return stay >= places && stay >= least;
}

/* What its Node says keeps the next ones away by itself. Of what the machine alone was told nobody knows any
 * more when no worker is there: it is remembered, or the next replacement would be put there and be told. */
void surge_relieve(struct planner *p, const struct pod_view *pod)
{
    RM_ASSERT(pod && pod->role == OP_WORKER, "%s leaves job %s, and is no worker", pod ? pod->name : "nobody",
              p->job->name);
    const char *why = "may go, as it was told";
    const struct node_view *node = find_node(p, pod);
    if (node && *node->may_leave)
        why = node->may_leave;
    else if (plan_may_return(p, pod))
        why = "is no spot machine";
    else
        account_unfit(&p->next.workers.left, pod->node);
    plan_event(p, false, "Relieved", "Replace",
               "worker %d leaves %s, which %s; another one has taken its place", pod->index, pod->node, why);
}

/* Whether this one is beyond the target. The last of those to be made are: the others are in places that
 * nobody else has. */
bool surge_is_more(const struct planner *p, int index)
{
    RM_ASSERT(index >= 0 && index < RM_WORKERS_MAX, "worker %d is one more", index);
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
    RM_ASSERT(all->barred_count >= 0 && all->barred_count <= RM_WORKERS_MAX, "%d machines are barred",
              all->barred_count);
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
    RM_ASSERT(ret->barred_count <= RM_WORKERS_MAX, "%d machines are barred", ret->barred_count);
}
