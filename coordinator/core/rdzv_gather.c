/* No ring is at work: GATHERING, where enough workers come together or what is held is saved, and QUIESCING,
 * until all have stopped. */
#include "coordinator/core/rdzv_gather.h"

#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_boundary.h"
#include "coordinator/core/rdzv_ending.h"
#include "coordinator/core/rdzv_form.h"
#include "coordinator/core/rdzv_hang.h"
#include "coordinator/core/rdzv_leave.h"
#include "coordinator/core/rdzv_lists.h"
#include "coordinator/core/rdzv_pairs.h"
#include "coordinator/core/rdzv_resume.h"
#include "coordinator/core/rdzv_save.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_trouble.h"
#include "coordinator/core/rdzv_waiting.h"
#include "coordinator/core/rdzv_who.h"

enum { FORMINGS_IN_VAIN = 30 };

/* With the last step done nothing is trained any more, so that any number will do. */
static bool enough(const struct rdzv *st)
{
    int n = rdzv_candidates(st);
    struct msg_state best = rdzv_best_state(st);
    return n >= st->settings.workers_min || (n > 0 && best.held && best.step >= st->settings.steps);
}

/* A worker whose trainer is being started again, or has not answered yet, while its agent holds more in
 * memory than anybody here: forming without it would do several steps again. One step costs less than the
 * wait. */
static bool holder_returns(const struct rdzv *st)
{
    struct msg_state best = rdzv_best_state(st);
    int64_t here = best.held ? best.step : st->saved > 0 ? st->saved : 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool coming = w->presence == PRESENT && !rdzv_usable(st, w) && !w->released && !w->leaving;
        if (coming && w->state.held && w->state.step > here + 1)
            return true;
    }
    return false;
}

static void too_few(struct rdzv *st, const char *how, rm_time now, struct rdzv_out *out)
{
    char reason[RM_WHY_MAX];
    rdzv_describe_missing(st, reason, sizeof reason);
    rdzv_give_up(st, EXIT_TOO_FEW, "%s%s", reason, how);
    rdzv_end(st, now, out);
}

/* An end was decided: save what is held, unless that is saved already, then end. */
static void settle_ending(struct rdzv *st, rm_time now, struct rdzv_out *out)
{
    struct msg_state best = rdzv_best_state(st);
    if (!rdzv_save_begin(st, &best, false, now, out))
        rdzv_end(st, now, out);
}

/* An interrupt after the last step has nothing to cut short: only the final checkpoint is left to write. */
static void forget_moot_interrupt(struct rdzv *st)
{
    struct msg_state best = rdzv_best_state(st);
    bool alone = st->ending.interrupted && st->ending.exit_code == EXIT_INTERRUPTED;
    if (alone && best.held && best.step >= st->settings.steps && rdzv_candidates(st) > 0)
        st->ending = (struct rdzv_ending){0};
}

/* Who orders a leave may order a join with it, and the leave may be read first: that one is on its way is
 * known a moment later. */
static rm_time follows_until(const struct rdzv *st)
{
    return st->expect_known && st->leave_said ? st->leave_said + RDZV_LEAVES_TOGETHER_MS * RM_MS : 0;
}

/* True: enough are here, but some of them can't reach each other, or the same ring has just come to nothing.
 * What they hold is saved meanwhile, as with too few. */
static bool held_back(struct rdzv *st, rm_time now, struct rdzv_out *out)
{
    struct msg_state best = rdzv_best_state(st);
    if (!rdzv_pairs_hold_back(st, now))
        return false;
    if (st->pairs.save_first && rdzv_save_begin(st, &best, false, now, out))
        return true;
    if (rdzv_pairs_give_up(st, now)) {
        settle_ending(st, now, out);
    } else if (st->pairs.too_few) {
        char reason[MSG_DETAIL_MAX];
        rdzv_pairs_say_too_few(st, reason, sizeof reason);
        rdzv_tell_waiting_for(st, reason, out);
    }
    return st->state != RDZV_GATHERING || now < rdzv_pairs_form_at(st);
}

void rdzv_settle_gathering(struct rdzv *st, rm_time now, struct rdzv_out *out)
{
    rdzv_pairs_choose(st, now);
    forget_moot_interrupt(st);
    if (st->ending.set) {
        settle_ending(st, now, out);
        return;
    }
    bool coming = rdzv_on_its_way(st);
    bool window_over = now >= st->arrived + st->settings.join_window;
    bool patient = holder_returns(st) && now < st->state_since + st->settings.start_timeout;
    if (enough(st)) {
        bool listed = rdzv_ask_lists(st, now, out);
        if (held_back(st, now, out))
            return;
        if (listed && !patient && (!coming || window_over))
            rdzv_form(st, now, out);
        return;
    }
    struct msg_state best = rdzv_best_state(st);
    bool unsaved = best.held && best.step > st->saved && !rdzv_leaves_unsaved(st, &best, now, out);
    if (unsaved && rdzv_save_begin(st, &best, false, now, out))
        return;
    if (rdzv_waits_for_trouble(st)) {
        st->state_since = now;
        rdzv_tell_waiting(st, out);
    } else if (st->settings.unsupervised)
        rdzv_tell_waiting(st, out);
    else if (!coming && now >= follows_until(st))
        too_few(st, " and none is on its way", now, out);
    else if (now >= st->state_since + st->settings.start_timeout)
        too_few(st, ", and no more came in time", now, out);
    else if (st->expect_known)
        rdzv_tell_waiting(st, out);
}

rm_time rdzv_gathering_until(const struct rdzv *st)
{
    const struct rdzv_settings *s = &st->settings;
    if (!enough(st) && follows_until(st) > st->accounted)
        return follows_until(st);
    if (!enough(st))
        return s->unsupervised ? RM_NEVER : st->state_since + s->start_timeout;
    if (!rdzv_lists_are_in(st))
        return RM_NEVER;
    rm_time at = rm_later(st->arrived + s->join_window, rdzv_pairs_form_at(st));
    if (holder_returns(st))
        at = rm_later(at, st->state_since + s->start_timeout);
    return at;
}

/* ---- QUIESCING ---- */

/* Members must answer; who only wants to join is not waited for any longer than a latecomer. */
static bool still_stopping(const struct rdzv *st, rm_time now)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool awaited = w->must_stop && w->presence != ABSENT && w->trainer_pid;
        if (awaited && (w->rank >= 0 || rdzv_hang_answers(st, w, now)))
            return true;
    }
    return false;
}

/* Pairs have bounds of their own: there are so many, and where too few reach each other startTimeout, or none
 * at all in pods. */
static void count_forming(struct rdzv *st, rm_time now)
{
    bool tried = st->pairs.too_few, learned = rdzv_pairs_stopped(st, now);
    rdzv_pairs_choose(st, now);
    if (tried || learned || st->pairs.too_few)
        st->forming_failures = 0;
    else if (st->forming_failures++ > FORMINGS_IN_VAIN)
        rdzv_give_up(st, EXIT_MACHINE, "%d rings in a row came to nothing; the newest reason: %s",
                     FORMINGS_IN_VAIN, st->why);
}

void rdzv_settle_quiescing(struct rdzv *st, rm_time now, struct rdzv_out *out)
{
    if (still_stopping(st, now))
        return;
    count_forming(st, now);
    forget_moot_interrupt(st);
    if (st->ending.set)
        settle_ending(st, now, out);
    else if (enough(st) && !holder_returns(st) && rdzv_ask_lists(st, now, out) &&
             !rdzv_pairs_hold_back(st, now))
        rdzv_form(st, now, out);
    else
        rdzv_move(st, RDZV_GATHERING, now);
}

rm_time rdzv_quiescing_until(const struct rdzv *st)
{
    rm_time at = RM_NEVER;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool awaited = w->must_stop && w->rank < 0 && w->asked != RM_NEVER;
        if (awaited && w->asked + st->settings.join_window > st->accounted)
            at = rm_earlier(at, w->asked + st->settings.join_window);
    }
    return at;
}
