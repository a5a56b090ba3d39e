/* Who comes, who goes, and whose word counts. */
#include "coordinator/core/rdzv_members.h"

#include <limits.h>
#include <stdio.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_bridge.h"
#include "coordinator/core/rdzv_failures.h"
#include "coordinator/core/rdzv_fit.h"
#include "coordinator/core/rdzv_interval.h"
#include "coordinator/core/rdzv_listening.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_pairs.h"
#include "coordinator/core/rdzv_probe.h"
#include "coordinator/core/rdzv_program.h"
#include "coordinator/core/rdzv_recover.h"
#include "coordinator/core/rdzv_stop.h"
#include "coordinator/core/rdzv_vouch.h"
#include "coordinator/core/rdzv_who.h"

/* ---- going ---- */

void rdzv_closed(const struct turn *turn, int conn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(conn >= 0, "connection %d ended", conn);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (w->presence != PRESENT || w->conn != conn)
            continue;
        w->conn = -1;
        bool inside = w->rank >= 0 && w->trainer_pid && !w->released && rdzv_ring_runs(st);
        if (inside || rdzv_program_may_live(st, w)) {
            w->presence = AWAY;
            w->away_since = turn->now;
            rdzv_say(st, "worker %d's connection ended; it has %.1f s to come back", i,
                     (double)st->settings.lost_after / RM_S);
        } else {
            rdzv_lose(turn, w, "its connection ended");
        }
    }
}

static rm_time silent_since(const struct rdzv_worker *w)
{
    return w->presence == AWAY ? w->away_since : w->heard;
}

/* Also a heartbeat before somebody's time is over: who is called as late as that stood still itself, and
 * forgives everybody as much (rdzv.c). Without it a pause of the whole time would look like their silence,
 * if it ends before another heartbeat has gone by. */
rm_time rdzv_silence_at(const struct rdzv *st)
{
    rm_time at = RM_NEVER;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        rm_time over = silent_since(w) + st->settings.lost_after, before = over - st->settings.heartbeat;
        RM_ASSERT(w->presence == ABSENT || silent_since(w) <= st->accounted,
                  "worker %d was heard %lld ns from now", i, (long long)(silent_since(w) - st->accounted));
        if (w->presence != ABSENT)
            at = rm_earlier(at, before > st->accounted ? before : over);
    }
    return at;
}

void rdzv_check_silence(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        char why[RM_WHY_MAX];
        rm_time since = silent_since(w);
        if (w->presence == ABSENT || turn->now < since + st->settings.lost_after)
            continue;
        RM_ASSERT(since <= turn->now, "worker %d was heard %lld ns from now", i,
                  (long long)(since - turn->now));
        snprintf(why, sizeof why,
                 w->presence == AWAY ? "it did not come back in %.1f s" : "silent for %.1f s",
                 (double)(turn->now - since) / RM_S);
        if (w->rank < 0 && !w->released) /* run may have stopped it, and has to know that it is given up */
            rdzv_tell_worker(turn, TELL_WORKER_LOST, i, why);
        rdzv_lose(turn, w, why);
    }
}

static void take_expectation(struct rdzv_worker *w, const struct command_expect *expect, int worker)
{
    RM_ASSERT(worker >= 0 && worker < RM_WORKERS_MAX, "worker %d is expected, of %d", worker, expect->count);
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
void rdzv_expect(const struct turn *turn, const struct command_expect *expect)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(expect->count >= 0 && expect->count <= RM_WORKERS_MAX, "%d workers are expected",
              expect->count);
    st->expect_known = true;
    st->arrived = turn->now;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        int before = w->expected;
        if (w->quarantine[0])
            continue;
        take_expectation(w, expect, i);
        if (w->expected == before)
            continue;
        if (before >= 0 && w->attempt <= before)
            rdzv_lose(turn, w, "its process ended");
        if (w->expected > w->attempt)
            w->released = w->leaving = w->goes = false; /* that was its predecessor's */
        if (before < 0)
            continue;
        if (w->expected > before && w->act != CAUSE_WORKER_LOST && w->act != CAUSE_WORKER_LEFT)
            rdzv_count_failure(turn, w, "its process ended and is started again");
        w->act = CAUSE_NONE;
    }
}

/* ---- coming ---- */

static void refuse_worker(const struct turn *turn, int conn, const struct msg_abandon *why)
{
    RM_ASSERT(why->why[0], "connection %d is refused, and not told why", conn);
    rdzv_send(turn, MSG_ABANDON)->abandon = *why;
    rdzv_send_to(turn, &(struct rdzv_worker){.conn = conn});
    rdzv_close_conn(turn, conn);
    rdzv_say(turn->st, "%s", why->why);
}

/* Whether another process's word counts more under this index, or nobody's any more. */
static bool is_outdated(const struct rdzv *st, const struct rdzv_worker *w, const struct msg_hello *h,
                        char *why, size_t size)
{
    RM_ASSERT(h->worker == rdzv_index(st, w), "a hello of worker %d is held against worker %d", h->worker,
              rdzv_index(st, w));
    int newest = w->attempt > w->expected ? w->attempt : w->expected;
    if (st->settings.alone && h->worker == 0 && st->settings.attempt_least > newest)
        newest = st->settings.attempt_least;
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
static void accept_identity(const struct turn *turn, struct rdzv_worker *w, int conn,
                            const struct msg_hello *h)
{
    struct rdzv *st = turn->st;
    bool same = w->attempt == h->attempt && w->incarnation == h->incarnation;
    if (!same && w->presence != ABSENT) {
        rdzv_program_replaced(turn);
        rdzv_lose(turn, w, "another process took its place");
    }
    if (same && w->presence == PRESENT && w->conn != conn)
        rdzv_close_conn(turn, w->conn);
    if (!same) {
        w->released = w->leaving = w->finished = w->digest_known = w->ready = w->serving = false;
        w->noticed = w->goes = false;
        w->pool[0] = w->machine[0] = 0;
        w->came = turn->now;
        w->leave_began = 0;
        w->listed = w->list_asked = w->asked_idly = w->list_is_old = false;
        w->listed_at = w->loads = 0;
        w->list.folder[0] = 0;
        w->beside = (struct rdzv_beside){0};
        w->rank = -1;
        w->old_rank = INT_MAX;
        w->began = (struct msg_generation){0};
        w->slowness = 0;
        w->stopped_round = -1;
        if (st->settings.unsupervised) { /* it may be another machine */
            w->trouble.times = w->writing.times = 0;
            w->named_source.steps = 0;
            rdzv_pairs_another_process(st, h->worker);
        }
    }
    w->attempt = h->attempt;
    w->incarnation = h->incarnation;
    RM_ASSERT(same || (w->rank < 0 && w->presence == ABSENT),
              "another process of worker %d takes over rank %d", h->worker, w->rank);
}

static void take_over(const struct rdzv *st, struct rdzv_worker *w, const struct msg_hello *h)
{
    RM_ASSERT(h->worker == rdzv_index(st, w), "a hello of worker %d is worker %d's", h->worker,
              rdzv_index(st, w));
    if (w->trainer_pid != h->trainer_pid)
        w->asked = RM_NEVER;
    w->agent_pid = h->agent_pid;
    w->trainer_pid = h->trainer_pid;
    w->ring = h->ring;
    w->phase = h->phase;
    if (h->phase == PHASE_READY || h->phase == PHASE_TRAINING)
        w->began = h->ring;
    w->state = rdzv_vouched(st, w, h->ring, &h->state);
    w->runs = h->phase == PHASE_TRAINING;
    if (h->fingerprint[0]) /* also where that trainer is gone: it may have made what is told of yet */
        text_copy(w->fingerprint, sizeof w->fingerprint, h->fingerprint);
    if (h->trainer_pid) {
        text_copy(w->address, sizeof w->address, h->address);
        text_copy(w->probe, sizeof w->probe, h->probe);
        text_copy(w->data_sha256, sizeof w->data_sha256, h->data_sha256);
    }
}

/* A member says hello again: it may have missed what was under way when its connection was cut. */
static void member_again(const struct turn *turn, struct rdzv_worker *w, const struct msg_hello *h,
                         bool same_trainer)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(w->rank >= 0 && w->presence == PRESENT, "worker %d, of rank %d, says hello again", h->worker,
              w->rank);
    bool inside = same_trainer && generation_compare(h->ring, st->ring) == 0 &&
                  (h->phase == PHASE_FORMING || h->phase == PHASE_READY || h->phase == PHASE_TRAINING);
    bool form_missed = same_trainer && generation_compare(h->ring, st->ring) < 0;
    if (st->state == RDZV_FORMING && form_missed) {
        rdzv_send_one(turn, w, MSG_FORM)->form = st->form;
    } else if (inside && rdzv_ring_runs(st)) {
        if (h->phase == PHASE_READY)
            rdzv_send_one(turn, w, MSG_GO);
        rdzv_interval_again(turn, w);
    } else if (!inside && (rdzv_ring_runs(st) || st->state == RDZV_FORMING) &&
               !(st->state == RDZV_QUIESCING && same_trainer)) {
        bool over = st->settings.program && same_trainer && st->state == RDZV_TRAINING;
        if (over && generation_compare(h->ring, st->ring) == 0)
            rdzv_program_over(turn, w);
        else
            rdzv_ring_without(turn, w, CAUSE_TRAINER_EXIT);
    }
}

void rdzv_hello(const struct turn *turn, int conn, const struct msg_hello *h)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(conn >= 0 && h->worker >= 0 && h->worker < RM_WORKERS_MAX,
              "a hello of worker %d by connection %d", h->worker, conn);
    struct rdzv_worker *w = &st->worker[h->worker];
    struct msg_abandon no = {0};
    bool outdated = is_outdated(st, w, h, no.why, sizeof no.why);
    if (outdated)
        no.exit_code = EXIT_MACHINE;
    if (outdated || rdzv_is_unfit(turn, h, &no)) {
        if (!outdated)
            rdzv_tell_worker(turn, TELL_WORKER_REFUSED, h->worker, no.why);
        refuse_worker(turn, conn, &no);
        return;
    }
    accept_identity(turn, w, conn, h);
    bool first = w->presence != PRESENT || w->conn != conn;
    bool same_trainer = w->trainer_pid == h->trainer_pid && h->trainer_pid;
    bool newcomer = h->trainer_pid && !same_trainer;
    w->presence = PRESENT;
    w->conn = conn;
    w->heard = turn->now;
    if (h->ring.term < st->settings.term) /* of its own term a coordinator counts itself who was told to go */
        st->begun = h->begun > st->begun ? h->begun : st->begun;
    take_over(st, w, h);
    rdzv_listen_hello(w, same_trainer);
    if (newcomer) {
        w->listened = 0;
        w->beside.failed = false;
        w->joined = st->arrived = turn->now;
        rdzv_probe_newcomer(turn, h->worker);
    }
    if (first) {
        rdzv_send_one(turn, w, MSG_WELCOME);
        rdzv_forget_publisher(st, w); /* what it was told on an older connection may be lost */
        w->list_asked = false;
    }
    if (w->released) {
        rdzv_send_one(turn, w, MSG_RELEASE);
        return;
    }
    if (st->state == RDZV_RECOVERING)
        rdzv_recover_hello(st, h);
    else if (w->rank >= 0)
        member_again(turn, w, h, same_trainer);
    if (st->state == RDZV_GATHERING || st->state == RDZV_QUIESCING || st->state == RDZV_SAVING) {
        if (!rdzv_listens_on(w))
            rdzv_stop_one(turn, w);
    } else {
        rdzv_program_again(turn, w);
    }
    if (st->state == RDZV_SAVING)
        rdzv_save_resend(turn, w);
}
