/* Tells newcomers to whom they listen, and takes them in once they hold what the others do. */
#include "coordinator/core/rdzv_listen.h"

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_bridge.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_ring.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_stop.h"
#include "coordinator/core/rdzv_who.h"

void rdzv_listen(const struct turn *turn, struct rdzv_worker *w)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(w->rank < 0 && st->world > 0, "worker %d listens to a ring of %d, as rank %d",
              rdzv_index(st, w), st->world, w->rank);
    struct message *m = rdzv_send(turn, MSG_LISTEN);
    for (int r = 0; r < st->world; r++)
        rdzv_fill_member(st, &m->listen.source[m->listen.sources_count++], st->member[r]);
    rdzv_send_to(turn, w);
    w->listening = LISTENING_NOW;
    w->listen_said = true;
    w->listens_since = turn->now;
    rdzv_say(st, "worker %d listens to %d workers until it holds their state", rdzv_index(st, w), st->world);
}

/* Where steps are made there is always something to hear: what a source gives in turns comes every few
 * seconds, and each step's words. One who hears nothing for so long is treated like any other newcomer, of
 * whom is known what to do where it does not answer. */
static const rm_time least_silence = 60 * RM_S;
enum { SILENT_STEPS = 10 };

static rm_time silent_at(const struct rdzv *st, const struct rdzv_worker *w)
{
    rm_time patience =
        rm_later(rm_later(least_silence, st->settings.form_timeout), SILENT_STEPS * st->median_step);
    bool listens = w->listening == LISTENING_NOW && w->listen_said && w->presence == PRESENT;
    rm_time since = rm_later(rm_later(w->turned, w->listens_since), st->state_since);
    return listens ? since + patience : RM_NEVER;
}

void rdzv_listen_settle(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_TRAINING, "who listens is looked at in state %s", rdzv_state_name(st->state));
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (turn->now < silent_at(st, w))
            continue;
        w->listening = LISTENING_CANT;
        rdzv_say(st, "worker %d has heard nothing for so long that it gets the state while all wait", i);
    }
}

void rdzv_listen_no_more(struct rdzv *st, struct rdzv_worker *w)
{
    RM_ASSERT(st->state == RDZV_TRAINING, "who listens gets the state in state %s",
              rdzv_state_name(st->state));
    if (w->listening != LISTENING_NOW || w->rank >= 0)
        return;
    w->listening = LISTENING_CANT;
    rdzv_say(st, "worker %d gets the state while all wait, as they will all go", rdzv_index(st, w));
}

rm_time rdzv_listen_until(const struct rdzv *st)
{
    rm_time at = RM_NEVER;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        at = rm_earlier(at, silent_at(st, &st->worker[i]));
    return at;
}

/* Who gives up while the others stop, or gather, was told nothing of that: it is one more who comes. */
static void join_those_who_stop(const struct turn *turn, struct rdzv_worker *w)
{
    struct rdzv *st = turn->st;
    bool stops = st->state == RDZV_QUIESCING || st->state == RDZV_GATHERING || st->state == RDZV_SAVING;
    RM_ASSERT(w->presence == PRESENT && w->listening == LISTENING_CANT, "worker %d gives up, and is not here",
              rdzv_index(st, w));
    if (!stops || w->released || w->stopped_round == st->round)
        return;
    w->must_stop = st->state == RDZV_QUIESCING && st->stop_at == STOP_BOUNDARY && !w->leaving;
    rdzv_stop_one(turn, w);
}

void rdzv_heard(const struct turn *turn, struct rdzv_worker *w, const struct msg_heard *m)
{
    struct rdzv *st = turn->st;
    if (w->listening != LISTENING_NOW)
        return; /* it was called in meanwhile */
    w->listening = m->state.held ? LISTENING_HOLDS : LISTENING_CANT;
    w->heard_at = turn->now;
    if (m->state.held)
        rdzv_say(st, "worker %d has heard all of step %lld", rdzv_index(st, w), (long long)m->state.step);
    else
        rdzv_say(st, "worker %d can't get the state while others train: %s", rdzv_index(st, w), m->why);
    if (!m->state.held)
        join_those_who_stop(turn, w);
}

static bool can_be_called(const struct rdzv *st, const struct rdzv_worker *w, enum rdzv_listening which)
{
    RM_ASSERT(which == LISTENING_NOW || which == LISTENING_HOLDS, "who is called in does not listen: %d",
              (int)which);
    bool there = w->presence == PRESENT && w->trainer_pid && !w->released && !w->leaving;
    return there && w->listening == which && w->rank < 0 && w->stopped_round != st->round &&
           w->asked == RM_NEVER;
}

bool rdzv_listen_holds(const struct rdzv *st)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (can_be_called(st, w, LISTENING_HOLDS) && !rdzv_held_back(st, w))
            return true;
    }
    return false;
}

static bool call_in(const struct turn *turn, enum rdzv_listening which)
{
    struct rdzv *st = turn->st;
    bool any = false;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (!can_be_called(st, w, which))
            continue;
        w->must_stop = st->state == RDZV_QUIESCING;
        rdzv_stop_one(turn, w);
        any = true;
    }
    return any;
}

/* Those who have told a step are gone, and nobody at rest holds it. */
static bool is_lost(const struct rdzv *st)
{
    struct msg_state best = rdzv_best_state(st);
    RM_ASSERT(st->told >= -1, "step %lld was told", (long long)st->told);
    return st->told > 0 && (!best.held || best.step < st->told);
}

bool rdzv_listen_is_over(const struct turn *turn, bool needed)
{
    const struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_QUIESCING || st->state == RDZV_GATHERING,
              "who listens is called in, round %lld", (long long)st->round);
    bool planned = st->state == RDZV_QUIESCING && st->stop_at == STOP_BOUNDARY;
    if ((planned || needed || is_lost(st)) && call_in(turn, LISTENING_HOLDS))
        return true;
    return needed && call_in(turn, LISTENING_NOW);
}
