/* A leave from its announcement to its last word: the flag, the moment at which the ring stops for it, what
 * becomes of a state that goes with those who hold it, and the release. */
#include "coordinator/core/rdzv_leave.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "common/base/assert.h"
#include "common/notice/pool.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_bridge.h"
#include "coordinator/core/rdzv_machine.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_recovery.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_stop.h"
#include "coordinator/core/rdzv_who.h"

/* ---- announced ---- */

static struct rdzv_worker *a_leaver(struct rdzv *st)
{
    for (int r = 0; r < st->world; r++) {
        struct rdzv_worker *w = &st->worker[st->member[r]];
        if (w->leaving && !w->released)
            return w;
    }
    return NULL;
}

void rdzv_leave_announced(const struct turn *turn, struct rdzv_worker *w)
{
    struct rdzv *st = turn->st;
    if (!a_leaver(st))
        st->leave_asked = turn->now;
    st->leave_said = turn->now;
    rdzv_machine_left(turn, w);
    w->leaving = true;
    w->goes = false;
    rdzv_say(st, "worker %d leaves: %s", rdzv_index(st, w), w->leaving_reason);
    if (w->leave_until != RM_NEVER && w->rank >= 0)
        rdzv_stop_sooner(turn);
    RM_ASSERT(st->leave_asked <= st->leave_said, "the first leave is asked for %lld ns behind the newest",
              (long long)(st->leave_asked - st->leave_said));
}

/* Notices of one pool that come later than this are another taking. */
static const rm_time one_taking = 60 * RM_S;

static bool is_first_of_its_pool(const struct rdzv *st, const char *pool, rm_time now)
{
    for (int i = 0; i < RDZV_AHEAD_MAX; i++) {
        const struct rdzv_ahead *a = &st->ahead[i];
        if (a->at && now < a->at + one_taking && machine_pool_is_same(a->pool, pool))
            return false;
    }
    return true;
}

static void note_ahead(struct rdzv *st, const char *pool, rm_time now)
{
    struct rdzv_ahead *oldest = st->ahead;
    for (int i = 1; i < RDZV_AHEAD_MAX; i++)
        oldest = st->ahead[i].at < oldest->at ? &st->ahead[i] : oldest;
    RM_ASSERT(oldest->at <= now, "a save was begun %lld ns from now", (long long)(oldest->at - now));
    oldest->at = now;
    text_copy(oldest->pool, sizeof oldest->pool, pool);
}

/* The newest is older than another one takes. */
static bool is_worth_a_save(const struct rdzv *st, rm_time now)
{
    RM_ASSERT(st->saved_at <= now, "the newest checkpoint was published %lld ns from now",
              (long long)(st->saved_at - now));
    bool saves = st->state == RDZV_TRAINING && !st->settings.program && !st->settings.leave_unsaved;
    bool old = now - st->saved_at > leave_takes(&st->save_speed, st->world);
    return saves && st->told > st->saved && old;
}

/* One member is told, as all hear of it in the next reduction. */
void rdzv_leave_save_ahead(const struct turn *turn, const char *pool)
{
    struct rdzv *st = turn->st;
    struct rdzv_worker *first = NULL;
    for (int r = 0; r < st->world && !first; r++) {
        struct rdzv_worker *m = &st->worker[st->member[r]];
        first = m->presence == PRESENT && m->rank >= 0 ? m : NULL;
    }
    if (!first || !is_worth_a_save(st, turn->now) || !is_first_of_its_pool(st, pool, turn->now))
        return;
    note_ahead(st, pool, turn->now);
    rdzv_send_one(turn, first, MSG_SAVE)->save = (struct msg_save){.count = 0};
}

/* A notice without a moment is a leave at once, but of a machine that was left a moment ago: then it is taken
 * for one of a moment that comes so much after that as clouds give at least. */
static const rm_time least_lead = 30 * RM_S;

static bool is_held_without_a_moment(const struct rdzv *st, const struct rdzv_worker *w,
                                     const struct msg_leaving *l)
{
    bool by_notice = l->deadline <= 0 && w->noticed && w->notice.certainty == NOTICE_WILL;
    return by_notice && !w->leaving && rdzv_machine_holds(st, w);
}

void rdzv_leaving(const struct turn *turn, struct rdzv_worker *w, const struct msg_leaving *l)
{
    struct rdzv *st = turn->st;
    rm_time until = l->deadline > 0 ? turn->now + l->deadline : RM_NEVER;
    bool held = is_held_without_a_moment(st, w, l);
    if (held)
        until = rdzv_machine_holds_until(st, w) + least_lead;
    if (!rdzv_is_going(w) || until > w->leave_until)
        st->given_up = -1; /* with that time it may be saved */
    RM_ASSERT(until > turn->now, "worker %d goes %lld ns ago", rdzv_index(st, w),
              (long long)(turn->now - until));
    w->leave_until = until;
    text_copy(w->leaving_reason, sizeof w->leaving_reason, l->reason);
    if ((!l->trains_on && !held) || w->leaving || w->leave_until == RM_NEVER) {
        rdzv_leave_announced(turn, w);
        return;
    }
    if (!w->goes)
        w->goes_since = turn->now;
    w->goes = true;
    rdzv_say(st, "worker %d's machine goes in %.1f s: %s", rdzv_index(st, w),
             (double)(until - turn->now) / RM_S, l->reason);
    rdzv_leave_save_ahead(turn, w->pool);
}

/* ---- the moment ---- */

static const rm_time time_to_stop = 2 * RM_S;

static bool all_leave(const struct rdzv *st)
{
    for (int r = 0; r < st->world; r++) {
        const struct rdzv_worker *w = &st->worker[st->member[r]];
        if (!w->leaving && !w->released)
            return false;
    }
    return st->world > 0;
}

/* Before the first of those who leave is killed, with time to stop the ring. */
static rm_time in_time(const struct rdzv *st, rm_time at)
{
    for (int r = 0; r < st->world; r++) {
        const struct rdzv_worker *w = &st->worker[st->member[r]];
        if (w->leaving && w->leave_until != RM_NEVER && w->leave_until - time_to_stop < at)
            at = w->leave_until - time_to_stop;
    }
    return at;
}

/* The first leave acts at once where somebody commands: who is to leave with it was said in one breath. Told
 * by several machines they come apart, and where all leave the ring should stop once. The ring trains
 * meanwhile. */
static rm_time leave_at(const struct rdzv *st)
{
    rm_time window = RDZV_LEAVES_TOGETHER_MS * RM_MS, at = st->left + window;
    if (!st->settings.unsupervised)
        return at;
    if (all_leave(st))
        return st->accounted;
    return in_time(st, st->leave_asked + window > at ? st->leave_asked + window : at);
}

bool rdzv_leave_is_due(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    return a_leaver(st) && turn->now >= leave_at(st);
}

rm_time rdzv_leave_due_at(const struct rdzv *st)
{
    rm_time at = RM_NEVER;
    for (int r = 0; r < st->world; r++) {
        if (st->worker[st->member[r]].leaving)
            at = leave_at(st);
    }
    return at;
}

void rdzv_leave_begin(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(a_leaver(st), "a ring of %d stops for a leave, and nobody leaves", st->world);
    st->left = turn->now;
    for (int r = 0; r < st->world; r++) {
        struct rdzv_worker *w = &st->worker[st->member[r]];
        w->leave_began = w->leaving ? turn->now : 0;
    }
    rdzv_recovery_begin(turn, CAUSE_WORKER_LEFT, a_leaver(st));
    rdzv_quiesce(turn, STOP_BOUNDARY);
}

/* ---- a state that is saved nowhere, and all who hold it leave ---- */

static bool is_measured(const struct rdzv_save_speed *v)
{
    return v->bytes > 0 && v->writer > 0 && v->publisher > 0;
}

static const double longest = 365 * 86400.0; /* s; at a worker's word it may come to any number */

static rm_time takes(const struct rdzv_save_speed *v, double rate)
{
    RM_ASSERT(v->bytes > 0 && rate > 0, "%" PRId64 " bytes at %g a second", v->bytes, rate);
    double seconds = (double)v->bytes / rate;
    return (rm_time)((seconds < longest ? seconds : longest) * RM_S);
}

static rm_time to_write(const struct rdzv_save_speed *v, int writers)
{
    RM_ASSERT(writers > 0, "a checkpoint that %d write", writers);
    return takes(v, v->writer * writers);
}

static rm_time to_publish(const struct rdzv_save_speed *v)
{
    return takes(v, v->publisher);
}

rm_time leave_takes(const struct rdzv_save_speed *v, int writers)
{
    return writers > 0 && is_measured(v) ? to_write(v, writers) + to_publish(v) : 0;
}

/* How many of those who go have that time. */
static int have(const struct leave_facts *f, rm_time time)
{
    RM_ASSERT(f->going >= 0 && f->going <= RM_WORKERS_MAX, "%d workers go", f->going);
    int n = 0;
    for (int i = 0; i < f->going; i++)
        n += f->left[i] == RM_NEVER || f->left[i] >= time;
    return n;
}

/* The fewer write, the longer each part takes: of the numbers that do it in time the largest. */
int leave_writers(const struct leave_facts *f)
{
    RM_ASSERT(f->staying >= 0 && f->going >= 0, "%d stay, and %d go", f->staying, f->going);
    if (!is_measured(&f->speed))
        return f->going;
    for (int n = f->going; n > 0; n--) {
        bool all_write = have(f, leave_with_margin(to_write(&f->speed, f->staying + n))) >= n;
        bool one_publishes = f->staying > 0 || have(f, leave_with_margin(leave_takes(&f->speed, n))) > 0;
        if (all_write && one_publishes)
            return n;
    }
    return f->staying > 0 ? 0 : -1;
}

/* Those who write it have no more to do than the last of it. */
static bool is_finished_in_time(const struct leave_facts *f)
{
    bool newer = f->under_way > f->saved && f->under_way <= f->step;
    return newer && (!is_measured(&f->speed) || have(f, leave_with_margin(to_publish(&f->speed))) > 0);
}

enum leave_choice leave_decide(const struct leave_facts *f)
{
    if (f->step <= f->saved)
        return LEAVE_IS_SAVED;
    if (f->staying > 0)
        return f->enough ? LEAVE_HAND_OVER : LEAVE_SAVE;
    if (f->enough && f->given_in_time)
        return LEAVE_HAND_OVER;
    if (!f->wanted)
        return LEAVE_OFF;
    if (leave_writers(f) >= 0)
        return LEAVE_SAVE;
    return is_finished_in_time(f) ? LEAVE_FINISH : LEAVE_TOO_LATE;
}

static int what_stands(const struct leave_facts *f, char *out, size_t size)
{
    if (f->saved < 0)
        return snprintf(out, size, "there is no checkpoint");
    return snprintf(out, size, "the checkpoint of step %" PRId64 " stands", f->saved);
}

void leave_sentence(const struct leave_facts *f, enum leave_choice choice, char *out, size_t size)
{
    RM_ASSERT(choice == LEAVE_FINISH || choice == LEAVE_TOO_LATE || choice == LEAVE_OFF,
              "step %" PRId64 " is not saved by choice %d", f->step, (int)choice);
    char stands[120];
    rm_time most = 0;
    for (int i = 0; i < f->going; i++)
        most = rm_later(most, f->left[i]);
    if (choice == LEAVE_FINISH)
        snprintf(stands, sizeof stands, "the save of step %" PRId64 " that is under way goes on",
                 f->under_way);
    else
        what_stands(f, stands, sizeof stands);
    if (choice == LEAVE_OFF)
        snprintf(out, size, "all who hold step %" PRId64 " leave, and checkpoint.onPreemption is false; %s",
                 f->step, stands);
    else
        snprintf(out, size,
                 "all who hold step %" PRId64 " leave within %.1f s, and saving it takes about %.1f s; %s",
                 f->step, (double)most / RM_S, (double)leave_takes(&f->speed, f->going) / RM_S, stands);
}

static const double newest = 0.5; /* its weight beside what was measured before */

static void measure_rate(double *rate, int64_t bytes, rm_time took)
{
    if (bytes <= 0 || took <= 0)
        return;
    double now = (double)bytes * RM_S / (double)took;
    *rate = *rate > 0 ? (1 - newest) * *rate + newest * now : now;
    RM_ASSERT(*rate > 0, "%" PRId64 " bytes in %lld ns", bytes, (long long)took);
}

void rdzv_measure_slice(struct rdzv *st, const struct msg_checkpointed *c)
{
    RM_ASSERT(c->count >= 0 && c->count <= MSG_PIECES_PER_PART, "a part of %d pieces", c->count);
    int64_t bytes = 0;
    for (int i = 0; i < c->count; i++)
        bytes += c->piece[i].bytes;
    measure_rate(&st->save_speed.writer, bytes, c->took);
}

void rdzv_measure_publishing(struct rdzv *st, const struct msg_published *p)
{
    st->save_speed.bytes = p->bytes;
    measure_rate(&st->save_speed.publisher, p->bytes, p->took);
}

static void count_holder(const struct rdzv_worker *w, rm_time now, struct leave_facts *f)
{
    RM_ASSERT(f->going < RM_WORKERS_MAX, "%d workers go, and one more", f->going);
    rm_time left = w->leave_until == RM_NEVER ? RM_NEVER : w->leave_until > now ? w->leave_until - now : 0;
    if (rdzv_is_going(w))
        f->left[f->going++] = left;
    else
        f->staying++;
}

static bool is_given_in_time(const struct rdzv *st, const struct msg_state *state)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (rdzv_usable(st, w) && msg_state_equal(&w->state, state) && rdzv_gives_in_time(st, w))
            return true;
    }
    return false;
}

static struct leave_facts facts_of(const struct rdzv *st, const struct msg_state *state)
{
    struct leave_facts f = {.wanted = !st->settings.leave_unsaved,
                            .step = state->step,
                            .saved = st->saved,
                            .enough = rdzv_candidates(st) >= st->settings.workers_min,
                            .given_in_time = is_given_in_time(st, state),
                            .under_way = rdzv_step_under_way(st),
                            .speed = st->save_speed};
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (rdzv_usable(st, w) && msg_state_equal(&w->state, state))
            count_holder(w, st->accounted, &f);
    }
    RM_ASSERT(f.going + f.staying <= RM_WORKERS_MAX, "%d workers go, and %d stay", f.going, f.staying);
    return f;
}

struct worker_set rdzv_leave_no_writers(const struct turn *turn, const struct msg_state *state)
{
    const struct rdzv *st = turn->st;
    struct leave_facts f = facts_of(st, state);
    struct worker_set out = {0};
    int n = leave_writers(&f);
    if (!state->held || n < 0 || n >= f.going)
        return out; /* all of them, also in vain: who asks has decided */
    RM_ASSERT(is_measured(&f.speed), "%d of %d write, at no speed", n, f.going);
    rm_time least = leave_with_margin(to_write(&f.speed, f.staying + (n > 0 ? n : 1)));
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (rdzv_is_going(w) && w->leave_until != RM_NEVER && w->leave_until - turn->now < least)
            set_add(&out, i);
    }
    return out;
}

/* Members of a ring that is formed now would have to be given this state. */
static bool has_to_be_given(const struct rdzv *st, const struct msg_state *state)
{
    RM_ASSERT(state->held, "step %" PRId64 " is given by nobody", state->step);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (rdzv_candidate(st, w) && !msg_state_equal(&w->state, state))
            return true;
    }
    return false;
}

enum leave_choice rdzv_leave_before_ring(const struct rdzv *st)
{
    struct msg_state best = rdzv_best_state(st);
    if (!best.held || best.step == 0 || !has_to_be_given(st, &best))
        return LEAVE_HAND_OVER;
    struct leave_facts f = facts_of(st, &best);
    enum leave_choice choice = leave_decide(&f);
    return choice == LEAVE_SAVE || choice == LEAVE_FINISH ? choice : LEAVE_HAND_OVER;
}

/* When the last of those who hold a state is killed, and how many they are; RM_NEVER: somebody stays, or it
 * is not known. */
static rm_time held_until(const struct rdzv *st, const struct msg_state *state, int *ret_holders)
{
    RM_ASSERT(state->held, "step %" PRId64 " is held by nobody", state->step);
    rm_time last = 0;
    *ret_holders = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (w->presence != PRESENT || w->released || !msg_state_equal(&w->state, state))
            continue;
        if (!rdzv_is_going(w))
            return RM_NEVER;
        last = rm_later(last, w->leave_until);
        ++*ret_holders;
    }
    return *ret_holders ? last : RM_NEVER;
}

rm_time rdzv_leave_forms_by(const struct rdzv *st)
{
    int holders;
    struct msg_state best = rdzv_best_state(st);
    if (!best.held || best.step <= st->saved || !has_to_be_given(st, &best))
        return RM_NEVER;
    rm_time last = held_until(st, &best, &holders);
    return last == RM_NEVER ? RM_NEVER : last - 2 * leave_with_margin(st->handing) - time_to_stop;
}

rm_time rdzv_leave_gives_way_at(const struct rdzv *st)
{
    int holders;
    const struct msg_state *state = &st->resume;
    bool given = st->state == RDZV_FORMING && st->form.sources_count > 0 && state->step > st->saved;
    if (!given || st->settings.leave_unsaved || state->step == st->gave_way)
        return RM_NEVER;
    rm_time last = held_until(st, state, &holders), takes = leave_takes(&st->save_speed, holders);
    if (last == RM_NEVER || !takes)
        return RM_NEVER;
    rm_time at = last - leave_with_margin(takes) - time_to_stop;
    rm_time through = st->handing ? st->formed_at + leave_with_margin(st->handing) : 0;
    at = through < last ? rm_later(at, through) : at;
    return at > st->formed_at ? at : RM_NEVER;
}

bool rdzv_leave_gives_way(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    if (turn->now < rdzv_leave_gives_way_at(st))
        return false;
    RM_ASSERT(st->formed_at <= turn->now, "a ring that is formed %lld ns from now",
              (long long)(st->formed_at - turn->now));
    struct leave_facts f = facts_of(st, &st->resume);
    f.given_in_time = false;
    if (leave_decide(&f) != LEAVE_SAVE)
        return false;
    st->gave_way = st->resume.step;
    st->handing = rm_later(st->handing, turn->now - st->formed_at);
    rdzv_say(st, "step %" PRId64 " is saved: there is no time left to hand it over", st->resume.step);
    return true;
}

/* True: it is not saved, those who hold it are let go, and the person knows why. */
bool rdzv_leaves_unsaved(const struct turn *turn, const struct msg_state *state)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(state->held && state->step > st->saved, "step %" PRId64 " is not saved, and %" PRId64 " is",
              state->step, st->saved);
    if (st->given_up == state->step)
        return true;
    struct leave_facts f = facts_of(st, state);
    enum leave_choice choice = leave_decide(&f);
    if (choice == LEAVE_IS_SAVED || choice == LEAVE_HAND_OVER || choice == LEAVE_SAVE)
        return false;
    struct rdzv_tell *t = rdzv_tell(turn, TELL_CHECKPOINT_SKIPPED);
    t->step = state->step;
    leave_sentence(&f, choice, t->text, sizeof t->text);
    rdzv_say(st, "%s", t->text);
    st->given_up = state->step;
    return true;
}

/* ---- let go ---- */

static const rm_time reserve = 2 * RM_S; /* to be let go before it is killed */

static bool has_time(const struct rdzv *st, const struct rdzv_worker *w)
{
    return w->leave_until == RM_NEVER || st->accounted + reserve < w->leave_until;
}

/* Its pieces are in, or come; somebody has to be there to publish them. */
static bool finishes_a_save(const struct rdzv *st, const struct rdzv_worker *w)
{
    return rdzv_step_under_way(st) > st->saved && has_time(st, w) && w->leave_until != RM_NEVER;
}

/* In a pod nobody says who is expected, and another one is made for each that has to go. */
static bool is_awaited(const struct rdzv *st, const struct rdzv_worker *w)
{
    if (!st->settings.unsupervised)
        return rdzv_on_its_way(st);
    return has_time(st, w) && rdzv_gives_in_time(st, w) && w->leave_until != RM_NEVER;
}

bool rdzv_brings_more(const struct rdzv *st, const struct rdzv_worker *w)
{
    struct msg_state best = rdzv_best_state(st);
    int64_t here = best.held ? best.step : st->saved > 0 ? st->saved : 0;
    bool coming = w->presence == PRESENT && !rdzv_usable(st, w) && !w->released;
    return coming && w->state.held && w->state.step > here + 1 && (!w->leaving || has_time(st, w));
}

/* One that leaves is asked for what it holds as any other. */
static bool is_about_to_answer(const struct rdzv *st, const struct rdzv_worker *w)
{
    RM_ASSERT(st->state == RDZV_GATHERING, "worker %d is about to answer in state %s", rdzv_index(st, w),
              rdzv_state_name(st->state));
    return rdzv_brings_more(st, w) && st->accounted < st->state_since + st->settings.start_timeout;
}

static bool needed_to_the_end(const struct rdzv *st, const struct rdzv_worker *w)
{
    RM_ASSERT(w->leaving && !w->released, "worker %d does not leave", rdzv_index(st, w));
    if (w->rank >= 0 && st->state != RDZV_GATHERING)
        return true;
    if (w->serving || st->state == RDZV_RECOVERING || st->state == RDZV_QUIESCING || st->state == RDZV_SAVING)
        return true;
    if (st->state == RDZV_GATHERING && is_about_to_answer(st, w))
        return true;
    if (st->state != RDZV_GATHERING || !w->state.held || !rdzv_usable(st, w))
        return false;
    struct msg_state best = rdzv_best_state(st);
    /* what there is before the first step the seed gives anybody */
    bool unsaved = best.step > 0 && msg_state_equal(&best, &w->state) && w->state.step > st->saved;
    /* what can't be saved any more may still be handed to somebody who is known to come */
    bool given_up = w->state.step == st->given_up;
    return unsaved && (!given_up || is_awaited(st, w) || finishes_a_save(st, w));
}

rm_time rdzv_leave_let_go_at(const struct rdzv *st)
{
    rm_time at = RM_NEVER;
    for (int i = 0; i < RM_WORKERS_MAX && st->given_up >= 0; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool waits = w->leaving && !w->released && w->presence == PRESENT && w->leave_until != RM_NEVER;
        rm_time end = waits ? w->leave_until - rm_later(reserve, leave_with_margin(st->handing)) : 0;
        at = waits && end > st->accounted ? rm_earlier(at, end) : at;
    }
    return at;
}

/* One that waited for a save, or for somebody to hand on to what is not saved, says nothing about leaves. */
static void measure_leave(const struct turn *turn, struct rdzv_worker *w)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(w->released && w->leave_began <= turn->now, "worker %d leaves since %lld ns from now",
              rdzv_index(st, w), (long long)(w->leave_began - turn->now));
    bool handed = w->state.held && w->state.step == st->given_up;
    rm_time still = rm_later(st->stood_still, w->leave_began);
    if (w->leave_began && st->saved_at <= w->leave_began && !handed)
        leave_times_add(&st->leave_times, turn->now - w->leave_began, turn->now - still);
    w->leave_began = 0;
}

void rdzv_release_leavers(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (!w->leaving || w->released || w->presence != PRESENT || needed_to_the_end(st, w))
            continue;
        RM_ASSERT(w->rank < 0 || st->state == RDZV_GATHERING, "worker %d is let go as rank %d, in state %s",
                  i, w->rank, rdzv_state_name(st->state));
        w->released = true;
        measure_leave(turn, w);
        rdzv_send_one(turn, w, MSG_RELEASE);
        if (w->old_rank != INT_MAX)
            rdzv_tell_worker(turn, TELL_WORKER_LEFT, i, w->leaving_reason);
        rdzv_tell_worker(turn, TELL_RELEASED, i, "");
    }
}

/* Who announced a leave and is let go only by the end: told before that, which is the last word. */
void rdzv_tell_left(const struct turn *turn)
{
    RM_ASSERT(turn->st->state == RDZV_FINISHED || turn->st->state == RDZV_FAILED,
              "all leaves are told in state %s", rdzv_state_name(turn->st->state));
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &turn->st->worker[i];
        if (w->presence == PRESENT && w->leaving && !w->released && w->old_rank != INT_MAX)
            rdzv_tell_worker(turn, TELL_WORKER_LEFT, i, w->leaving_reason);
    }
}
