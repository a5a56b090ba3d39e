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
}

static void check_worker(const struct rdzv *st, int i)
{
    const struct rdzv_worker *w = &st->worker[i];
    RM_ASSERT(w->rank < st->world, "worker %d has rank %d of %d", i, w->rank, st->world);
    RM_ASSERT(w->rank < 0 || st->member[w->rank] == i, "worker %d has rank %d, which is worker %d's", i,
              w->rank, w->rank < 0 ? -1 : st->member[w->rank]);
    RM_ASSERT(w->presence != PRESENT || w->conn >= 0, "worker %d is here without a connection", i);
    RM_ASSERT(w->presence != ABSENT || w->conn < 0, "worker %d is not here, and has connection %d", i,
              w->conn);
    RM_ASSERT(w->trouble.times >= 0 && w->trouble.where < FAULT_PLACES, "worker %d failed %d times", i,
              w->trouble.times);
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

void rdzv_check_invariants(const struct rdzv *st)
{
    check_ring(st);
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        check_worker(st, i);
    check_collections(st);
    RM_ASSERT(st->state != RDZV_SAVING || st->save.count > 0, "step %" PRId64 " is saved by nobody",
              st->save.step);
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
