/* Lists of checkpoints: who has to make one, and whether they agree. */
#include "coordinator/core/rdzv_lists.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_fit.h"
#include "coordinator/core/rdzv_folders.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_remedy.h"
#include "coordinator/core/rdzv_resume.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_trouble.h"
#include "coordinator/core/rdzv_waiting.h"
#include "coordinator/core/rdzv_who.h"

int rdzv_others_load(const struct rdzv *st, const struct rdzv_worker *but, bool here)
{
    int n = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool there = (w->presence == PRESENT && w->trainer_pid) || (!here && w->expected >= 0);
        n += w != but && there && !w->leaving && !w->released && !w->quarantine[0];
    }
    return n;
}

/* Whoever has listed; who is about to says something new anyway. */
void rdzv_lists_anew(struct rdzv *st)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        w->list_asked = w->list_asked && !w->listed;
        w->listed = false;
    }
}

/* It was asked for its folder's sake, nobody needs what it was to list, and it can have the state from
 * others: it is not asked so again. */
static bool is_needless(const struct rdzv *st, const struct rdzv_worker *w)
{
    return w->asked_idly && !rdzv_sees_another_folder(st, w);
}

void rdzv_list_fault(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f)
{
    struct rdzv *st = turn->st;
    w->list_is_old = false;
    if (is_needless(st, w)) {
        w->list_asked = false;
        return;
    }
    w->asked_idly = false;
    bool again = w->trouble.times && w->trouble.where == FAULT_IN_LIST;
    bool long_alone =
        !rdzv_others_load(st, w, true) && again && turn->now >= w->trouble.since + FAULT_PATIENCE;
    bool proven = f->class == CLASS_OBJECT && long_alone; /* all that there is to list */
    struct fault_decision d = rdzv_trouble(turn, w, FAULT_IN_LIST, f, proven);
    rdzv_lists_anew(st); /* who lists what it can't shows whose trouble that is */
    w->listed = w->list_asked = false;
    RM_ASSERT(w->trouble.times > 0 && w->trouble.where == FAULT_IN_LIST,
              "worker %d can't list, and fails at %d", rdzv_index(st, w), (int)w->trouble.where);
    rdzv_act_on_trouble(turn, w, &d);
}

static bool lists(const struct rdzv_worker *w, const struct msg_state *s)
{
    RM_ASSERT(s->held && w->list.count <= RM_CHECKPOINTS_LISTED, "step %" PRId64 " in a list of %d", s->step,
              w->list.count);
    for (int i = 0; i < w->list.count; i++) {
        if (rdzv_is_of(&w->list.checkpoint[i], s))
            return true;
    }
    return false;
}

/* What it writes nobody else would find. */
static void blame_folder(const struct turn *turn, struct rdzv_worker *w)
{
    struct msg_fault f = {.kind = FAULT_STORAGE, .class = CLASS_MACHINE, .peer = -1, .step = -1};
    char told[MSG_DETAIL_MAX];
    int worker = rdzv_index(turn->st, w);
    RM_ASSERT(w->presence == PRESENT, "worker %d sees another folder, and is not here", worker);
    rdzv_folders_describe(turn->st, worker, f.detail, sizeof f.detail);
    text_print_ends(told, sizeof told, "worker %d is not to take part: %s", worker, f.detail);
    rdzv_tell_waiting_for(turn, told);
    rdzv_list_fault(turn, w, &f);
}

void rdzv_listed(const struct turn *turn, struct rdzv_worker *w, const struct msg_checkpoints *list)
{
    RM_ASSERT(w->presence == PRESENT, "worker %d lists, and is not here", rdzv_index(turn->st, w));
    bool old = w->list_is_old;
    w->list = *list;
    w->list_is_old = false;
    w->listed = !old;
    w->list_asked = w->list_asked && !old;
    w->asked_idly = false;
    w->listed_at = turn->now;
    if (rdzv_sees_another_folder(turn->st, w))
        blame_folder(turn, w);
    else if (!w->trouble.differs)
        rdzv_trouble_over(w, FAULT_IN_LIST);
}

/* True: there are such, who list no longer. */
static bool blame_folders(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    bool any = false;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (w->presence != PRESENT || !w->listed || !rdzv_sees_another_folder(st, w))
            continue;
        blame_folder(turn, w);
        any = true;
    }
    return any;
}

/* The newest that anybody names, and who. */
static struct msg_state newest_of_any(const struct rdzv *st, int *ret_worker)
{
    struct msg_state best = {0};
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        for (int j = 0; rdzv_candidate(st, w) && j < w->list.count; j++) {
            const struct msg_checkpoint *c = &w->list.checkpoint[j];
            if (!rdzv_may_load(st, c) || (best.held && c->step <= best.step))
                continue;
            best.held = true;
            best.step = c->step;
            memcpy(best.lineage, c->lineage, RM_HASH_BYTES);
            *ret_worker = i;
        }
    }
    RM_ASSERT(!best.held || (*ret_worker >= 0 && *ret_worker < RM_WORKERS_MAX),
              "step %" PRId64 " is in the list of %d", best.step, *ret_worker);
    return best;
}

static void misses(const struct turn *turn, int worker, const char *what)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(what[0], "worker %d misses nothing", worker);
    struct msg_fault f = {.kind = FAULT_STORAGE, .peer = -1, .step = -1};
    text_copy(f.detail, sizeof f.detail, what);
    rdzv_list_fault(turn, &st->worker[worker], &f);
    st->worker[worker].trouble.differs = true;
}

static void agree(struct rdzv *st)
{
    RM_ASSERT(st->lists_differ >= 0, "lists differ %d times", st->lists_differ);
    st->lists_differ = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (rdzv_candidate(st, w) && w->listed)
            rdzv_trouble_over(w, FAULT_IN_LIST);
    }
}

/* Lists that were made at different times differ once; those that differ again are of different places. */
static bool lists_agree(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    int by = 0;
    char what[MSG_DETAIL_MAX];
    rdzv_folders_settle(st);
    if (blame_folders(turn))
        return false;
    struct msg_state any = newest_of_any(st, &by), common = rdzv_newest_checkpoint(st);
    RM_ASSERT(!common.held || (any.held && any.step >= common.step),
              "all list step %" PRId64 ", and one lists %" PRId64, common.step, any.held ? any.step : -1);
    bool gone = !any.held && st->saved > 0 && !st->refused_count;
    if (!gone && (!any.held || (common.held && common.step >= any.step))) {
        agree(st);
        return true;
    }
    if (st->lists_differ++ == 0) {
        rdzv_lists_anew(st);
        return false;
    }
    if (gone)
        snprintf(what, sizeof what,
                 "the checkpoint of step %" PRId64 " was there, and is not listed any more", st->saved);
    else
        snprintf(what, sizeof what,
                 "it does not see the checkpoint of step %" PRId64
                 ", which worker %d sees: is its folder the "
                 "same one?",
                 any.step, by);
    bool candidate[RM_WORKERS_MAX];
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        candidate[i] = rdzv_candidate(st, &st->worker[i]);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        if (candidate[i] && (gone || !lists(&st->worker[i], &any)))
            misses(turn, i, what);
    }
    return false;
}

static const struct msg_checkpoint *listed(const struct rdzv *st, const struct msg_state *checkpoint)
{
    RM_ASSERT(checkpoint->held, "step %" PRId64 " is in a list, and there is none", checkpoint->step);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct msg_checkpoints *list = &st->worker[i].list;
        for (int j = 0; rdzv_candidate(st, &st->worker[i]) && j < list->count; j++) {
            const struct msg_checkpoint *c = &list->checkpoint[j];
            if (rdzv_is_of(c, checkpoint))
                return c;
        }
    }
    return NULL;
}

/* The checkpoint to go on from; NULL: there is none, or it is in nobody's list. */
static const struct msg_checkpoint *newest_listed(const struct rdzv *st)
{
    struct msg_state newest = rdzv_newest_checkpoint(st);
    return newest.held ? listed(st, &newest) : NULL;
}

/* Of one worker's list nothing is learnt: its folder may be another one. What they agree on may have been
 * made in an arithmetic that some of them don't have: those go first. */
static bool lists_will_do(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    if (!rdzv_lists_are_in(st))
        return false;
    return !rdzv_needs_lists(st) || (lists_agree(turn) && rdzv_fit_checkpoint(turn, newest_listed(st)));
}

/* One that comes while nobody needs a list is asked all the same, once. Who sees another folder is asked
 * again, as that may have been mounted since, and then so are the others, who show that they can. */
static bool is_to_say_its_folder(const struct rdzv *st, const struct rdzv_worker *w, bool differ)
{
    bool here = w->presence == PRESENT && w->trainer_pid && !w->leaving && !w->released;
    if (!here || w->listed || w->list_asked || w->asked_idly || rdzv_pauses(st, w))
        return false;
    return !w->listed_at || differ;
}

void rdzv_ask_folders(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state != RDZV_FINISHED && st->state != RDZV_FAILED, "folders are asked for in state %s",
              rdzv_state_name(st->state));
    rdzv_folders_forget(st);
    bool differ = rdzv_folders_differ(st);
    for (int i = 0; i < RM_WORKERS_MAX && st->folder[0]; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (!is_to_say_its_folder(st, w, differ))
            continue;
        rdzv_send_one(turn, w, MSG_LIST);
        w->list_asked = w->asked_idly = true;
    }
}

bool rdzv_ask_lists(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_GATHERING || st->state == RDZV_QUIESCING,
              "checkpoints are listed in state %s", rdzv_state_name(st->state));
    if (lists_will_do(turn))
        return true;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (!rdzv_candidate(st, w) || w->listed || w->list_asked)
            continue;
        rdzv_send_one(turn, w, MSG_LIST);
        w->list_asked = true;
        w->asked_idly = false;
    }
    return false;
}
