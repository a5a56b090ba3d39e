/* With whom the next ring is formed, and what each member has to do to come to its state. */
#include "coordinator/core/rdzv_form.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "common/base/assert.h"
#include "coordinator/core/deal.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_interval.h"
#include "coordinator/core/rdzv_leave.h"
#include "coordinator/core/rdzv_listening.h"
#include "coordinator/core/rdzv_load.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_pairs.h"
#include "coordinator/core/rdzv_probe.h"
#include "coordinator/core/rdzv_progress.h"
#include "coordinator/core/rdzv_recover.h"
#include "coordinator/core/rdzv_recovery.h"
#include "coordinator/core/rdzv_relief.h"
#include "coordinator/core/rdzv_resume.h"
#include "coordinator/core/rdzv_ring.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_stop.h"
#include "coordinator/core/rdzv_trouble.h"
#include "coordinator/core/rdzv_who.h"
#include "coordinator/core/rdzv_will.h"

static const rm_time saved_long_ago = 30 * 86400 * RM_S; /* more than any checkpoint.every */

/* ---- who ---- */

static int before(const struct rdzv *st, int a, int b)
{
    RM_ASSERT(a != b && a >= 0 && b >= 0, "worker %d before worker %d", a, b);
    int ra = st->worker[a].old_rank, rb = st->worker[b].old_rank;
    return ra != rb ? ra < rb : a < b;
}

/* Who loads keeps no rank: another one reads what was found damaged. */
static void move_shares_on(struct rdzv *st)
{
    int moved[RM_WORKERS_MAX], by = rdzv_load_turn(st);
    RM_ASSERT(st->world > 0 && by >= 0, "the shares of %d are moved on by %d", st->world, by);
    for (int r = 0; r < st->world; r++)
        moved[(r + by) % st->world] = st->member[r];
    memcpy(st->member, moved, sizeof *moved * (size_t)st->world);
}

/* Those who would be waited for while they get a state whole; where the others are enough. */
static struct worker_set who_missed(const struct rdzv *st)
{
    struct msg_state checkpoint = rdzv_newest_checkpoint(st), held = rdzv_choose_held(st, &checkpoint);
    struct worker_set missed = {0};
    int others = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (!rdzv_candidate(st, w) || !set_has(st->pairs.members, i))
            continue;
        if (rdzv_listen_missed(w, &held))
            set_add(&missed, i);
        else
            others++;
    }
    RM_ASSERT(held.held || set_is_empty(missed), "%d have missed what nobody holds", set_count(missed));
    return others > 0 && others >= st->settings.workers_min ? missed : (struct worker_set){0};
}

/* Survivors in their relative order, then newcomers by index; as many as the job and its lanes take. */
static void choose_members(struct rdzv *st)
{
    int most = rdzv_members_max(st), before_it = st->world;
    struct worker_set missed = who_missed(st);
    st->world = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        st->worker[i].rank = -1;
        st->worker[i].ready = st->worker[i].finished = st->worker[i].serving = false;
        bool chosen = set_has(st->pairs.members, i) && !set_has(missed, i);
        if (!rdzv_candidate(st, &st->worker[i]) || !chosen)
            continue;
        int at = st->world++;
        for (; at > 0 && before(st, i, st->member[at - 1]); at--)
            st->member[at] = st->member[at - 1];
        st->member[at] = i;
    }
    rdzv_will_make_room(st, before_it);
    rdzv_relief_make_room(st, before_it);
    if (st->world > most)
        st->world = most;
    RM_ASSERT(st->world > 0 && st->world <= most, "a ring of %d, the job takes 1 to %d", st->world, most);
    if (rdzv_needs_lists(st))
        move_shares_on(st);
    for (int r = 0; r < st->world; r++)
        st->worker[st->member[r]].rank = r;
}

/* ---- roles ---- */

static bool holds(const struct rdzv_worker *w, const struct msg_state *resume)
{
    return w->state.held && msg_state_equal(&w->state, resume);
}

/* Adds a source; those that still have the kept update go first. */
static void add_source(const struct rdzv *st, struct msg_form *f, int worker, int64_t step)
{
    int at = f->sources_count++;
    bool update = st->worker[worker].update_step == step;
    RM_ASSERT(at >= 0 && at < RM_WORKERS_MAX && f->resume.held, "worker %d is source %d of step %" PRId64,
              worker, at, step);
    if (update && at > 0) {
        f->source[at] = f->source[0];
        at = 0;
    }
    rdzv_fill_member(st, &f->source[at], worker);
}

/* It gave others something else than was agreed, and has made no step since. */
static bool gave_something_else(const struct rdzv_worker *w)
{
    const struct rdzv_trouble *t = &w->trouble;
    RM_ASSERT(t->times >= 0, "it failed %d times", t->times);
    return t->times > 0 && t->where == FAULT_IN_WORK && t->class == CLASS_SOURCE;
}

/* It did so again, and is not asked for a while. */
static bool gives_nothing(const struct rdzv *st, const struct rdzv_worker *w)
{
    return rdzv_trouble_pauses(st, &w->trouble) && gave_something_else(w);
}

/* Outside the ring: it leaves, makes room, or there was none for it. */
static bool stands_beside(const struct rdzv *st, const struct rdzv_worker *w, const struct msg_state *resume)
{
    return w->rank < 0 && rdzv_usable(st, w) && holds(w, resume);
}

static bool may_serve(const struct rdzv *st, const struct rdzv_worker *w, const struct msg_state *resume)
{
    return stands_beside(st, w, resume) && !gave_something_else(w);
}

rm_time rdzv_given_from(const struct rdzv *st)
{
    struct msg_state checkpoint = rdzv_newest_checkpoint(st), held = rdzv_choose_held(st, &checkpoint);
    rm_time at = RM_NEVER;
    for (int i = 0; i < RM_WORKERS_MAX && held.held; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (!rdzv_usable(st, w) || !holds(w, &held))
            continue;
        if (!gives_nothing(st, w))
            return 0;
        at = rm_earlier(at, w->trouble.until);
    }
    return at == RM_NEVER ? 0 : at;
}

static bool one_gives_in_time(const struct rdzv *st, const struct msg_state *resume)
{
    RM_ASSERT(resume->held, "who gives step %" PRId64 ", which nobody holds", resume->step);
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        if (may_serve(st, &st->worker[i], resume) && rdzv_gives_in_time(st, &st->worker[i]))
            return true;
    return false;
}

/* Who gives from outside the ring, the better the higher. */
enum beside { BESIDE_NONE, BESIDE_GAVE_ELSE, BESIDE_MAY_SERVE, BESIDE_IN_TIME };

static enum beside how_it_stands(const struct rdzv *st, int worker, const struct msg_state *resume)
{
    RM_ASSERT(resume->held && worker >= 0 && worker < RM_WORKERS_MAX, "how worker %d gives step %" PRId64,
              worker, resume->step);
    const struct rdzv_worker *w = &st->worker[worker];
    bool reached = set_is_empty(rdzv_pairs_in_ring(st, worker)) || st->pairs.too_few;
    if (!stands_beside(st, w, resume) || !reached)
        return BESIDE_NONE;
    if (!may_serve(st, w, resume))
        return BESIDE_GAVE_ELSE;
    return rdzv_gives_in_time(st, w) ? BESIDE_IN_TIME : BESIDE_MAY_SERVE;
}

static void add_who_stands_beside(struct rdzv *st, struct msg_form *f, const struct msg_state *resume,
                                  enum beside least)
{
    RM_ASSERT(least > BESIDE_NONE, "everybody gives step %" PRId64 " from outside the ring", resume->step);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        if (how_it_stands(st, i, resume) < least)
            continue;
        st->worker[i].serving = true;
        add_source(st, f, i, resume->step);
    }
}

static void add_members(struct rdzv *st, struct msg_form *f, const struct msg_state *resume, bool gave_else)
{
    RM_ASSERT(st->world > 0, "nobody is in the ring that step %" PRId64 " is given to", resume->step);
    for (int r = 0; r < st->world; r++) {
        const struct rdzv_worker *w = &st->worker[st->member[r]];
        if (holds(w, resume) && gave_something_else(w) == gave_else)
            add_source(st, f, st->member[r], resume->step);
    }
}

/* Outside the ring the best alone are asked, and wherever one stands who gave something else before, only
 * where nobody else can give it: its own state it may keep, for what differs in it the ring sees. But rather
 * anybody is asked than nobody: the ring was chosen because somebody holds the state, and who has little
 * time, or gave something else, may still give it. */
static void choose_sources(struct rdzv *st, struct msg_form *f, const struct msg_state *resume)
{
    RM_ASSERT(resume->held && f->sources_count == 0, "%d sources of step %" PRId64 " before one is chosen",
              f->sources_count, resume->step);
    add_members(st, f, resume, false);
    enum beside least = one_gives_in_time(st, resume) ? BESIDE_IN_TIME : BESIDE_MAY_SERVE;
    for (; !f->sources_count && least > BESIDE_GAVE_ELSE; least--)
        add_who_stands_beside(st, f, resume, least);
    if (!f->sources_count)
        add_members(st, f, resume, true);
    if (!f->sources_count)
        add_who_stands_beside(st, f, resume, BESIDE_GAVE_ELSE);
}

static enum msg_role role_of(const struct rdzv *st, const struct rdzv_worker *w, const struct msg_form *f)
{
    if (!f->resume.held)
        return ROLE_INIT;
    if (st->loading)
        return ROLE_LOAD;
    if (holds(w, &f->resume))
        return ROLE_KEEP;
    RM_ASSERT(f->sources_count > 0, "nobody gives worker %d step %" PRId64, rdzv_index(st, w),
              f->resume.step);
    const struct rdzv_worker *source = &st->worker[f->source[0].worker];
    bool update = source->update_step == f->resume.step, listened = w->listening == LISTENING_OVER;
    bool known = w->old_rank != INT_MAX || listened;
    bool one_behind = w->state.held && w->state.step == f->resume.step - 1 && known;
    if (!update || !one_behind)
        return ROLE_RECEIVE;
    return listened && source->rank >= 0 ? ROLE_FOLLOW : ROLE_CATCH_UP; /* who leaves gives it before */
}

static void drop_sources_if_unused(struct rdzv *st, struct msg_form *f)
{
    RM_ASSERT(f->count == st->world, "a form for %d of a ring of %d", f->count, st->world);
    for (int i = 0; i < f->count; i++) {
        enum msg_role role = f->member[i].role;
        if (role == ROLE_CATCH_UP || role == ROLE_FOLLOW || role == ROLE_RECEIVE)
            return;
    }
    f->sources_count = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        st->worker[i].serving = false;
}

/* What those who keep their state have computed of the next step is gone on with, and who follows has no part
 * in it. */
static void deal_what_is_left(struct rdzv *st, struct msg_form *f)
{
    struct lane_set done[RM_WORKERS_MAX];
    struct worker_set follow = {0};
    bool any = false;
    for (int r = 0; r < f->count; r++) {
        const struct rdzv_worker *w = &st->worker[f->member[r].worker];
        bool fits = f->member[r].role == ROLE_KEEP && lane_set_next(&w->lanes, st->settings.lanes - 1) < 0;
        done[r] = fits ? w->lanes : (struct lane_set){0};
        any = any || !lane_set_is_empty(&done[r]);
        if (f->member[r].role == ROLE_FOLLOW)
            set_add(&follow, r);
    }
    if (!any && set_is_empty(follow))
        return;
    RM_ASSERT(f->resume.held && !st->loading, "lanes of a step behind none, %d of them rank 0's",
              lane_set_count(&done[0]));
    f->lanes_count = st->settings.lanes;
    int left = deal_lanes(f->lanes_count, f->count, follow, done, f->lane_rank);
    st->lanes_dealt += any ? left : 0;
}

static void fill_form(struct rdzv *st, struct message *m)
{
    struct msg_form *f = &m->form;
    struct msg_state checkpoint = rdzv_newest_checkpoint(st);
    struct msg_state held = rdzv_choose_held(st, &checkpoint);
    f->resume = held.held ? held : checkpoint;
    st->loading = !held.held && f->resume.held;
    st->resume = f->resume;
    if (held.held)
        choose_sources(st, f, &held);
    f->count = st->world;
    for (int r = 0; r < st->world; r++) {
        rdzv_fill_member(st, &f->member[r], st->member[r]);
        f->member[r].role = role_of(st, &st->worker[st->member[r]], f);
    }
    drop_sources_if_unused(st, f);
    deal_what_is_left(st, f);
    if (st->loading && f->resume.step > st->saved)
        st->saved = f->resume.step;
    bool fresh = st->told < 0 && st->loading; /* an earlier run has evaluated what it saved */
    f->evaluated = fresh && f->resume.step > st->evaluated ? f->resume.step : st->evaluated;
    f->saved = st->saved;
    f->begun = st->begun;
    rm_time ago = st->accounted - st->saved_at;
    f->saved_ago = ago < saved_long_ago ? ago : saved_long_ago;
    RM_ASSERT(f->sources_count <= RM_WORKERS_MAX && (!st->loading || !f->sources_count),
              "step %" PRId64 " is loaded, and has %d sources", f->resume.step, f->sources_count);
}

/* What is known of progress must not lag behind the state that is gone on from. Where nothing was told yet,
 * what this run begins with shows only when it trains: a checkpoint may turn out to be damaged. */
static void count_from(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->world > 0, "nobody goes on from step %" PRId64, st->resume.step);
    int64_t step = st->resume.held ? st->resume.step : 0;
    rdzv_writes_go_back(st, step);
    if (st->told < 0)
        st->known_step = step;
    else
        rdzv_told_up_to(turn, step);
}

static void tell_beginning(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    if (st->told >= 0)
        return;
    st->told = st->resume.held ? st->resume.step : 0;
    RM_ASSERT(st->told >= 0, "the run begins with step %" PRId64, st->told);
    if (!st->loading)
        return;
    if (st->evaluated < st->told)
        st->evaluated = st->told;
    rdzv_tell(turn, TELL_CHECKPOINT_LOADED)->step = st->told;
}

void rdzv_form(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_GATHERING || st->state == RDZV_QUIESCING, "a ring is formed in state %s",
              rdzv_state_name(st->state));
    if (rdzv_begins_anew(st) && rdzv_all_are_damaged(turn))
        return;
    int64_t n = st->ring.term == st->settings.term ? st->ring.n + 1 : 1;
    st->ring = (struct msg_generation){st->settings.term, n};
    st->found = false;
    st->formed_at = turn->now;
    choose_members(st);
    rdzv_pairs_formed(turn);
    rdzv_load_begins(st);
    struct message *m = rdzv_send(turn, MSG_FORM);
    fill_form(st, m);
    st->form = m->form;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        w->moved = turn->now;
        w->loads += st->loading && w->rank >= 0;
        if (w->rank >= 0 || w->serving)
            rdzv_send_to(turn, w);
    }
    count_from(turn);
    rdzv_recovery_formed(turn);
    if (st->settings.program)
        rdzv_say(st, "starting generation %" PRId64 " with %d workers", st->ring.n, st->world);
    else
        rdzv_say(st, "forming generation %" PRId64 " with %d workers from step %" PRId64, st->ring.n,
                 st->world, st->resume.held ? st->resume.step : 0);
    rdzv_ring_moved(turn);
    rdzv_move(turn, RDZV_FORMING);
}

/* ---- ready ---- */

void rdzv_ready(const struct turn *turn, struct rdzv_worker *w, const struct message *m)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(w->presence == PRESENT, "worker %d is ready, and is not here", rdzv_index(st, w));
    if (st->state == RDZV_RECOVERING)
        rdzv_recover_ready(st, w, m);
    if (w->rank < 0 || generation_compare(m->generation, st->ring) != 0)
        return;
    if (st->state == RDZV_TRAINING) {
        rdzv_send_one(turn, w, MSG_GO);
        return;
    }
    if (st->state != RDZV_FORMING)
        return;
    w->ready = true;
    w->began = m->generation;
    w->slowness = 0;
    rdzv_trouble_over(w, FAULT_IN_LOAD);
    w->state = m->ready.state;
    w->trainer_pid = m->ready.trainer_pid;
    w->ring_time = m->ready.ring_time;
    w->state_time = m->ready.state_time;
    w->moved = turn->now;
    rdzv_ring_moved(turn);
}

static bool all_ready(const struct rdzv *st)
{
    RM_ASSERT(st->world > 0, "a ring of nobody is ready, in state %s", rdzv_state_name(st->state));
    for (int r = 0; r < st->world; r++) {
        if (!st->worker[st->member[r]].ready)
            return false;
    }
    return true;
}

/* Who follows has the step before, or has the newest one already. */
static bool follows_well(const struct rdzv *st, int rank)
{
    const struct msg_state *has = &st->worker[st->member[rank]].state;
    RM_ASSERT(rank >= 0 && rank < st->form.count, "rank %d of a form for %d", rank, st->form.count);
    return st->form.member[rank].role == ROLE_FOLLOW && has->held && has->step == st->resume.step - 1;
}

/* All must train on the same state: those who come from the seed tell their lineage only now. */
static bool states_agree(const struct rdzv *st)
{
    const struct msg_state *want = st->resume.held ? &st->resume : &st->worker[st->member[0]].state;
    RM_ASSERT(st->world > 0 && st->state == RDZV_FORMING, "the states of %d are compared in state %s",
              st->world, rdzv_state_name(st->state));
    for (int r = 0; r < st->world; r++) {
        bool same = want->held && msg_state_equal(&st->worker[st->member[r]].state, want);
        if (!same && !follows_well(st, r))
            return false;
    }
    return true;
}

/* Time in which training stood still for this ring, but not that in which nobody was there to form it of:
 * without machines that may be hours. */
static rm_time what_it_cost(const struct rdzv *st, rm_time now)
{
    const struct rdzv_open_recovery *r = &st->recovery;
    RM_ASSERT(st->state_since <= now, "this state began %lld ns from now",
              (long long)(st->state_since - now));
    if (!st->trained)
        return now - st->state_since;
    return now - rm_later(r->began, rm_earlier(st->arrived, r->agreed));
}

static const double newest = 0.5; /* its weight beside what was measured before */

/* How long the slowest of those waited who were given a whole state. */
static void measure_handing(struct rdzv *st)
{
    RM_ASSERT(st->form.count == st->world, "a ring of %d was told of %d members", st->world, st->form.count);
    rm_time took = 0;
    for (int r = 0; r < st->world; r++)
        if (st->form.member[r].role == ROLE_RECEIVE)
            took = rm_later(took, st->worker[st->member[r]].state_time);
    if (took > 0)
        st->handing =
            st->handing ? (rm_time)(newest * (double)took + (1 - newest) * (double)st->handing) : took;
}

static void begin_training(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->world > 0 && st->world <= rdzv_members_max(st), "a ring of %d, the job takes 1 to %d",
              st->world, rdzv_members_max(st));
    tell_beginning(turn);
    rdzv_tell_formed(turn); /* before anybody trains: a successor must know where the steps begin */
    rdzv_send(turn, MSG_GO);
    for (int r = 0; r < st->world; r++)
        rdzv_send_to(turn, &st->worker[st->member[r]]);
    rdzv_interval_begins(turn);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        bool going = rdzv_is_going(w) || rdzv_is_eased(st, w);
        bool let_go_now = w->rank < 0 && going; /* of the ring before, as will be told */
        if (!let_go_now)
            w->old_rank = w->rank >= 0 ? w->rank : INT_MAX;
        w->serving = false;
        rdzv_listen_trains(w);
    }
    rm_time cost = what_it_cost(st, turn->now);
    RM_ASSERT(cost >= 0, "a ring that cost %lld ns", (long long)cost);
    st->reform_cost = st->reform_cost ? (3 * st->reform_cost + cost) / 4 : cost;
    st->trained = true;
    st->begun++;
    st->given_up = st->gave_way = -1;
    measure_handing(st);
    st->recovery.went = turn->now;
    st->recovery.formed = true;
    st->waiting[0] = 0;
    st->ending = (struct rdzv_ending){0};
    rdzv_pairs_went(st);
    rdzv_probe_left_out(turn);
    if (st->settings.program) { /* it runs again: there is no first step to wait for, nor to show that the
                                   ring works */
        st->forming_failures = 0;
        rdzv_pairs_stepped(st);
        rdzv_recovery_done(turn);
    }
    rdzv_say(st, "%s with %d workers", st->settings.program ? "the program runs" : "training", st->world);
    rdzv_move(turn, RDZV_TRAINING);
}

static void check_form_timeout(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_FORMING, "who is late with a ring is looked for in state %s",
              rdzv_state_name(st->state));
    bool late = turn->now >= st->turned + st->settings.form_timeout; /* all wait for each other */
    for (int r = 0; r < st->world; r++) {
        struct rdzv_worker *w = &st->worker[st->member[r]];
        if (w->ready || turn->now < w->moved + st->settings.form_timeout)
            continue;
        late = true;
        w->slowness++;
        if (w->slowness < 3)
            continue;
        rdzv_send_away(turn, w, EXIT_MACHINE, "not ready in time in three formings running");
        rdzv_lose(turn, w, "not ready in time in three formings running");
    }
    if (late && st->state == RDZV_FORMING) {
        rdzv_recovery_begin(turn, CAUSE_RING_ERROR, NULL);
        rdzv_pairs_in_vain(st);
        rdzv_say(st, "not all were ready in time");
        rdzv_quiesce(turn, STOP_NOW);
    }
}

void rdzv_settle_forming(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    bool leaving = false;
    RM_ASSERT(st->state == RDZV_FORMING && st->world > 0, "a ring of %d forms in state %s", st->world,
              rdzv_state_name(st->state));
    for (int r = 0; r < st->world; r++)
        leaving = leaving || st->worker[st->member[r]].leaving;
    if (st->ending.set || leaving || turn->now >= rdzv_load_decides_at(st) || rdzv_leave_gives_way(turn)) {
        rdzv_quiesce(turn, STOP_NOW);
    } else if (rdzv_load_decides_at(st) != RM_NEVER) {
        return; /* it comes to nothing, and whoever still reads is given the time */
    } else if (all_ready(st) && states_agree(st)) {
        begin_training(turn);
    } else if (all_ready(st) && !st->resume.held) {
        rdzv_give_up(st, EXIT_DATA, "the workers begin with different weights: %s",
                     st->settings.brought ? "seed before building the model"
                                          : "model.init or the data differ");
        rdzv_quiesce(turn, STOP_NOW);
    } else if (all_ready(st)) {
        rdzv_recovery_begin(turn, CAUSE_RING_ERROR, NULL);
        rdzv_pairs_in_vain(st);
        rdzv_quiesce(turn, STOP_NOW);
    } else {
        check_form_timeout(turn);
    }
}

rm_time rdzv_forming_until(const struct rdzv *st)
{
    RM_ASSERT(st->state == RDZV_FORMING, "a ring is waited for in state %s", rdzv_state_name(st->state));
    if (rdzv_load_decides_at(st) != RM_NEVER)
        return rdzv_load_decides_at(st);
    rm_time at = st->turned + st->settings.form_timeout, way = rdzv_leave_gives_way_at(st);
    at = rm_earlier(at, way > st->accounted ? way : RM_NEVER);
    for (int r = 0; r < st->world; r++) {
        const struct rdzv_worker *w = &st->worker[st->member[r]];
        at = rm_earlier(at, w->ready ? RM_NEVER : w->moved + st->settings.form_timeout);
    }
    return at;
}
