/* What each state waits for, and what an event means in it. The table of states is in rdzv_states.c. */
#include "coordinator/core/rdzv.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/core/rdzv_state.h"

enum { FORMINGS_IN_VAIN = 30, SETTLE_TURNS = 16 };

void rdzv_say(struct rdzv *st, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(st->why, sizeof st->why, format, args);
    va_end(args);
}

/* The first reason to end counts. */
void rdzv_give_up(struct rdzv *st, int exit_code, const char *format, ...)
{
    if (st->ending.set)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(st->ending.text, sizeof st->ending.text, format, args);
    va_end(args);
    st->ending.set = true;
    st->ending.exit_code = exit_code;
    rdzv_say(st, "%s", st->ending.text);
}

struct rdzv *rdzv_open(const struct rdzv_settings *settings, rm_time now)
{
    rdzv_check_settings(settings);
    struct rdzv *st = calloc(1, sizeof *st);
    if (!st)
        return NULL;
    st->settings = *settings;
    st->state = RDZV_GATHERING;
    st->state_since = st->started = st->accounted = st->arrived = st->saved_at = now;
    st->left = now - RM_S;
    st->round = 1;
    st->told = st->evaluated = st->saved = st->known_step = st->given_up = -1;
    st->due = st->circled = st->pairs.stuck_since = RM_NEVER;
    st->exact = settings->exact;
    st->loss = NAN;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        w->expected = w->attempt = w->conn = w->rank = w->waiting_for = -1;
        w->old_rank = INT_MAX;
        w->stopped_round = w->update_step = -1;
        w->asked = w->leave_until = RM_NEVER;
    }
    rdzv_say(st, "waiting for workers");
    if (settings->predecessor.given)
        rdzv_restore(st);
    return st;
}

void rdzv_free(struct rdzv *st)
{
    free(st);
}

enum rdzv_state rdzv_state(const struct rdzv *st)
{
    return st->state;
}

const char *rdzv_why(const struct rdzv *st)
{
    return st->why;
}

/* ---- ending ---- */

static void release_all(struct rdzv *st, struct rdzv_out *out)
{
    rdzv_send(st, out, MSG_RELEASE);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (w->presence == PRESENT)
            rdzv_send_to(out, w);
    }
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (w->presence == PRESENT && !w->released)
            rdzv_tell_worker(st, out, TELL_RELEASED, i, "");
        w->released = true;
    }
}

/* Who announced a leave and is let go only by the end: told before that, which is the last word. */
static void tell_left(struct rdzv *st, struct rdzv_out *out)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (w->presence == PRESENT && w->leaving && !w->released && w->old_rank != INT_MAX)
            rdzv_tell_worker(st, out, TELL_WORKER_LEFT, i, w->leaving_reason);
    }
}

static void tell_skipped(struct rdzv *st, struct rdzv_out *out)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (w->presence == PRESENT && w->rank < 0 && !w->leaving && !w->released)
            rdzv_tell_worker(st, out, TELL_JOIN_SKIPPED, i,
                             w->left_out[0] ? w->left_out
                                            : "the last step came before it was worth making room for it");
        else if (w->presence == ABSENT && w->expected > w->attempt)
            rdzv_tell_worker(st, out, TELL_JOIN_SKIPPED, i, "the last step came before it did");
    }
}

static void tell_complete(struct rdzv *st, rm_time now, struct rdzv_out *out)
{
    struct rdzv_tell *t = rdzv_tell(out, TELL_COMPLETE);
    t->step = st->settings.steps;
    t->loss = st->loss;
    t->exact = st->exact;
    t->goodput = rdzv_productive_share(rdzv_goodput(st, now));
    memcpy(t->digest, st->digest, RM_HASH_BYTES);
}

static void tell_failed(struct rdzv *st, struct rdzv_out *out)
{
    bool interrupted = st->ending.interrupted && st->ending.exit_code == EXIT_INTERRUPTED;
    struct rdzv_tell *t = rdzv_tell(out, interrupted ? TELL_INTERRUPTED : TELL_FAILED);
    t->step = st->saved > 0 ? st->saved : 0;
    t->exit_code = st->ending.exit_code;
    text_copy(t->text, sizeof t->text, st->ending.text);
}

/* What the end leaves behind, for the sentence. */
static void add_what_is_kept(struct rdzv *st)
{
    char *text = st->ending.text;
    size_t length = strlen(text);
    if (st->ending.not_finite)
        snprintf(text + length, sizeof st->ending.text - length,
                 "; it would come out the same again: lower trainer.optimizer.learningRate or look at the "
                 "data, and "
                 "start anew with --overwrite");
    else if (st->saved > 0)
        snprintf(text + length, sizeof st->ending.text - length,
                 "; the newest checkpoint is of step %" PRId64 ": run again to go on from it", st->saved);
    else
        snprintf(text + length, sizeof st->ending.text - length, "; there is no checkpoint yet");
}

void rdzv_end(struct rdzv *st, rm_time now, struct rdzv_out *out)
{
    bool complete = st->final_saved && !(st->ending.set && st->ending.exit_code != EXIT_INTERRUPTED);
    if (complete && !rdzv_all_told(st, out))
        return;
    if (st->recovery.active && complete)
        rdzv_recovery_done(st, now, out);
    rdzv_move(st, complete ? RDZV_FINISHED : RDZV_FAILED, now);
    tell_left(st, out);
    if (complete) {
        tell_skipped(st, out);
        tell_complete(st, now, out);
        rdzv_say(st, "complete");
    } else {
        add_what_is_kept(st);
        tell_failed(st, out);
        rdzv_say(st, "%s", st->ending.text);
    }
    release_all(st, out);
    rdzv_tell_end(out, complete ? EXIT_DONE : st->ending.exit_code, complete ? "" : st->ending.text);
}

/* ---- stopping ---- */

/* Who has to answer before the round is over: the members; at a planned stop also those who want to join. */
static bool has_to_stop(const struct rdzv_worker *w, enum msg_stop_at at)
{
    if (!w->trainer_pid || w->released)
        return false;
    if (w->rank >= 0)
        return w->presence != ABSENT;
    return at == STOP_BOUNDARY && w->presence == PRESENT && !w->leaving;
}

static void send_stops(struct rdzv *st, bool members, enum msg_stop_at at, rm_time now, struct rdzv_out *out)
{
    struct message *m = rdzv_send(st, out, MSG_STOP);
    m->stop.round = st->round;
    m->stop.at = at;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (w->presence != PRESENT || w->released || (w->rank >= 0) != members)
            continue;
        rdzv_send_to(out, w);
        if (at == STOP_NOW)
            rdzv_hang_asked(w, now);
    }
}

void rdzv_quiesce(struct rdzv *st, enum msg_stop_at at, rm_time now, struct rdzv_out *out)
{
    st->round++;
    st->stop_at = at;
    rdzv_move(st, RDZV_QUIESCING, now);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        w->must_stop = has_to_stop(w, at);
        w->ready = false;
    }
    send_stops(st, true, at, now, out);
    send_stops(st, false, STOP_NOW, now, out);
    for (int i = 0; at == STOP_NOW && i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (w->presence == AWAY)
            rdzv_lose(st, w, "its connection ended, and the ring with it", now, out);
    }
}

static void on_stopped(struct rdzv *st, struct rdzv_worker *w, const struct message *m, rm_time now,
                       struct rdzv_out *out)
{
    const struct msg_stopped *s = &m->stopped;
    w->asked = s->round == st->round || w->asked == RM_NEVER ? RM_NEVER : now;
    if (s->round != st->round) { /* of an older round: says nothing, unless a predecessor stopped the ring */
        w->phase = PHASE_STOPPED;
        if (st->found && st->state == RDZV_TRAINING && w->rank >= 0) {
            rdzv_recovery_begin(st, CAUSE_RING_ERROR, NULL, now);
            rdzv_quiesce(st, STOP_NOW, now, out);
        }
        return;
    }
    w->stopped_round = s->round;
    w->must_stop = false;
    w->state = s->state;
    w->update_step = s->update_step;
    w->discarded = s->discarded;
    if (s->trainer_pid)
        w->trainer_pid = s->trainer_pid;
    if (s->state.held && s->state.step > st->known_step)
        st->known_step = s->state.step;
}

/* ---- what each state waits for ---- */

bool rdzv_on_its_way(const struct rdzv *st)
{
    if (st->settings.unsupervised)
        return rdzv_more_may_come(st);
    if (!st->expect_known)
        return true;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (w->followed)
            return true;
        if (w->released || w->leaving)
            continue;
        bool coming = w->expected >= 0 || w->presence != ABSENT;
        if (coming && !rdzv_candidate(st, w))
            return true;
    }
    return false;
}

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

static void settle_gathering(struct rdzv *st, rm_time now, struct rdzv_out *out)
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

static void settle_quiescing(struct rdzv *st, rm_time now, struct rdzv_out *out)
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

/* ---- TRAINING ---- */

static bool all_finished(const struct rdzv *st)
{
    for (int r = 0; r < st->world; r++) {
        const struct rdzv_worker *w = &st->worker[st->member[r]];
        if (!w->finished || w->presence != PRESENT)
            return false;
    }
    return st->world > 0;
}

static bool any_finished(const struct rdzv *st)
{
    for (int r = 0; r < st->world; r++) {
        if (st->worker[st->member[r]].finished)
            return true;
    }
    return false;
}

static struct rdzv_worker *a_leaver(struct rdzv *st)
{
    for (int r = 0; r < st->world; r++) {
        struct rdzv_worker *w = &st->worker[st->member[r]];
        if (w->leaving && !w->released)
            return w;
    }
    return NULL;
}

static bool wants_to_join(const struct rdzv *st, const struct rdzv_worker *w)
{
    bool held = rdzv_held_back(st, w) || rdzv_pairs_bar(st, rdzv_index(st, w));
    return w->presence == PRESENT && w->trainer_pid && w->rank < 0 && !w->leaving && !w->released && !held &&
           w->asked == RM_NEVER; /* it answers */
}

/* Whether what is left to do takes longer than making room for a newcomer. */
static bool is_worth_it(const struct rdzv *st, const struct rdzv_worker *w)
{
    double left = (double)(st->settings.steps - st->told) * st->step_time;
    return w->act == CAUSE_WORKER_JOINED || left > (double)st->reform_cost;
}

/* When the join of those who wait may begin; *ret_first is one of them. RM_NEVER: there is none. */
static rm_time join_at(const struct rdzv *st, int *ret_first)
{
    int most = rdzv_members_max(st);
    rm_time first = RM_NEVER;
    bool more_coming = false;
    int here_now = 0;
    for (int i = 0; i < RM_WORKERS_MAX && st->world < most; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (wants_to_join(st, w) && is_worth_it(st, w) && w->joined < first) {
            first = w->joined;
            *ret_first = i;
        }
        bool here = w->rank >= 0 || wants_to_join(st, w);
        bool coming = !here && !rdzv_pairs_bar(st, i);
        here_now += here;
        more_coming = more_coming || (w->expected >= 0 && coming && !w->leaving && !w->released);
    }
    if (first == RM_NEVER)
        return RM_NEVER;
    if (st->settings.unsupervised)
        more_coming = !rdzv_at_target(st, here_now);
    return more_coming ? first + st->settings.join_window : first;
}

static void settle_finish(struct rdzv *st, rm_time now, struct rdzv_out *out)
{
    struct msg_state last = {.held = true, .step = st->settings.steps};
    if (!rdzv_all_told(st, out))
        return;
    if (st->recovery.active)
        rdzv_recovery_done(st, now, out);
    rdzv_save_begin(st, &last, true, now, out);
}

static void settle_training(struct rdzv *st, rm_time now, struct rdzv_out *out)
{
    struct rdzv_worker *leaver = a_leaver(st);
    int joiner = -1;
    rdzv_settle_probes(st, now, out);
    if (st->ending.set) {
        rdzv_quiesce(st, st->ending.interrupted ? STOP_BOUNDARY : STOP_NOW, now, out);
    } else if (all_finished(st)) {
        settle_finish(st, now, out);
    } else if (any_finished(st)) {
        return; /* the others are about to */
    } else if (leaver && now >= rdzv_leave_at(st)) {
        st->left = now;
        rdzv_recovery_begin(st, CAUSE_WORKER_LEFT, leaver, now);
        rdzv_quiesce(st, STOP_BOUNDARY, now, out);
    } else if (now >= join_at(st, &joiner)) {
        rdzv_recovery_begin(st, CAUSE_WORKER_JOINED, &st->worker[joiner], now);
        rdzv_quiesce(st, STOP_BOUNDARY, now, out);
    }
}

static void settle(struct rdzv *st, rm_time now, struct rdzv_out *out)
{
    for (int turn = 0; turn < SETTLE_TURNS; turn++) {
        enum rdzv_state before = st->state;
        int64_t round = st->round;
        if (st->state == RDZV_RECOVERING)
            rdzv_settle_recovering(st, now, out);
        else if (st->final_saved && st->digest_known && st->state != RDZV_SAVING)
            rdzv_end(st, now, out); /* published after its holders were thought lost */
        else if (st->state == RDZV_GATHERING)
            settle_gathering(st, now, out);
        else if (st->state == RDZV_FORMING)
            rdzv_settle_forming(st, now, out);
        else if (st->state == RDZV_TRAINING)
            settle_training(st, now, out);
        else if (st->state == RDZV_QUIESCING)
            settle_quiescing(st, now, out);
        else if (st->state == RDZV_SAVING)
            rdzv_settle_saving(st, now, out);
        bool over = st->state == RDZV_FINISHED || st->state == RDZV_FAILED;
        if (over || (st->state == before && st->round == round))
            break;
    }
    if (st->state != RDZV_FINISHED && st->state != RDZV_FAILED) {
        rdzv_name_publishers(st, out);
        rdzv_release_leavers(st, out);
    }
}

/* ---- events ---- */

static struct rdzv_worker *by_conn(struct rdzv *st, int conn)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        if (st->worker[i].presence == PRESENT && st->worker[i].conn == conn)
            return &st->worker[i];
    }
    return NULL;
}

static void on_finished(struct rdzv *st, struct rdzv_worker *w, const struct message *m)
{
    if (generation_compare(m->generation, st->ring) != 0 || (w->rank < 0 && st->state != RDZV_RECOVERING))
        return;
    if (any_finished(st) && memcmp(st->digest, m->finished.digest, RM_HASH_BYTES) != 0 && st->exact)
        rdzv_give_up(st, EXIT_TRAINING, "workers end with different weights: worker %d disagrees",
                     rdzv_index(st, w));
    st->digest_known = true;
    memcpy(st->digest, m->finished.digest, RM_HASH_BYTES);
    w->digest_known = true;
    memcpy(w->digest, m->finished.digest, RM_HASH_BYTES);
    st->exact = st->exact && m->finished.exact;
    w->finished = true;
}

/* While the ring forms everybody has to move, but it gets on only by those who don't wait for somebody. */
static void on_heartbeat(struct rdzv *st, struct rdzv_worker *w, const struct msg_heartbeat *h, rm_time now)
{
    bool moves = h->bytes != w->bytes || h->counter != w->counter;
    if (moves)
        w->moved = now;
    if (moves && st->state == RDZV_FORMING && w->rank >= 0 && !w->ready && h->waiting_for < 0)
        rdzv_hang_moved(st, now);
    w->bytes = h->bytes;
    rdzv_hang_heartbeat(w, h, now);
}

static void on_leaving(struct rdzv *st, struct rdzv_worker *w, const struct msg_leaving *l, rm_time now)
{
    if (!a_leaver(st))
        st->leave_asked = now;
    st->leave_said = now;
    w->leaving = true;
    w->leave_until = l->deadline > 0 ? now + l->deadline : RM_NEVER;
    text_copy(w->leaving_reason, sizeof w->leaving_reason, l->reason);
    rdzv_say(st, "worker %d leaves: %s", rdzv_index(st, w), l->reason);
}

static void on_message(struct rdzv *st, const struct rdzv_event *event, rm_time now, struct rdzv_out *out)
{
    const struct message *m = event->message;
    if (m->type == MSG_HELLO && m->term > st->settings.term) {
        rdzv_step_down(st, m->term, now, out);
        return;
    }
    if (m->type == MSG_HELLO) {
        rdzv_hello(st, event->conn, &m->hello, now, out);
        return;
    }
    struct rdzv_worker *w = by_conn(st, event->conn);
    if (!w)
        return; /* refused or replaced */
    w->heard = now;
    switch (m->type) {
    case MSG_HEARTBEAT:
        on_heartbeat(st, w, &m->heartbeat, now);
        break;
    case MSG_PROGRESS:
        rdzv_progress(st, w, m, now, out);
        break;
    case MSG_EVALUATED:
        rdzv_evaluated(st, w, &m->evaluated, out);
        rdzv_hang_moved(st, now);
        break;
    case MSG_LEAVING:
        on_leaving(st, w, &m->leaving, now);
        break;
    case MSG_FAULT:
        rdzv_fault(st, w, m, now, out);
        break;
    case MSG_STOPPED:
        on_stopped(st, w, m, now, out);
        break;
    case MSG_READY:
        rdzv_ready(st, w, m, now, out);
        break;
    case MSG_CHECKPOINTS:
        rdzv_listed(w, &m->checkpoints, now);
        break;
    case MSG_CHECKPOINTED:
        rdzv_checkpointed(st, w, &m->checkpointed, out);
        break;
    case MSG_PUBLISHED:
        rdzv_write_is_over(w, m->published.step);
        rdzv_published(st, &m->published, now, out);
        break;
    case MSG_SAVE_WAITS:
        rdzv_save_waits(st, w, &m->save_waits, now, out);
        break;
    case MSG_FINISHED:
        on_finished(st, w, m);
        break;
    case MSG_PROBED:
        rdzv_probed(st, w, &m->probed, now);
        break;
    default:
        break;
    }
}

static void forgive(rm_time *since, rm_time pause)
{
    *since += *since == RM_NEVER ? 0 : pause;
}

/* Somebody calls at the deadline or before. Where the call comes much later it was this program that stood
 * still, or its machine: what it has not heard meanwhile says nothing about anybody. */
static void forgive_own_pause(struct rdzv *st, rm_time now)
{
    rm_time pause = now - st->accounted;
    if (st->due == RM_NEVER || now <= st->due + st->settings.heartbeat)
        return;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        forgive(&w->heard, pause);
        forgive(&w->away_since, pause);
        forgive(&w->moved, pause);
        forgive(&w->turned, pause);
        forgive(&w->asked, pause);
    }
    forgive(&st->turned, pause);
    forgive(&st->state_since, pause);
    forgive(&st->save_since, pause);
    forgive(&st->arrived, pause);
}

static void on_act(struct rdzv *st, const struct rdzv_event *event)
{
    struct rdzv_worker *w = &st->worker[event->act.worker];
    w->act = event->act.cause;
    w->act_at = event->act.at;
}

void rdzv_step(struct rdzv *st, const struct rdzv_event *event, rm_time now, struct rdzv_out *out)
{
    out->count = 0;
    if (st->state == RDZV_FINISHED || st->state == RDZV_FAILED)
        return;
    forgive_own_pause(st, now);
    rdzv_account(st, now);
    switch (event->kind) {
    case RDZV_MESSAGE:
        on_message(st, event, now, out);
        break;
    case RDZV_CLOSED:
        rdzv_closed(st, event->conn, now, out);
        break;
    case RDZV_EXPECT:
        rdzv_expect(st, &event->expect, now, out);
        break;
    case RDZV_ACT:
        on_act(st, event);
        break;
    case RDZV_INTERRUPT:
        if (!st->ending.set) {
            rdzv_give_up(st, EXIT_INTERRUPTED, "interrupted");
            st->ending.interrupted = true;
        }
        break;
    case RDZV_TICK:
        break;
    }
    if (st->state != RDZV_FINISHED && st->state != RDZV_FAILED) {
        rdzv_check_silence(st, now, out);
        rdzv_check_hang(st, now, out);
        settle(st, now, out);
    }
    st->due = rdzv_deadline(st);
    rdzv_check_invariants(st);
}

static rm_time state_deadline(const struct rdzv *st)
{
    const struct rdzv_settings *s = &st->settings;
    rm_time at = RM_NEVER;
    int joiner;
    switch (st->state) {
    case RDZV_RECOVERING:
        return rdzv_recovering_until(st);
    case RDZV_GATHERING:
        if (!enough(st) && follows_until(st) > st->accounted)
            return follows_until(st);
        if (!enough(st))
            return s->unsupervised ? RM_NEVER : st->state_since + s->start_timeout;
        if (!rdzv_lists_are_in(st))
            return RM_NEVER;
        at = rm_later(st->arrived + s->join_window, rdzv_pairs_form_at(st));
        if (holder_returns(st))
            at = rm_later(at, st->state_since + s->start_timeout);
        return at;
    case RDZV_FORMING:
        at = st->turned + s->form_timeout;
        for (int r = 0; r < st->world; r++) {
            const struct rdzv_worker *w = &st->worker[st->member[r]];
            at = rm_earlier(at, w->ready ? RM_NEVER : w->moved + s->form_timeout);
        }
        return at;
    case RDZV_QUIESCING:
        for (int i = 0; i < RM_WORKERS_MAX; i++) {
            const struct rdzv_worker *w = &st->worker[i];
            bool awaited = w->must_stop && w->rank < 0 && w->asked != RM_NEVER;
            if (awaited && w->asked + s->join_window > st->accounted)
                at = rm_earlier(at, w->asked + s->join_window);
        }
        return at;
    case RDZV_TRAINING:
        for (int r = 0; r < st->world; r++) {
            if (st->worker[st->member[r]].leaving)
                at = rdzv_leave_at(st);
        }
        return any_finished(st) ? RM_NEVER
                                : rm_earlier(rm_earlier(at, rdzv_probe_at(st)), join_at(st, &joiner));
    case RDZV_SAVING:
        at = st->state_since + s->start_timeout;
        at = rm_earlier(at > st->accounted ? at : RM_NEVER, rdzv_save_gives_up_at(st));
        return rm_earlier(at, rdzv_save_anew_at(st));
    default:
        return RM_NEVER;
    }
}

rm_time rdzv_deadline(const struct rdzv *st)
{
    if (st->state == RDZV_FINISHED || st->state == RDZV_FAILED)
        return RM_NEVER;
    bool more_to_tell = (st->final_saved || all_finished(st)) && st->told < st->settings.steps;
    if (more_to_tell)
        return st->accounted; /* at once */
    rm_time at = rm_earlier(rm_earlier(state_deadline(st), rdzv_hang_at(st)), rdzv_trouble_at(st));
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (w->presence != ABSENT)
            at = rm_earlier(at, (w->presence == AWAY ? w->away_since : w->heard) + st->settings.lost_after);
    }
    return at;
}
