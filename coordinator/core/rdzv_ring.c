/* A ring in messages and events: its members, that it is formed, and how fast it is. */
#include "coordinator/core/rdzv_ring.h"

#include <limits.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_states.h"

void rdzv_fill_member(const struct rdzv *st, struct msg_member *m, int worker)
{
    RM_ASSERT(worker >= 0 && worker < RM_WORKERS_MAX, "a member by the number %d", worker);
    const struct rdzv_worker *w = &st->worker[worker];
    m->worker = worker;
    m->attempt = w->attempt;
    m->incarnation = w->incarnation;
    text_copy(m->address, sizeof m->address, w->address);
}

void rdzv_tell_formed(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->world > 0, "a ring of nobody is formed, in state %s", rdzv_state_name(st->state));
    for (int r = 0; r < st->world; r++) {
        struct rdzv_worker *w = &st->worker[st->member[r]];
        if (w->old_rank == INT_MAX && st->trained)
            rdzv_tell_worker(turn, TELL_WORKER_JOINED, st->member[r], "WorkerJoined");
        if (w->act == CAUSE_WORKER_JOINED)
            w->act = CAUSE_NONE;
    }
    struct rdzv_tell *t = rdzv_tell(turn, TELL_RING_FORMED);
    t->generation = st->ring;
    t->world = t->members = st->world;
    t->member = arena_take(&turn->out->arena, (size_t)st->world * sizeof *t->member);
    t->step = st->resume.held ? st->resume.step : 0;
    for (int r = 0; r < st->world; r++) {
        const struct rdzv_worker *w = &st->worker[st->member[r]];
        t->member[r] = (struct rdzv_told_member){st->member[r], w->agent_pid, w->trainer_pid};
    }
}

/* The mean begins anew with another size, or the time left would for dozens of steps be that of the ring
 * before. A step says little, ten say enough. */
void rdzv_ring_paced(struct rdzv *st, double took)
{
    enum { ENOUGH = 10 };
    RM_ASSERT(took >= 0, "a step of %g ns", took);
    if (st->paced.world != st->world) {
        st->paced.world = st->world;
        st->paced.steps = 0;
    }
    st->paced.steps += st->paced.steps < ENOUGH;
    st->step_time += (took - st->step_time) / st->paced.steps;
    RM_ASSERT(st->step_time >= 0 && st->paced.steps >= 1, "%d steps of %g ns", st->paced.steps,
              st->step_time);
}

bool rdzv_ring_has_pace(const struct rdzv *st)
{
    return st->paced.steps > 0 && st->paced.world == st->world;
}
