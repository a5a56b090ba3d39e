/* A ring that stops: at a step boundary or at once, and without whom. The three call each other, as who is
 * lost stops the ring, and the stop of a ring is the end of those whose connection is gone. */
#include "coordinator/core/rdzv_stop.h"

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_bridge.h"
#include "coordinator/core/rdzv_listening.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_recovery.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_vouch.h"
#include "coordinator/core/rdzv_who.h"

/* Who has to answer before the round is over: the members, and who gives them its state, as it may be named
 * as the one that is not reached; at a planned stop also those who want to join. */
static bool has_to_stop(const struct rdzv_worker *w, enum msg_stop_at at)
{
    RM_ASSERT(at == STOP_NOW || at == STOP_BOUNDARY, "rank %d stops at %d", w->rank, (int)at);
    if (!w->trainer_pid || w->released)
        return false;
    if (w->rank >= 0 || w->serving)
        return w->presence != ABSENT;
    return at == STOP_BOUNDARY && w->presence == PRESENT && !w->leaving && !rdzv_listens_on(w);
}

void rdzv_stop_asked(struct rdzv_worker *w, rm_time now)
{
    if (w->asked == RM_NEVER)
        w->asked = now; /* asked again: it has owed the answer since then */
    RM_ASSERT(w->asked <= now, "a stop is asked for %lld ns from now", (long long)(w->asked - now));
}

/* Those who are left of a sudden loss wait in a collective, and never run their handler of SIGTERM. */
static const rm_time sudden_grace = RM_S;
/* To kill what has not ended, to say so and to be let go, before somebody else kills all of the pod. */
static const rm_time reserve = RM_S;

rm_time rdzv_stop_within(const struct rdzv *st, rm_time now)
{
    rm_time at = RM_NEVER;
    if (!st->settings.program)
        return 0;
    if (st->stop_sudden)
        return sudden_grace;
    for (int r = 0; r < st->world; r++) {
        const struct rdzv_worker *w = &st->worker[st->member[r]];
        if (w->leaving && w->rank >= 0)
            at = rm_earlier(at, w->leave_until);
    }
    if (at == RM_NEVER)
        return 0;
    rm_time left = at - now;
    if (left <= 0) /* and yet it is there: what was told was not its end */
        return sudden_grace;
    left -= rm_earlier(reserve, left / 2);
    RM_ASSERT(left > 0, "%lld ns to stop within", (long long)left);
    return left;
}

static struct message *begin_stop(const struct turn *turn, enum msg_stop_at at)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->round >= 1, "a stop of round %lld", (long long)st->round);
    struct message *m = rdzv_send(turn, MSG_STOP);
    m->stop.round = st->round;
    m->stop.at = at;
    m->stop.within = rdzv_stop_within(st, turn->now);
    return m;
}

static void send_stops(const struct turn *turn, bool members, enum msg_stop_at at)
{
    struct rdzv *st = turn->st;
    begin_stop(turn, at);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (w->presence != PRESENT || w->released || (w->rank >= 0) != members || rdzv_listens_on(w))
            continue;
        rdzv_send_to(turn, w);
        if (at == STOP_NOW)
            rdzv_stop_asked(w, turn->now);
    }
}

void rdzv_stop_one(const struct turn *turn, struct rdzv_worker *w)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(w->presence == PRESENT, "worker %d is told to stop, and is not here", rdzv_index(st, w));
    struct message *m = rdzv_send_one(turn, w, MSG_STOP);
    m->stop.round = st->round;
    m->stop.at = w->rank >= 0 && st->state == RDZV_QUIESCING ? st->stop_at : STOP_NOW;
    m->stop.within = rdzv_stop_within(st, turn->now);
    if (m->stop.at == STOP_NOW && w->stopped_round != st->round)
        rdzv_stop_asked(w, turn->now);
}

void rdzv_stop_sooner(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    if (!st->settings.program || st->state != RDZV_QUIESCING || st->stop_sudden)
        return;
    begin_stop(turn, st->stop_at);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (w->presence == PRESENT && w->must_stop && w->rank >= 0)
            rdzv_send_to(turn, w);
    }
}

static void quiesce(const struct turn *turn, enum msg_stop_at at, bool sudden)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state != RDZV_FINISHED && st->state != RDZV_FAILED, "a ring is stopped in state %s",
              rdzv_state_name(st->state));
    if (st->state != RDZV_QUIESCING)
        st->program.told_to_stop = turn->now;
    st->round++;
    st->stop_at = at;
    st->stop_sudden = sudden;
    rdzv_move(turn, RDZV_QUIESCING);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        w->must_stop = has_to_stop(w, at);
        w->ready = false;
    }
    send_stops(turn, true, at);
    send_stops(turn, false, STOP_NOW);
    for (int i = 0; at == STOP_NOW && !st->settings.program && i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (w->presence == AWAY)
            rdzv_lose(turn, w, "its connection ended, and the ring with it");
    }
}

void rdzv_quiesce(const struct turn *turn, enum msg_stop_at at)
{
    quiesce(turn, at, at == STOP_NOW);
}

void rdzv_quiesce_for_all(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    quiesce(turn, STOP_NOW, true);
    RM_ASSERT(st->state == RDZV_QUIESCING, "all are waited for in state %s", rdzv_state_name(st->state));
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        bool here = w->presence == PRESENT && w->trainer_pid && !w->released && !w->leaving;
        w->must_stop = w->must_stop || here;
        if (!here || !rdzv_listens_on(w))
            continue;
        rdzv_stop_one(turn, w);        /* was left out of what was sent to all, */
        w->listening = LISTENING_CANT; /* and gets what it lacks as the next ring is formed */
    }
}

void rdzv_quiesce_on(const struct turn *turn)
{
    quiesce(turn, STOP_NOW, false);
}

void rdzv_stopped(const struct turn *turn, struct rdzv_worker *w, const struct message *m)
{
    struct rdzv *st = turn->st;
    const struct msg_stopped *s = &m->stopped;
    w->asked = s->round == st->round || w->asked == RM_NEVER ? RM_NEVER : turn->now;
    w->runs = false;
    rdzv_listen_stopped(w);
    if (st->state == RDZV_TRAINING)
        rdzv_listen_trains(w);   /* the others have gone on without it */
    if (s->round != st->round) { /* of an older round: says nothing, unless a predecessor stopped the ring */
        w->phase = PHASE_STOPPED;
        if (st->found && st->state == RDZV_TRAINING && w->rank >= 0) {
            rdzv_recovery_begin(turn, CAUSE_RING_ERROR, NULL);
            rdzv_quiesce_on(turn);
        }
        return;
    }
    w->stopped_round = s->round;
    RM_ASSERT(w->presence == PRESENT, "worker %d stopped, and is not here", rdzv_index(st, w));
    w->must_stop = false;
    w->state = rdzv_vouched(st, w, m->generation, &s->state);
    w->update_step = w->state.held ? s->update_step : -1;
    w->discarded = s->discarded;
    w->lanes = w->state.held ? s->lanes : (struct lane_set){0};
    if (s->trainer_pid)
        w->trainer_pid = s->trainer_pid;
    bool late = st->state == RDZV_FORMING || st->state == RDZV_TRAINING; /* what it loses was counted then */
    bool counts = w->state.held || generation_compare(m->generation, st->ring) == 0; /* else that was, too */
    if (!late && counts && s->state.held && s->state.step > st->known_step)
        st->known_step = s->state.step;
}

/* ---- going ---- */

/* The ring can't go on with this worker in it. */
void rdzv_ring_without(const struct turn *turn, struct rdzv_worker *w, enum cause cause)
{
    struct rdzv *st = turn->st;
    bool member = w->rank >= 0;
    w->ready = w->finished = w->must_stop = false;
    if (!member || (st->state != RDZV_TRAINING && st->state != RDZV_FORMING && st->state != RDZV_QUIESCING))
        return;
    w->rank = -1;
    rdzv_recovery_begin(turn, cause, w);
    bool hangs = st->settings.program && !st->stop_sudden; /* those who are left, and were given time */
    if (!rdzv_stops_now(st) || hangs)
        rdzv_quiesce(turn, STOP_NOW);
    RM_ASSERT(!w->must_stop && w->rank < 0, "worker %d is no member any more, and rank %d", rdzv_index(st, w),
              w->rank);
}

void rdzv_lose(const struct turn *turn, struct rdzv_worker *w, const char *why)
{
    struct rdzv *st = turn->st;
    if (w->presence == ABSENT)
        return;
    bool silent = w->released;
    rdzv_close_conn(turn, w->conn);
    w->presence = ABSENT;
    st->lost++;
    w->conn = -1;
    w->stopped_round = -1;
    w->asked = RM_NEVER;
    w->serving = false;
    w->listening = LISTENING_NOT;
    w->listed = w->list_asked = false;
    rdzv_forget_publisher(st, w);
    if (!silent && w->rank >= 0)
        rdzv_tell_worker(turn, TELL_WORKER_LOST, rdzv_index(st, w), why);
    if (!silent)
        rdzv_say(st, "worker %d is lost: %s", rdzv_index(st, w), why);
    rdzv_ring_without(turn, w, CAUSE_WORKER_LOST);
    w->rank = -1;
    RM_ASSERT(!w->must_stop && w->conn < 0, "worker %d is lost, and its answer is waited for (connection %d)",
              rdzv_index(st, w), w->conn);
}
