/* Steps and evaluations, told once. */
#include "coordinator/core/rdzv_progress.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "common/base/assert.h"
#include "common/base/str.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_hang.h"
#include "coordinator/core/rdzv_interval.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_pairs.h"
#include "coordinator/core/rdzv_recovery.h"
#include "coordinator/core/rdzv_ring.h"
#include "coordinator/core/rdzv_trouble.h"
#include "coordinator/core/rdzv_vouch.h"

/* Actions that the rest of a step may make: the end tells up to three things of each worker. */
enum { LEFT_FOR_OTHERS = 5 * RM_WORKERS_MAX };

static double pace_of(const struct msg_progress *p)
{
    double seconds = (double)p->step_time / RM_S;
    return seconds > 0 ? (double)p->tokens / seconds : 0;
}

/* What was heard of it before others' words of the steps before it; NAN: nothing. */
static double heard_of(const struct rdzv *st, int64_t step)
{
    RM_ASSERT(step >= 0, "step %lld is heard of", (long long)step);
    const struct rdzv_foretold *f = &st->foretold[step % FORETOLD_KEPT];
    return step > 0 && f->step == step ? f->loss : NAN;
}

/* p NULL: nobody who is alive says more of it. */
static void tell_step(const struct turn *turn, int64_t step, const struct msg_progress *p)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(step == st->told + 1, "step %lld is told behind step %lld", (long long)step,
              (long long)st->told);
    struct rdzv_tell *t = rdzv_tell(turn, TELL_STEP);
    t->step = step;
    t->loss = p && p->loss_known ? p->loss : heard_of(st, step);
    t->numbers = p ? p->numbers : msg_numbers_unknown();
    t->pace = p ? pace_of(p) : 0;
    t->samples = st->settings.brought;
    t->world = st->world;
    st->told = step;
    st->loss = t->loss;
    st->numbers = t->numbers;
    st->tokens_told = rm_sum(st->tokens_told, st->tokens); /* all steps have as many */
}

/* Steps whose losses nobody alive can tell still appear, in their place. So that one call never fills the
 * list of actions, a gap of many is told in as many calls as it takes; progress goes on meanwhile. */
void rdzv_told_up_to(const struct turn *turn, int64_t step)
{
    struct rdzv *st = turn->st;
    while (st->told < step && turn->out->count < RDZV_ACTIONS_MAX - LEFT_FOR_OTHERS)
        tell_step(turn, st->told + 1, NULL);
    RM_ASSERT(st->told >= step || turn->out->count >= RDZV_ACTIONS_MAX - LEFT_FOR_OTHERS,
              "step %lld is told, of %lld", (long long)st->told, (long long)step);
}

/* Before anything is told to be complete every step is. False: not yet; the next call goes on. */
bool rdzv_all_told(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->told >= -1, "step %lld was told", (long long)st->told);
    rdzv_told_up_to(turn, st->settings.steps);
    return st->told >= st->settings.steps;
}

/* Of a ring that broke a step may be told only now: it counts all the same. */
static void forming_worked(const struct turn *turn, const struct message *m)
{
    struct rdzv *st = turn->st;
    bool works = st->state == RDZV_TRAINING || st->state == RDZV_QUIESCING;
    if (generation_compare(m->generation, st->ring) != 0 || !works)
        return;
    st->forming_failures = 0;
    if (m->progress.step > (st->resume.held ? st->resume.step : 0))
        rdzv_pairs_stepped(st);
    if (st->state != RDZV_TRAINING)
        return;
    rdzv_trouble_step(st);
    if (st->recovery.formed && m->progress.step > st->recovery.resume_step)
        rdzv_recovery_done(turn);
}

/* Once for each step and worker: what is not acknowledged in time is told again. */
static void count_data_wait(struct rdzv *st, struct rdzv_worker *w, const struct msg_progress *p)
{
    if (p->step <= w->waited)
        return;
    w->waited = p->step;
    st->data_wait = rm_sum(st->data_wait, p->data_wait);
}

/* A predecessor told it, or one told it who had it from a state. */
static void learn_of_told(struct rdzv *st, const struct msg_progress *p)
{
    if (p->step != st->told)
        return;
    if (p->loss_known)
        st->loss = p->loss;
    if (!isnan(p->numbers.norm))
        st->numbers = p->numbers;
}

/* Of a step that was only taken over nothing is known; what is told again says nothing of now. */
static void hear_pace(const struct turn *turn, struct rdzv_worker *w, const struct msg_progress *p)
{
    static const char *const causes[SLOW_BYS] = {[SLOW_BY_UNKNOWN] = "",
                                                 [SLOW_BY_CPU_LIMIT] = ": its CPU limit holds it up",
                                                 [SLOW_BY_STOLEN_TIME] =
                                                     ": its machine's host gives processors to others"};
    char why[MSG_DETAIL_MAX];
    RM_ASSERT(p->pace.by >= 0 && p->pace.by < SLOW_BYS, "worker %d is slow by %d", rdzv_index(turn->st, w),
              (int)p->pace.by);
    bool known = w->paced == w->incarnation && w->pace.slow;
    bool begins = p->pace.slow > 0 && !known, again = w->state.held && p->step <= w->state.step;
    if (p->step_time <= 0 || again)
        return;
    w->pace = p->pace;
    w->paced = w->incarnation;
    if (!begins)
        return;
    snprintf(why, sizeof why, "a lane takes it %.1f times as long as most%s", p->pace.slow / 100.0,
             causes[p->pace.by]);
    rdzv_tell_worker(turn, TELL_WORKER_SLOW, rdzv_index(turn->st, w), why);
}

/* All have the same way in one step, and why it is not the other one is told by those who know: what they
 * say stays until words go by it, or until there is another ring. */
static void learn_of_transport(struct rdzv *st, const struct msg_progress *p)
{
    struct rdzv_transport *t = &st->transport;
    if (!st->settings.gpus)
        return;
    if (generation_compare(t->ring, st->ring) != 0)
        *t = (struct rdzv_transport){.ring = st->ring};
    if (p->step < t->step)
        return;
    RM_ASSERT(p->step >= 0, "a step's way is told of step %lld", (long long)p->step);
    t->step = p->step;
    t->used = p->second.used;
    if (t->used || *p->second.why)
        text_copy(t->why, sizeof t->why, t->used ? "" : p->second.why);
}

/* Who was in no ring of late has what it tells from those who were (trainer/core/elastic_listen.c). The ranks
 * of a ring that a predecessor made come once that is taken over. */
static bool is_hearsay(const struct rdzv *st, const struct rdzv_worker *w)
{
    bool taken_over = st->state != RDZV_RECOVERING;
    for (int r = 0; r < st->world && !taken_over; r++)
        if (st->member[r] == rdzv_index(st, w))
            return false;
    return st->settings.listens && w->rank < 0 && w->old_rank == INT_MAX;
}

/* What these say of the steps before it may be under way: it is told behind them. */
static bool comes_first(struct rdzv *st, const struct rdzv_worker *w, const struct msg_progress *p)
{
    RM_ASSERT(st->told >= 0, "step %lld comes first, and no run has begun", (long long)p->step);
    bool first = p->step > st->told + 1 && is_hearsay(st, w);
    if (first && p->loss_known)
        st->foretold[p->step % FORETOLD_KEPT] = (struct rdzv_foretold){p->step, p->loss};
    return first;
}

void rdzv_progress(const struct turn *turn, struct rdzv_worker *w, const struct message *m)
{
    struct rdzv *st = turn->st;
    const struct msg_progress *p = &m->progress;
    bool of_ring = generation_compare(m->generation, st->ring) == 0;
    rdzv_vouch_again(st, m->generation, p->step);
    if (of_ring) {
        rdzv_ring_moved(turn);
        rdzv_interval_step(turn, p);
        hear_pace(turn, w, p);
        learn_of_transport(st, p);
    }
    if (of_ring && p->step > st->known_step) /* what came to nothing before was counted then */
        st->known_step = p->step;
    if (st->told >= 0 && p->step > st->told && !comes_first(st, w, p)) {
        st->tokens = p->tokens;
        rdzv_told_up_to(turn, p->step - 1);
        if (st->told == p->step - 1)
            tell_step(turn, p->step, p);
        if (p->step_time > 0)
            rdzv_hang_step_took(st, p->step_time);
        if (of_ring && p->step_time > 0)
            rdzv_ring_paced(st, (double)p->step_time);
    }
    learn_of_told(st, p);
    if (w->rank >= 0 && (!w->state.held || p->step > w->state.step))
        w->state.step = p->step; /* its lineage comes with `stopped` */
    count_data_wait(st, w, p);
    RM_ASSERT(w->rank < 0 || w->state.step >= p->step, "worker %d is at step %lld, and told %lld",
              rdzv_index(st, w), (long long)w->state.step, (long long)p->step);
    forming_worked(turn, m);
    rdzv_acknowledge(turn, w);
}

void rdzv_evaluated(const struct turn *turn, struct rdzv_worker *w, const struct msg_evaluated *e)
{
    struct rdzv *st = turn->st;
    bool early = e->step > st->told && is_hearsay(st, w); /* an evaluation before it may be under way */
    if (e->step > st->evaluated && !early) {
        struct rdzv_tell *t = rdzv_tell(turn, TELL_EVALUATED);
        t->step = e->step;
        t->loss = e->loss;
        st->evaluated = e->step;
    }
    if (e->step == st->evaluated) /* it may be a predecessor that told it */
        st->held_out = e->loss;
    rdzv_acknowledge(turn, w);
}
