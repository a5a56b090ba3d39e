/* Who comes, who goes, and whose word counts. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/core/rdzv_state.h"

int rdzv_index(const struct rdzv *st, const struct rdzv_worker *w)
{
    return (int)(w - st->worker);
}

bool rdzv_usable(const struct rdzv *st, const struct rdzv_worker *w)
{
    return w->presence == PRESENT && !w->released && w->trainer_pid && w->address[0] &&
           w->stopped_round == st->round;
}

bool rdzv_candidate(const struct rdzv *st, const struct rdzv_worker *w)
{
    return rdzv_usable(st, w) && !w->leaving && !rdzv_held_back(st, w);
}

int rdzv_candidates(const struct rdzv *st)
{
    int n = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        n += rdzv_candidate(st, &st->worker[i]);
    return n;
}

int rdzv_members_max(const struct rdzv *st)
{
    const struct rdzv_settings *s = &st->settings;
    return s->workers_max < s->lanes ? s->workers_max : s->lanes;
}

static bool ring_runs(const struct rdzv *st)
{
    return st->state == RDZV_TRAINING || (st->state == RDZV_QUIESCING && st->stop_at == STOP_BOUNDARY);
}

/* ---- going ---- */

/* The ring can't go on with this worker in it. */
void rdzv_ring_without(struct rdzv *st, struct rdzv_worker *w, enum cause cause, rm_time now,
                       struct rdzv_out *out)
{
    bool member = w->rank >= 0;
    w->ready = w->finished = w->must_stop = false;
    if (!member || (st->state != RDZV_TRAINING && st->state != RDZV_FORMING && st->state != RDZV_QUIESCING))
        return;
    w->rank = -1;
    rdzv_recovery_begin(st, cause, w, now);
    bool stopping = st->state == RDZV_QUIESCING && st->stop_at == STOP_NOW;
    if (!stopping)
        rdzv_quiesce(st, STOP_NOW, now, out);
}

void rdzv_lose(struct rdzv *st, struct rdzv_worker *w, const char *why, rm_time now, struct rdzv_out *out)
{
    if (w->presence == ABSENT)
        return;
    bool silent = w->released;
    rdzv_close_conn(out, w->conn);
    w->presence = ABSENT;
    w->conn = -1;
    w->stopped_round = -1;
    w->asked = RM_NEVER;
    w->serving = false;
    w->listed = w->list_asked = false;
    rdzv_forget_publisher(st, w);
    if (!silent && w->rank >= 0)
        rdzv_tell_worker(st, out, TELL_WORKER_LOST, rdzv_index(st, w), why);
    if (!silent)
        rdzv_say(st, "worker %d is lost: %s", rdzv_index(st, w), why);
    rdzv_ring_without(st, w, CAUSE_WORKER_LOST, now, out);
    w->rank = -1;
}

void rdzv_closed(struct rdzv *st, int conn, rm_time now, struct rdzv_out *out)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (w->presence != PRESENT || w->conn != conn)
            continue;
        w->conn = -1;
        if (w->rank >= 0 && w->trainer_pid && !w->released && ring_runs(st)) {
            w->presence = AWAY;
            w->away_since = now;
            rdzv_say(st, "worker %d's connection ended; it has %.1f s to come back", i,
                     (double)st->settings.lost_after / RM_S);
        } else {
            rdzv_lose(st, w, "its connection ended", now, out);
        }
    }
}

void rdzv_check_silence(struct rdzv *st, rm_time now, struct rdzv_out *out)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        char why[RM_WHY_MAX];
        rm_time since = w->presence == AWAY ? w->away_since : w->heard;
        if (w->presence == ABSENT || now < since + st->settings.lost_after)
            continue;
        snprintf(why, sizeof why,
                 w->presence == AWAY ? "it did not come back in %.1f s" : "silent for %.1f s",
                 (double)(now - since) / RM_S);
        if (w->rank < 0 && !w->released) /* run may have stopped it, and has to know that it is given up */
            rdzv_tell_worker(st, out, TELL_WORKER_LOST, i, why);
        rdzv_lose(st, w, why, now, out);
    }
}

static void take_expectation(struct rdzv_worker *w, const struct command_expect *expect, int worker)
{
    w->expected = -1;
    w->followed = false;
    for (int i = 0; i < expect->count; i++) {
        if (expect->worker[i].worker != worker)
            continue;
        w->expected = expect->worker[i].attempt;
        w->followed = expect->worker[i].next;
    }
}

/* run has reaped a process before it takes it out of the set or raises its attempt. */
void rdzv_expect(struct rdzv *st, const struct command_expect *expect, rm_time now, struct rdzv_out *out)
{
    st->expect_known = true;
    st->arrived = now;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        int before = w->expected;
        if (w->quarantine[0])
            continue;
        take_expectation(w, expect, i);
        if (w->expected == before)
            continue;
        if (before >= 0 && w->attempt <= before)
            rdzv_lose(st, w, "its process ended", now, out);
        if (w->expected > w->attempt)
            w->released = w->leaving = false; /* that was its predecessor's */
        if (before < 0)
            continue;
        if (w->expected > before && w->act != CAUSE_WORKER_LOST && w->act != CAUSE_WORKER_LEFT)
            rdzv_count_failure(st, w, "its process ended and is started again", now, out);
        w->act = CAUSE_NONE;
    }
}

static bool needed_to_the_end(const struct rdzv *st, const struct rdzv_worker *w)
{
    if (w->rank >= 0 && st->state != RDZV_GATHERING)
        return true;
    if (w->serving || st->state == RDZV_RECOVERING || st->state == RDZV_QUIESCING || st->state == RDZV_SAVING)
        return true;
    if (st->state != RDZV_GATHERING || !w->state.held || !rdzv_usable(st, w))
        return false;
    struct msg_state best = rdzv_best_state(st);
    /* what there is before the first step the seed gives anybody */
    bool unsaved = best.step > 0 && msg_state_equal(&best, &w->state) && w->state.step > st->saved;
    /* what can't be saved any more may still be handed to somebody who is known to come */
    bool awaited = !st->settings.unsupervised && rdzv_on_its_way(st);
    return unsaved && (w->state.step != st->given_up || awaited);
}

void rdzv_release_leavers(struct rdzv *st, struct rdzv_out *out)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (!w->leaving || w->released || w->presence != PRESENT || needed_to_the_end(st, w))
            continue;
        w->released = true;
        rdzv_send_one(st, out, w, MSG_RELEASE);
        if (w->old_rank != INT_MAX)
            rdzv_tell_worker(st, out, TELL_WORKER_LEFT, i, w->leaving_reason);
        rdzv_tell_worker(st, out, TELL_RELEASED, i, "");
    }
}

/* ---- coming ---- */

static void refuse(struct rdzv *st, int conn, const struct msg_abandon *why, struct rdzv_out *out)
{
    rdzv_send(st, out, MSG_ABANDON)->abandon = *why;
    rdzv_send_to(out, &(struct rdzv_worker){.conn = conn});
    rdzv_close_conn(out, conn);
    rdzv_say(st, "%s", why->why);
}

/* Whether another process's word counts more under this index, or nobody's any more. */
static bool is_outdated(const struct rdzv *st, const struct rdzv_worker *w, const struct msg_hello *h,
                        char *why, size_t size)
{
    int newest = w->attempt > w->expected ? w->attempt : w->expected;
    if (w->quarantine[0]) {
        snprintf(why, size, "worker %d is in quarantine: %s", h->worker, w->quarantine);
        return true;
    }
    if (h->attempt < newest) {
        snprintf(why, size, "attempt %d of worker %d has been replaced by attempt %d", h->attempt, h->worker,
                 newest);
        return true;
    }
    if (st->expect_known && w->expected < 0) {
        snprintf(why, size, "worker %d was given up and is not expected back", h->worker);
        return true;
    }
    return false;
}

/* Takes a connection's word for who it is. */
static void accept_identity(struct rdzv *st, struct rdzv_worker *w, int conn, const struct msg_hello *h,
                            rm_time now, struct rdzv_out *out)
{
    bool same = w->attempt == h->attempt && w->incarnation == h->incarnation;
    if (!same && w->presence != ABSENT)
        rdzv_lose(st, w, "another process took its place", now, out);
    if (same && w->presence == PRESENT && w->conn != conn)
        rdzv_close_conn(out, w->conn);
    if (!same) {
        w->released = w->leaving = w->finished = w->digest_known = w->ready = w->serving = false;
        w->listed = w->list_asked = false;
        w->listed_at = w->loads = 0;
        w->rank = -1;
        w->old_rank = INT_MAX;
        w->slowness = 0;
        w->stopped_round = -1;
        if (st->settings.unsupervised) { /* it may be another machine */
            w->trouble.times = 0;
            rdzv_pairs_another_process(st, h->worker);
        }
    }
    w->attempt = h->attempt;
    w->incarnation = h->incarnation;
}

static void take_over(struct rdzv_worker *w, const struct msg_hello *h)
{
    if (w->trainer_pid != h->trainer_pid)
        w->asked = RM_NEVER;
    w->agent_pid = h->agent_pid;
    w->trainer_pid = h->trainer_pid;
    w->state = h->state;
    w->ring = h->ring;
    w->phase = h->phase;
    if (h->trainer_pid) {
        text_copy(w->address, sizeof w->address, h->address);
        text_copy(w->fingerprint, sizeof w->fingerprint, h->fingerprint);
    }
}

static void send_stop(struct rdzv *st, struct rdzv_worker *w, rm_time now, struct rdzv_out *out)
{
    struct message *m = rdzv_send_one(st, out, w, MSG_STOP);
    m->stop.round = st->round;
    m->stop.at = w->rank >= 0 && st->state == RDZV_QUIESCING ? st->stop_at : STOP_NOW;
    if (m->stop.at == STOP_NOW && w->stopped_round != st->round)
        rdzv_hang_asked(w, now);
}

/* A member says hello again: it may have missed what was under way when its connection was cut. */
static void member_again(struct rdzv *st, struct rdzv_worker *w, const struct msg_hello *h, bool same_trainer,
                         rm_time now, struct rdzv_out *out)
{
    bool inside = same_trainer && generation_compare(h->ring, st->ring) == 0 &&
                  (h->phase == PHASE_FORMING || h->phase == PHASE_READY || h->phase == PHASE_TRAINING);
    bool form_missed = same_trainer && generation_compare(h->ring, st->ring) < 0;
    if (st->state == RDZV_FORMING && form_missed) {
        struct message *m = rdzv_send_one(st, out, w, MSG_FORM);
        *m = st->form;
    } else if (inside && ring_runs(st) && h->phase == PHASE_READY) {
        rdzv_send_one(st, out, w, MSG_GO);
    } else if (!inside && (ring_runs(st) || st->state == RDZV_FORMING) &&
               !(st->state == RDZV_QUIESCING && same_trainer)) {
        rdzv_ring_without(st, w, CAUSE_TRAINER_EXIT, now, out);
    }
}

void rdzv_hello(struct rdzv *st, int conn, const struct msg_hello *h, rm_time now, struct rdzv_out *out)
{
    struct rdzv_worker *w = &st->worker[h->worker];
    struct msg_abandon no = {0};
    bool outdated = is_outdated(st, w, h, no.why, sizeof no.why);
    if (outdated)
        no.exit_code = EXIT_MACHINE;
    if (outdated || rdzv_is_unfit(st, h, now, &no, out)) {
        if (!outdated)
            rdzv_tell_worker(st, out, TELL_WORKER_REFUSED, h->worker, no.why);
        refuse(st, conn, &no, out);
        return;
    }
    accept_identity(st, w, conn, h, now, out);
    bool first = w->presence != PRESENT || w->conn != conn;
    bool same_trainer = w->trainer_pid == h->trainer_pid && h->trainer_pid;
    bool newcomer = h->trainer_pid && !same_trainer;
    w->presence = PRESENT;
    w->conn = conn;
    w->heard = now;
    take_over(w, h);
    if (newcomer) {
        w->joined = st->arrived = now;
        rdzv_probe_newcomer(st, h->worker, now);
    }
    if (first) {
        rdzv_send_one(st, out, w, MSG_WELCOME);
        rdzv_forget_publisher(st, w); /* what it was told on an older connection may be lost */
        w->list_asked = false;
    }
    if (w->released) {
        rdzv_send_one(st, out, w, MSG_RELEASE);
        return;
    }
    if (st->state == RDZV_RECOVERING)
        rdzv_recover_hello(st, h);
    else if (w->rank >= 0)
        member_again(st, w, h, same_trainer, now, out);
    if (st->state == RDZV_GATHERING || st->state == RDZV_QUIESCING || st->state == RDZV_SAVING)
        send_stop(st, w, now, out);
    if (st->state == RDZV_SAVING)
        rdzv_save_resend(st, w, out);
}

/* ---- faults ---- */

void rdzv_fault(struct rdzv *st, struct rdzv_worker *w, const struct message *m, rm_time now,
                struct rdzv_out *out)
{
    const struct msg_fault *f = &m->fault;
    bool mine = w->rank >= 0 && generation_compare(m->generation, st->ring) == 0;
    bool at_work = mine && (st->state == RDZV_TRAINING || st->state == RDZV_FORMING || ring_runs(st));
    if (st->state == RDZV_RECOVERING && f->kind != FAULT_STORAGE)
        w->phase = PHASE_IDLE; /* whatever ring it was in does not go on */
    if (f->kind == FAULT_TRAINER_EXIT) {
        w->trainer_pid = 0;
        w->stopped_round = -1;
        w->asked = RM_NEVER;
        rdzv_say(st, "worker %d's trainer ended: %s", rdzv_index(st, w), f->detail);
        if (w->rank >= 0)
            rdzv_tell_worker(st, out, TELL_WORKER_LOST, rdzv_index(st, w), f->detail);
        rdzv_ring_without(st, w, CAUSE_TRAINER_EXIT, now, out);
        w->rank = -1;
        if (w->act == CAUSE_TRAINER_EXIT) {
            w->act = CAUSE_WORKER_JOINED; /* its way back is never skipped for cost */
            w->act_at = RM_NEVER;
        } else if (!w->trouble.exit_told) {
            rdzv_count_failure(st, w, f->detail, now, out);
        }
        w->trouble.exit_told = false;
    } else if (f->kind == FAULT_STORAGE) {
        rdzv_storage_fault(st, w, f, now, out);
    } else if (f->kind == FAULT_NOT_FINITE && mine) {
        st->ending.not_finite |= !st->ending.set;
        rdzv_give_up(st, EXIT_TRAINING, "%s", f->detail);
    } else if (f->kind == FAULT_DATA || f->kind == FAULT_MACHINE) {
        rdzv_work_fault(st, w, f, now, out);
    } else if (mine && st->state == RDZV_QUIESCING && st->stop_at == STOP_NOW) {
        rdzv_pairs_fault(st, w, f);
    } else if (at_work) {
        if (f->peer >= 0 && st->worker[f->peer].presence == AWAY)
            rdzv_lose(st, &st->worker[f->peer], "a ring neighbour lost it too", now, out);
        rdzv_pairs_fault(st, w, f);
        if (st->state != RDZV_QUIESCING || st->stop_at != STOP_NOW) {
            rdzv_say(st, "worker %d: %s", rdzv_index(st, w), f->detail);
            rdzv_recovery_begin(st, CAUSE_RING_ERROR, f->peer >= 0 ? &st->worker[f->peer] : NULL, now);
            rdzv_quiesce(st, STOP_NOW, now, out);
        }
    }
}
