/* What holds between two steps of the coordinator, whatever was told to it: checked after each of them, in
 * every build. A coordinator in an impossible state would name wrong sources, or nobody; a dead one has a
 * successor. */
#include "coordinator/core/rdzv_invariants.h"

#include <inttypes.h>

#include "common/base/assert.h"

static void check_ring(const struct rdzv *st)
{
    struct worker_set seen = {0};
    RM_ASSERT(st->world >= 0 && st->world <= RM_WORKERS_MAX, "a ring of %d", st->world);
    for (int r = 0; r < st->world; r++) {
        int w = st->member[r];
        RM_ASSERT(w >= 0 && w < RM_WORKERS_MAX, "rank %d is worker %d", r, w);
        RM_ASSERT(!set_has(seen, w), "worker %d has two ranks, %d is one", w, r);
        set_add(&seen, w);
    }
    bool formed = st->state == RDZV_FORMING || st->state == RDZV_TRAINING;
    RM_ASSERT(!formed || st->world > 0, "a ring of nobody, in state %d", (int)st->state);
    for (int r = 0; formed && r < st->world; r++)
        RM_ASSERT(st->worker[st->member[r]].rank == r, "worker %d is rank %d, and has %d, in state %d",
                  st->member[r], r, st->worker[st->member[r]].rank, (int)st->state);
}

/* Who has not said hello yet has nothing that could be wrong. */
static bool is_known(const struct rdzv_worker *w, int i)
{
    bool known = w->attempt >= 0;
    RM_ASSERT(known || (w->presence == ABSENT && w->rank < 0 && w->conn < 0),
              "worker %d never said hello, and is rank %d", i, w->rank);
    return known;
}

static void check_worker(const struct rdzv *st, int i)
{
    const struct rdzv_worker *w = &st->worker[i];
    if (!is_known(w, i))
        return;
    RM_ASSERT(w->rank < st->world, "worker %d has rank %d of %d", i, w->rank, st->world);
    RM_ASSERT(w->rank < 0 || st->member[w->rank] == i, "worker %d has rank %d, which is worker %d's", i,
              w->rank, w->rank < 0 ? -1 : st->member[w->rank]);
    RM_ASSERT(w->presence != PRESENT || w->conn >= 0, "worker %d is here without a connection", i);
    RM_ASSERT(w->presence != ABSENT || w->conn < 0, "worker %d is not here, and has connection %d", i,
              w->conn);
    RM_ASSERT(w->presence != ABSENT || (w->rank < 0 && !w->must_stop && !w->listed && !w->serving),
              "worker %d is not here, and is waited for as rank %d", i, w->rank);
    RM_ASSERT(w->rank < 0 || !(w->serving || w->quarantine[0]), "worker %d, of rank %d, is none of the ring",
              i, w->rank);
    RM_ASSERT(w->stopped_round <= st->round, "worker %d stopped in round %" PRId64 " of %" PRId64, i,
              w->stopped_round, st->round);
    RM_ASSERT(!w->goes || (!w->leaving && w->leave_until != RM_NEVER), "worker %d leaves, and trains on", i);
    RM_ASSERT(!w->quarantine[0] || w->expected < 0, "worker %d is in quarantine, and attempt %d expected", i,
              w->expected);
    RM_ASSERT(w->trouble.times >= 0 && w->trouble.where < FAULT_PLACES, "worker %d failed %d times", i,
              w->trouble.times);
    RM_ASSERT(w->writing.times >= 0 && w->writing.where < FAULT_PLACES, "worker %d failed %d times to write",
              i, w->writing.times);
}

static void check_collections(const struct rdzv *st)
{
    int published = 0;
    for (int i = 0; i < COLLECTIONS; i++) {
        const struct rdzv_collection *c = &st->collection[i];
        if (!c->used)
            continue;
        RM_ASSERT(c->have >= 0 && c->have <= c->parts && c->parts <= RM_WORKERS_MAX,
                  "%d of %d parts of step %" PRId64, c->have, c->parts, c->publish.step);
        published += c->publisher >= 0;
    }
    RM_ASSERT(published <= 1, "%d checkpoints are being published at once", published);
}

static void check_save(const struct rdzv *st)
{
    struct worker_set writers = {0};
    RM_ASSERT(st->save.count > 0 && st->save.count <= RM_WORKERS_MAX,
              "step %" PRId64 " is saved by %d workers", st->save.step, st->save.count);
    for (int i = 0; i < st->save.count; i++) {
        RM_ASSERT(!set_has(writers, st->save.worker[i]), "worker %d has two parts of step %" PRId64,
                  st->save.worker[i], st->save.step);
        set_add(&writers, st->save.worker[i]);
    }
    RM_ASSERT(st->save_since <= st->accounted, "step %" PRId64 " is saved from %" PRId64 " ns on",
              st->save.step, st->save_since);
}

static void check_probe(const struct rdzv *st)
{
    const struct rdzv_probe *p = &st->probe;
    struct worker_set all = set_union(p->with, set_of(p->worker));
    RM_ASSERT(!set_has(p->with, p->worker) && set_is_empty(set_minus(p->awaited, all)),
              "worker %d is tried with %d others, and %d answers are awaited", p->worker, set_count(p->with),
              set_count(p->awaited));
}

static rm_time all_of(const struct rdzv_goodput *g)
{
    return g->productive + g->checkpoint + g->recovery + g->waiting + g->rework;
}

/* Each moment is of one class: under this coordinator, and under the one before it where that said. */
static void check_goodput(const struct rdzv *st)
{
    const struct rdzv_predecessor *p = &st->settings.predecessor;
    bool restored = p->given && p->spent_at > 0 && p->spent_at <= st->started;
    rm_time age = st->accounted - (restored ? p->spent_at : st->started);
    rm_time spent = all_of(&st->goodput) - (restored ? all_of(&p->spent) : 0);
    RM_ASSERT(spent == age, "%" PRId64 " ns of %" PRId64 " are accounted for", spent, age);
}

static void check_times(const struct rdzv *st)
{
    rm_time newest = rm_later(rm_later(st->state_since, st->turned), rm_later(st->arrived, st->saved_at));
    RM_ASSERT(newest <= st->accounted, "something happened %" PRId64 " ns from now", newest - st->accounted);
    RM_ASSERT(st->told >= -1 && st->saved >= -1 && st->evaluated >= -1 && st->round >= 1,
              "round %" PRId64 ", step %" PRId64 " is told, %" PRId64 " saved", st->round, st->told,
              st->saved);
}

void rdzv_check_invariants(const struct rdzv *st)
{
    check_ring(st);
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        check_worker(st, i);
    check_collections(st);
    check_goodput(st);
    check_times(st);
    if (st->state == RDZV_SAVING)
        check_save(st);
    if (st->probe.on)
        check_probe(st);
    RM_ASSERT(st->failures <= FAILURES_KEPT && st->refused_count <= REFUSED_KEPT, "%d failures, %d refused",
              st->failures, st->refused_count);
}

void rdzv_check_settings(const struct rdzv_settings *s)
{
    RM_ASSERT(s->term >= 1 && s->steps >= 1 && s->lanes >= 1, "term %" PRId64 ", %" PRId64 " steps, %d lanes",
              s->term, s->steps, s->lanes);
    RM_ASSERT(s->workers_min >= 1 && s->workers_min <= s->workers_max && s->workers_max <= RM_WORKERS_MAX,
              "%d to %d workers", s->workers_min, s->workers_max);
    RM_ASSERT(s->join_window > 0 && s->heartbeat > 0 && s->lost_after > 0 && s->form_timeout > 0 &&
                  s->start_timeout > 0,
              "heartbeat %" PRId64 " ns, lostAfter %" PRId64 " ns", s->heartbeat, s->lost_after);
}
