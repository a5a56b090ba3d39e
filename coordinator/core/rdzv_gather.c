/* No ring is at work: GATHERING, where enough workers come together or what is held is saved, and QUIESCING,
 * until all have stopped. */
#include "coordinator/core/rdzv_gather.h"

#include <stdio.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_bridge.h"
#include "coordinator/core/rdzv_ending.h"
#include "coordinator/core/rdzv_failures.h"
#include "coordinator/core/rdzv_form.h"
#include "coordinator/core/rdzv_hang.h"
#include "coordinator/core/rdzv_leave.h"
#include "coordinator/core/rdzv_listen.h"
#include "coordinator/core/rdzv_lists.h"
#include "coordinator/core/rdzv_load.h"
#include "coordinator/core/rdzv_pairs.h"
#include "coordinator/core/rdzv_program.h"
#include "coordinator/core/rdzv_resume.h"
#include "coordinator/core/rdzv_save.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_trouble.h"
#include "coordinator/core/rdzv_waiting.h"
#include "coordinator/core/rdzv_who.h"

enum { FORMINGS_IN_VAIN = 30, FORMINGS_OF_PATIENCE = 3 };

/* With the last step done nothing is trained any more, so that any number will do. */
static bool enough(const struct rdzv *st)
{
    int n = rdzv_candidates(st);
    struct msg_state best = rdzv_best_state(st);
    return n >= st->settings.workers_min || (n > 0 && best.held && best.step >= st->settings.steps);
}

static bool holder_returns(const struct rdzv *st)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        if (rdzv_brings_more(st, &st->worker[i]))
            return true;
    return false;
}

static void too_few(const struct turn *turn, const char *how)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_GATHERING, "too few are here in state %s", rdzv_state_name(st->state));
    char reason[RM_WHY_MAX];
    rdzv_describe_missing(st, reason, sizeof reason);
    rdzv_give_up(st, EXIT_TOO_FEW, "%s%s", reason, how);
    rdzv_end(turn);
}

/* An end was decided: save what is held, unless that is saved already, then end. */
static void settle_ending(const struct turn *turn)
{
    struct msg_state best = rdzv_best_state(turn->st);
    RM_ASSERT(turn->st->ending.set, "an end that nobody decided, in state %s",
              rdzv_state_name(turn->st->state));
    if (turn->st->ending.differ || !rdzv_save_begin(turn, &best, false))
        rdzv_end(turn);
}

/* An interrupt after the last step has nothing to cut short: only the final checkpoint is left to write. */
static void forget_moot_interrupt(struct rdzv *st)
{
    RM_ASSERT(st->state == RDZV_GATHERING || st->state == RDZV_QUIESCING, "an interrupt is moot in state %s",
              rdzv_state_name(st->state));
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
static bool held_back(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_GATHERING, "a ring is held back in state %s", rdzv_state_name(st->state));
    struct msg_state best = rdzv_best_state(st);
    if (!rdzv_pairs_hold_back(st, turn->now))
        return false;
    if (st->pairs.save_first && rdzv_save_begin(turn, &best, false))
        return true;
    if (rdzv_pairs_give_up(turn)) {
        settle_ending(turn);
    } else if (st->pairs.too_few) {
        char reason[MSG_DETAIL_MAX];
        rdzv_pairs_say_too_few(st, reason, sizeof reason);
        rdzv_tell_waiting_for(turn, reason);
    }
    return st->state != RDZV_GATHERING || turn->now < rdzv_pairs_form_at(st);
}

/* Until when those who are on their way are waited for. */
static rm_time window_until(const struct rdzv *st)
{
    const struct rdzv_settings *s = &st->settings;
    bool first = st->ring.n == 0 && s->term == 1;
    return st->arrived + (first ? rm_later(s->join_window, s->first_window) : s->join_window);
}

/* A program's processes that take long to end, or can't be ended, hold everybody up: nobody may start beside
 * them. How long their gracePeriod is their launcher knows alone. */
static rm_time say_who_does_not_end_at(const struct rdzv *st)
{
    return st->settings.program ? st->state_since + FORMINGS_OF_PATIENCE * st->settings.form_timeout
                                : RM_NEVER;
}

static void say_who_does_not_end(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_GATHERING || st->state == RDZV_QUIESCING, "who does not end in state %s",
              rdzv_state_name(st->state));
    for (int i = 0; i < RM_WORKERS_MAX && turn->now >= say_who_does_not_end_at(st); i++) {
        char reason[RM_WHY_MAX];
        const struct rdzv_worker *w = &st->worker[i];
        bool owes = st->state == RDZV_QUIESCING && w->must_stop && w->presence != ABSENT;
        if (!owes && !rdzv_program_lives_on(st, w))
            continue;
        snprintf(reason, sizeof reason, "worker %d: the processes of its program have not ended yet", i);
        rdzv_tell_waiting_for(turn, reason);
        return;
    }
}

/* True: those who alone hold the newest state gave something else, and are asked again a while later. What
 * they hold is more than a checkpoint has, and the table of faults has a bound for them. */
static bool awaits_source(const struct turn *turn)
{
    RM_ASSERT(turn->st->state == RDZV_GATHERING, "a source is waited for in state %s",
              rdzv_state_name(turn->st->state));
    if (turn->now >= rdzv_given_from(turn->st))
        return false;
    rdzv_tell_waiting(turn);
    return true;
}

static bool is_saved_first(const struct turn *turn)
{
    RM_ASSERT(turn->st->state == RDZV_GATHERING, "a leave is saved before a ring in state %s",
              rdzv_state_name(turn->st->state));
    const struct rdzv *st = turn->st;
    struct msg_state best = rdzv_best_state(st);
    enum leave_choice first = rdzv_leave_before_ring(st);
    return first == LEAVE_FINISH || (first == LEAVE_SAVE && rdzv_save_begin(turn, &best, false));
}

/* Too few are waited for until then. Who is here and owes an answer is not what is missing: either that
 * comes, or its trainer is killed for it and the next one answers. */
static rm_time starts_until(const struct rdzv *st)
{
    RM_ASSERT(st->state == RDZV_GATHERING, "workers are waited for in state %s", rdzv_state_name(st->state));
    rm_time since = rm_later(st->state_since, st->accused_since), start = st->settings.start_timeout;
    rm_time answers = rm_later(since + start, rdzv_hang_answers_until(st));
    rm_time most = st->state_since + 2 * start + FORMINGS_OF_PATIENCE * st->settings.form_timeout;
    return rm_earlier(answers, most); /* trainers that stand still one after the other end it, too */
}

void rdzv_settle_gathering(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_GATHERING, "workers are gathered in state %s", rdzv_state_name(st->state));
    rdzv_pairs_choose(turn);
    forget_moot_interrupt(st);
    if (st->pairs.too_few)
        rdzv_listen_is_over(turn, true);
    if (st->ending.set) {
        settle_ending(turn);
        return;
    }
    bool coming = rdzv_on_its_way(st);
    bool window_over = turn->now >= rm_earlier(window_until(st), rdzv_leave_forms_by(st));
    bool patient = holder_returns(st) && turn->now < st->state_since + st->settings.start_timeout;
    if (enough(st)) {
        bool listed = rdzv_ask_lists(turn);
        if (held_back(turn) || is_saved_first(turn) || awaits_source(turn))
            return;
        if (rdzv_program_lives_on_anywhere(st)) {
            say_who_does_not_end(turn);
            return;
        }
        if (listed && !patient && (!coming || window_over) && !rdzv_awaits_manifest(turn))
            rdzv_form(turn);
        return;
    }
    rdzv_listen_is_over(turn, true);
    struct msg_state best = rdzv_best_state(st);
    bool unsaved = best.held && best.step > st->saved && !rdzv_leaves_unsaved(turn, &best);
    if (unsaved && rdzv_save_begin(turn, &best, false))
        return;
    if (rdzv_waits_for_trouble(st)) {
        st->state_since = turn->now;
        rdzv_tell_waiting(turn);
    } else if (st->settings.unsupervised || patient)
        rdzv_tell_waiting(turn);
    else if (!coming && turn->now >= follows_until(st))
        too_few(turn, ", and none is on its way");
    else if (turn->now >= starts_until(st))
        too_few(turn, ", and no more came in time");
    else if (st->expect_known)
        rdzv_tell_waiting(turn);
}

rm_time rdzv_gathering_until(const struct rdzv *st)
{
    RM_ASSERT(st->state == RDZV_GATHERING, "workers are waited for in state %s", rdzv_state_name(st->state));
    const struct rdzv_settings *s = &st->settings;
    if (!enough(st) && follows_until(st) > st->accounted)
        return follows_until(st);
    if (!enough(st))
        return rm_earlier(s->unsupervised ? RM_NEVER : starts_until(st), rdzv_leave_let_go_at(st));
    if (!rdzv_lists_are_in(st) || rdzv_program_lives_on_anywhere(st) ||
        rdzv_leave_before_ring(st) == LEAVE_FINISH) /* its end is a word, and so is that of who writes it */
        return RM_NEVER;
    rm_time window = rm_earlier(window_until(st), rdzv_leave_forms_by(st));
    rm_time at = rm_later(rm_later(window, rdzv_pairs_form_at(st)), rdzv_given_from(st));
    if (holder_returns(st))
        at = rm_later(at, st->state_since + s->start_timeout);
    return rm_later(at, rdzv_awaits_manifest_until(st));
}

/* ---- QUIESCING ---- */

/* Members must answer, and who still runs a program; who only wants to join is not waited for any longer than
 * a latecomer. */
static bool still_stopping(const struct rdzv *st, rm_time now)
{
    RM_ASSERT(st->state == RDZV_QUIESCING, "who still stops in state %s", rdzv_state_name(st->state));
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool awaited = w->must_stop && w->presence != ABSENT && w->trainer_pid;
        if (awaited && (w->rank >= 0 || rdzv_hang_answers(st, w, now)))
            return true;
    }
    return rdzv_program_lives_on_anywhere(st);
}

/* Pairs have bounds of their own: there are so many, and where too few reach each other startTimeout, or none
 * at all in pods. */
static void count_forming(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->forming_failures >= 0 && st->forming_failures <= FORMINGS_IN_VAIN + 1,
              "%d rings in a row came to nothing", st->forming_failures);
    bool tried = st->pairs.too_few, learned = rdzv_pairs_stopped(turn);
    rdzv_pairs_choose(turn);
    if (tried || learned || st->pairs.too_few)
        st->forming_failures = 0;
    else if (st->forming_failures <= FORMINGS_IN_VAIN)
        st->forming_failures++;
    else
        rdzv_give_up(st, EXIT_MACHINE, "%d rings in a row came to nothing; the newest reason: %s",
                     FORMINGS_IN_VAIN, st->why);
}

void rdzv_settle_quiescing(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_QUIESCING, "a ring stops in state %s", rdzv_state_name(st->state));
    if (still_stopping(st, turn->now)) {
        say_who_does_not_end(turn);
        return;
    }
    if (rdzv_listen_is_over(turn, !enough(st) || st->pairs.too_few))
        return;
    if (st->settings.program && rdzv_all_finished(st)) { /* their words crossed the order to stop */
        st->ending = (struct rdzv_ending){0};
        rdzv_program_finished(st);
        rdzv_end(turn);
        return;
    }
    st->stood_still = turn->now;
    rdzv_program_stopped(turn);
    rdzv_not_finite_stopped(turn);
    count_forming(turn);
    forget_moot_interrupt(st);
    if (st->ending.set)
        settle_ending(turn);
    else if (enough(st) && !holder_returns(st) && rdzv_ask_lists(turn) &&
             !rdzv_pairs_hold_back(st, turn->now) && !rdzv_awaits_manifest(turn) &&
             rdzv_leave_before_ring(st) == LEAVE_HAND_OVER && turn->now >= rdzv_given_from(st))
        rdzv_form(turn);
    else
        rdzv_move(turn, RDZV_GATHERING);
}

rm_time rdzv_quiescing_until(const struct rdzv *st)
{
    RM_ASSERT(st->state == RDZV_QUIESCING, "answers are waited for in state %s", rdzv_state_name(st->state));
    rm_time at = say_who_does_not_end_at(st);
    if (at <= st->accounted)
        at = RM_NEVER; /* it is said */
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool awaited = w->must_stop && w->rank < 0 && w->asked != RM_NEVER;
        if (awaited && w->asked + st->settings.join_window > st->accounted)
            at = rm_earlier(at, w->asked + st->settings.join_window);
    }
    return at;
}
