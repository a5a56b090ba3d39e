/* TRAINING: what stops a ring that is at work, and its last step. */
#include "coordinator/core/rdzv_train.h"

#include <string.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_ending.h"
#include "coordinator/core/rdzv_leave.h"
#include "coordinator/core/rdzv_listen.h"
#include "coordinator/core/rdzv_pairs.h"
#include "coordinator/core/rdzv_probe.h"
#include "coordinator/core/rdzv_program.h"
#include "coordinator/core/rdzv_progress.h"
#include "coordinator/core/rdzv_recovery.h"
#include "coordinator/core/rdzv_relief.h"
#include "coordinator/core/rdzv_save.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_stop.h"
#include "coordinator/core/rdzv_who.h"
#include "coordinator/core/rdzv_will.h"

static bool any_finished(const struct rdzv *st)
{
    for (int r = 0; r < st->world; r++) {
        if (st->worker[st->member[r]].finished)
            return true;
    }
    return false;
}

void rdzv_finished(struct rdzv *st, struct rdzv_worker *w, const struct message *m)
{
    if (generation_compare(m->generation, st->ring) != 0 || (w->rank < 0 && st->state != RDZV_RECOVERING))
        return;
    bool comparable = st->exact || st->settings.brought; /* what is mixed has one result, too */
    if (any_finished(st) && comparable && memcmp(st->digest, m->finished.digest, RM_HASH_BYTES) != 0) {
        st->ending.differ |= !st->ending.set;
        rdzv_give_up(st, EXIT_TRAINING, "workers end with different weights: worker %d disagrees",
                     rdzv_index(st, w));
    }
    st->digest_known = true;
    memcpy(st->digest, m->finished.digest, RM_HASH_BYTES);
    w->digest_known = true;
    memcpy(w->digest, m->finished.digest, RM_HASH_BYTES);
    st->exact = st->exact && m->finished.exact;
    w->finished = true;
    RM_ASSERT(st->digest_known && w->digest_known, "worker %d finished, with no weights", rdzv_index(st, w));
}

/* ---- joins ---- */

static bool wants_to_join(const struct rdzv *st, const struct rdzv_worker *w)
{
    bool there = w->presence == PRESENT && w->trainer_pid && w->rank < 0 && !w->leaving && !w->goes &&
                 !w->released && w->asked == RM_NEVER && /* it answers */
                 w->listening != LISTENING_NOW;
    return there && !rdzv_held_back(st, w) && !rdzv_pairs_bar(st, rdzv_index(st, w)) &&
           !rdzv_relief_bars(st, w);
}

/* Whether what is left to do takes longer than making room for a newcomer. */
static bool is_worth_it(const struct rdzv *st, const struct rdzv_worker *w)
{
    double left = (double)(st->settings.steps - st->told) * st->step_time;
    return st->settings.program || w->act == CAUSE_WORKER_JOINED || left > (double)st->reform_cost;
}

/* Who comes while a member's machine may go is there to take its place, and whoever made it says so here
 * (rdzv_relief.h) or asks the member to leave. A program that each change of members restarts has one restart
 * of the two. */
static const rm_time leave_patience = 30 * RM_S;

static bool awaits_a_leave(const struct rdzv *st)
{
    RM_ASSERT(st->world > 0, "a leave of a ring of %d", st->world);
    bool may = false;
    for (int r = 0; r < st->world; r++) {
        const struct rdzv_worker *w = &st->worker[st->member[r]];
        may |= w->noticed && w->notice.certainty == NOTICE_MAY && !rdzv_is_eased(st, w);
    }
    return may && st->settings.program && st->settings.unsupervised;
}

/* When the join of those who wait may begin; *ret_first is one of them. RM_NEVER: there is none. */
static rm_time join_at(const struct rdzv *st, int *ret_first)
{
    int most = rdzv_members_max(st);
    int stay = st->world - rdzv_will_members(st) - rdzv_relief_has_place(st);
    RM_ASSERT(stay >= 0 && stay <= st->world, "%d of a ring of %d stay", stay, st->world);
    rm_time first = RM_NEVER;
    bool more_coming = false;
    int here_now = 0;
    for (int i = 0; i < RM_WORKERS_MAX && stay < most; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        rm_time since = rm_later(w->joined, w->heard_at);
        if (wants_to_join(st, w) && is_worth_it(st, w) && since < first) {
            first = since;
            *ret_first = i;
        }
        bool makes_room = rdzv_will_makes_room(st, w) || rdzv_is_eased(st, w);
        bool here = (w->rank >= 0 && !makes_room) || wants_to_join(st, w);
        bool coming = !here && w->rank < 0 && w->expected >= 0 && !w->leaving && !w->released;
        here_now += here;
        more_coming = more_coming || (coming && !rdzv_pairs_bar(st, i));
    }
    if (first == RM_NEVER)
        return RM_NEVER;
    if (st->settings.unsupervised)
        more_coming = !rdzv_at_target(st, here_now);
    rm_time at = more_coming ? first + st->settings.join_window : first;
    return awaits_a_leave(st) ? rm_later(at, first + leave_patience) : at;
}

/* Where a ring is at work nobody is given a state while it stands still; unless all of it will go: who comes
 * then is to have it before that, and what is given in turns may take longer. */
static void ask_to_listen(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_TRAINING, "who comes listens in state %s", rdzv_state_name(st->state));
    int will = rdzv_will_members(st), stay = st->world - will - rdzv_relief_has_place(st);
    bool may = st->settings.listens && !st->settings.program, all_go = will == st->world;
    for (int i = 0; i < RM_WORKERS_MAX && stay < rdzv_members_max(st) && may; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (all_go) {
            rdzv_listen_no_more(st, w);
            continue;
        }
        bool again = w->listening == LISTENING_NOW && !w->listen_said && w->presence == PRESENT;
        if (again || (w->listening == LISTENING_NOT && wants_to_join(st, w)))
            rdzv_listen(turn, w);
    }
}

/* ---- what it waits for ---- */

static void settle_finish(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(rdzv_all_finished(st), "a ring of %d is done, and not all have finished", st->world);
    struct msg_state last = {.held = true, .step = st->settings.steps};
    if (st->settings.program)
        rdzv_program_finished(st);
    if (!rdzv_all_told(turn))
        return;
    if (st->recovery.active)
        rdzv_recovery_done(turn);
    if (st->settings.program)
        rdzv_end(turn);
    else
        rdzv_save_begin(turn, &last, true);
}

static void settle_joins(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    int joiner = -1;
    ask_to_listen(turn);
    rdzv_listen_settle(turn);
    if (turn->now >= join_at(st, &joiner)) {
        RM_ASSERT(joiner >= 0, "nobody joins, in a ring of %d", st->world);
        rdzv_recovery_begin(turn, CAUSE_WORKER_JOINED, &st->worker[joiner]);
        rdzv_quiesce(turn, STOP_BOUNDARY);
    }
}

void rdzv_settle_training(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_TRAINING && st->world > 0, "a ring of %d trains in state %s", st->world,
              rdzv_state_name(st->state));
    rdzv_settle_probes(turn);
    if (st->ending.set) {
        rdzv_quiesce(turn, st->ending.interrupted ? STOP_BOUNDARY : STOP_NOW);
    } else if (rdzv_all_finished(st)) {
        settle_finish(turn);
    } else if (any_finished(st) && !st->settings.program) {
        return; /* the others are about to */
    } else if (rdzv_leave_is_due(turn)) {
        rdzv_leave_begin(turn);
    } else if (!any_finished(st)) { /* a program's may take hours more, and takes nobody in */
        settle_joins(turn);
    }
}

rm_time rdzv_training_until(const struct rdzv *st)
{
    RM_ASSERT(st->state == RDZV_TRAINING && st->world > 0, "a ring of %d trains in state %s", st->world,
              rdzv_state_name(st->state));
    int joiner;
    if (any_finished(st))
        return st->settings.program ? rdzv_leave_due_at(st) : RM_NEVER;
    rm_time at = rm_earlier(rdzv_leave_due_at(st), rdzv_probe_at(st));
    return rm_earlier(at, rm_earlier(rdzv_listen_until(st), join_at(st, &joiner)));
}
