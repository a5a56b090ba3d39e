/* The way back for who was left out because it and others can't reach each other.
 *
 * While the ring trains, and has made a step, its trainer calls the data ports of those whom it did not reach
 * and of the two that would be its neighbours, and they call its own: handshakes that are good for nothing
 * else, off the compute threads. Only when all of them were answered may it join. One is tried at a time;
 * whom it did not help is tried again after twice the pause, and while the process lives a pause shrinks only
 * by what it is capped at, so that one whose connections come and go does not stop the ring for ever. Who was
 * left out after a handshake had been answered may be answered again and train no better, which costs a ring:
 * it is tried ever more seldom. */
#include "coordinator/core/rdzv_probe.h"

#include <stdio.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_pairs.h"
#include "coordinator/core/rdzv_ring.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_who.h"

enum { ANSWERS_COUNT_LESS = 12 };

static const rm_time first_pause = 10 * RM_S, longest_pause = 300 * RM_S, answer_patience = 15 * RM_S;

static void later(const struct turn *turn, int worker)
{
    struct rdzv *st = turn->st;
    struct rdzv_worker *w = &st->worker[worker];
    rm_time first = st->settings.probe_first ? st->settings.probe_first : first_pause;
    rm_time most = st->settings.probe_most ? st->settings.probe_most : longest_pause;
    most *= rdzv_pairs_answer_only(st, worker) ? ANSWERS_COUNT_LESS : 1;
    w->probe_pause = w->probe_pause ? 2 * w->probe_pause : first;
    w->probe_pause = w->probe_pause < most ? w->probe_pause : most;
    w->probe_at = turn->now + w->probe_pause;
    RM_ASSERT(w->probe_pause > 0 && w->probe_pause <= most, "worker %d is tried again after %lld ns", worker,
              (long long)w->probe_pause);
}

static void tell_left_out(const struct turn *turn, int worker)
{
    struct rdzv *st = turn->st;
    struct rdzv_worker *w = &st->worker[worker];
    int other = set_first(rdzv_pairs_in_ring(st, worker));
    RM_ASSERT(other >= 0 && w->rank < 0, "worker %d, of rank %d, is left out for nobody", worker, w->rank);
    text_print_ends(w->left_out, sizeof w->left_out,
                    "it and worker %d can't reach each other (%s); the others go on without it, and it comes "
                    "back once they do",
                    other, st->pairs.why);
    rdzv_tell_worker(turn, TELL_WORKER_LEFT_OUT, worker, w->left_out);
    later(turn, worker);
}

void rdzv_probe_left_out(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        bool out_of_it = rdzv_pairs_bar(st, i) && rdzv_candidate(st, w);
        if (!out_of_it)
            w->left_out[0] = 0;
        else if (!w->left_out[0])
            tell_left_out(turn, i);
    }
}

static bool is_waiting(const struct rdzv *st, int worker)
{
    RM_ASSERT(worker >= 0 && worker < RM_WORKERS_MAX, "worker %d waits to be tried", worker);
    const struct rdzv_worker *w = &st->worker[worker];
    return w->presence == PRESENT && w->trainer_pid && !w->leaving && !w->released &&
           rdzv_pairs_bar(st, worker);
}

/* A new process may stand where others reach it, and the sooner that is known the better. */
void rdzv_probe_newcomer(const struct turn *turn, int worker)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(worker >= 0 && worker < RM_WORKERS_MAX, "worker %d is new", worker);
    st->pairs.blamed[worker] = 0;
    st->worker[worker].probe_pause = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        if (i == worker || rdzv_pairs_are_apart(st, i, worker))
            st->worker[i].probe_at = turn->now;
}

/* ---- asking ---- */

static void ask_probe(const struct turn *turn, struct worker_set who, struct worker_set to_call)
{
    struct rdzv *st = turn->st;
    struct message *m = rdzv_send(turn, MSG_PROBE);
    m->probe.id = st->probe.id;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        if (set_has(to_call, i))
            rdzv_fill_member(st, &m->probe.member[m->probe.count++], i);
        if (set_has(who, i))
            rdzv_send_to(turn, &st->worker[i]);
    }
    RM_ASSERT(m->probe.count > 0 && m->probe.count <= RM_WORKERS_MAX, "%d are to be called", m->probe.count);
}

static void begin_probe(const struct turn *turn, int worker)
{
    struct rdzv *st = turn->st;
    struct rdzv_probe *p = &st->probe;
    RM_ASSERT(!p->on, "workers %d and %d are tried at once", p->worker, worker);
    RM_ASSERT(st->world > 0 && st->worker[worker].rank < 0,
              "worker %d is tried beside a ring of %d, as rank %d", worker, st->world,
              st->worker[worker].rank);
    p->on = true;
    p->worker = worker;
    p->id++;
    p->until = turn->now + answer_patience;
    p->with = rdzv_pairs_in_ring(st, worker);
    set_add(&p->with, st->member[0]);
    set_add(&p->with, st->member[st->world - 1]);
    p->awaited = set_union(p->with, set_of(worker));
    ask_probe(turn, set_of(worker), p->with);
    ask_probe(turn, p->with, set_of(worker));
}

static void end_in_vain(const struct turn *turn, const char *why)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->probe.on, "nobody is tried, and it is in vain: %s", why);
    st->probe.on = false;
    later(turn, st->probe.worker);
    rdzv_say(st, "worker %d stays left out: %s; tried again in %.0f s", st->probe.worker, why,
             (double)st->worker[st->probe.worker].probe_pause / RM_S);
}

void rdzv_probed(const struct turn *turn, const struct rdzv_worker *w, const struct msg_probed *m)
{
    struct rdzv *st = turn->st;
    struct rdzv_probe *p = &st->probe;
    char why[MSG_DETAIL_MAX];
    int by = rdzv_index(st, w);
    if (!p->on || m->id != p->id || !set_has(p->awaited, by))
        return;
    if (m->peer >= 0) {
        text_print_ends(why, sizeof why, "worker %d can't reach worker %d (%s)", by, m->peer,
                        rdzv_reason(m->why));
        end_in_vain(turn, why);
        return;
    }
    set_remove(&p->awaited, by);
    RM_ASSERT(set_is_empty(set_minus(p->awaited, set_union(p->with, set_of(p->worker)))),
              "worker %d is tried with %d, and others answer", p->worker, set_count(p->with));
    if (!set_is_empty(p->awaited))
        return;
    p->on = false;
    st->worker[p->worker].left_out[0] = 0; /* should it be so again, that is news, and takes longer */
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        if (set_has(p->with, i))
            rdzv_pairs_answered(st, p->worker, i);
    rdzv_say(st, "worker %d and the others reach each other again", p->worker);
}

void rdzv_settle_probes(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_TRAINING, "who was left out is tried in state %s",
              rdzv_state_name(st->state));
    if (st->probe.on && turn->now >= st->probe.until)
        end_in_vain(turn, "not all who were to try it answered");
    for (int i = 0; i < RM_WORKERS_MAX && !st->probe.on && st->pairs.stepped; i++)
        if (is_waiting(st, i) && turn->now >= st->worker[i].probe_at)
            begin_probe(turn, i);
}

rm_time rdzv_probe_at(const struct rdzv *st)
{
    rm_time at = RM_NEVER;
    if (st->probe.on)
        return st->probe.until;
    for (int i = 0; i < RM_WORKERS_MAX && st->pairs.stepped; i++)
        if (is_waiting(st, i) && st->worker[i].probe_at < at)
            at = st->worker[i].probe_at;
    return at;
}
