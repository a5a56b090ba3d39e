/* Steps and evaluations told once, what a recovery cost, and where the time goes. */
#include <math.h>
#include <string.h>

#include "coordinator/core/rdzv.h"
#include "coordinator/core/rdzv_state.h"

/* Actions that the rest of a step may make: the end tells up to three things of each worker. */
enum { LEFT_FOR_OTHERS = 5 * RM_WORKERS_MAX };

/* ---- steps ---- */

static void tell_step(struct rdzv *st, int64_t step, double loss, double rate, struct rdzv_out *out)
{
    struct rdzv_tell *t = rdzv_tell(out, TELL_STEP);
    t->step = step;
    t->loss = loss;
    t->tokens_per_second = rate;
    t->world = st->world;
    st->told = step;
    st->loss = loss;
}

/* Steps whose losses nobody alive can tell still appear, in their place. So that one call never fills the
 * list of actions, a gap of many is told in as many calls as it takes; progress goes on meanwhile. */
void rdzv_told_up_to(struct rdzv *st, int64_t step, struct rdzv_out *out)
{
    while (st->told < step && out->count < RDZV_ACTIONS_MAX - LEFT_FOR_OTHERS)
        tell_step(st, st->told + 1, NAN, 0, out);
}

/* Before anything is told to be complete every step is. False: not yet; the next call goes on. */
bool rdzv_all_told(struct rdzv *st, struct rdzv_out *out)
{
    rdzv_told_up_to(st, st->settings.steps, out);
    return st->told >= st->settings.steps;
}

/* Of a ring that broke a step may be told only now: it counts all the same. */
static void forming_worked(struct rdzv *st, const struct message *m, rm_time now, struct rdzv_out *out)
{
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
        rdzv_recovery_done(st, now, out);
}

/* Once for each step and worker: what is not acknowledged in time is told again. */
static void count_data_wait(struct rdzv *st, struct rdzv_worker *w, const struct msg_progress *p)
{
    if (p->step <= w->waited)
        return;
    w->waited = p->step;
    st->data_wait += p->data_wait;
}

void rdzv_progress(struct rdzv *st, struct rdzv_worker *w, const struct message *m, rm_time now,
                   struct rdzv_out *out)
{
    const struct msg_progress *p = &m->progress;
    bool of_ring = generation_compare(m->generation, st->ring) == 0;
    if (of_ring)
        rdzv_hang_moved(st, now);
    if (of_ring && p->step > st->known_step) /* what came to nothing before was counted then */
        st->known_step = p->step;
    if (st->told >= 0 && p->step > st->told) {
        double seconds = (double)p->step_time / RM_S;
        rdzv_told_up_to(st, p->step - 1, out);
        if (st->told == p->step - 1)
            tell_step(st, p->step, p->loss_known ? p->loss : NAN,
                      seconds > 0 ? (double)p->tokens / seconds : 0, out);
        st->tokens = p->tokens;
        if (p->step_time > 0)
            rdzv_hang_step_took(st, p->step_time);
        if (p->step_time > 0)
            st->step_time =
                st->step_time > 0 ? 0.9 * st->step_time + 0.1 * (double)p->step_time : (double)p->step_time;
    }
    if (p->step == st->told && p->loss_known)
        st->loss = p->loss; /* a predecessor told it */
    if (w->rank >= 0 && (!w->state.held || p->step > w->state.step))
        w->state.step = p->step; /* its lineage comes with `stopped` */
    count_data_wait(st, w, p);
    forming_worked(st, m, now, out);
    struct message *ack = rdzv_send_one(st, out, w, MSG_ACK);
    ack->ack.step = st->told;
    ack->ack.evaluated = st->evaluated;
}

void rdzv_evaluated(struct rdzv *st, struct rdzv_worker *w, const struct msg_evaluated *e,
                    struct rdzv_out *out)
{
    if (e->step > st->evaluated) {
        struct rdzv_tell *t = rdzv_tell(out, TELL_EVALUATED);
        t->step = e->step;
        t->loss = e->loss;
        st->evaluated = e->step;
    }
    struct message *ack = rdzv_send_one(st, out, w, MSG_ACK);
    ack->ack.step = st->told;
    ack->ack.evaluated = st->evaluated;
}

/* ---- goodput ---- */

static rm_time *class_of(struct rdzv *st)
{
    struct rdzv_goodput *g = &st->goodput;
    bool planned = st->state == RDZV_QUIESCING && st->stop_at == STOP_BOUNDARY;
    if (st->state == RDZV_GATHERING || st->state == RDZV_RECOVERING || (!st->trained && st->told < 0))
        return &g->waiting;
    if (st->state == RDZV_SAVING)
        return &g->checkpoint;
    if (planned || (st->state == RDZV_TRAINING && !st->recovery.active))
        return &g->productive;
    return &g->recovery;
}

void rdzv_account(struct rdzv *st, rm_time now)
{
    if (st->state != RDZV_FINISHED && st->state != RDZV_FAILED)
        *class_of(st) += now - st->accounted;
    st->accounted = now;
}

struct rdzv_goodput rdzv_goodput(const struct rdzv *st, rm_time now)
{
    struct rdzv_goodput g = st->goodput;
    if (st->state == RDZV_TRAINING && !st->recovery.active)
        g.productive += now - st->accounted;
    return g;
}

double rdzv_productive_share(struct rdzv_goodput g)
{
    rm_time all = g.productive + g.checkpoint + g.recovery + g.waiting + g.rework;
    return all > 0 ? (double)g.productive / (double)all : 0;
}

/* ---- recoveries ---- */

static bool is_sharper(enum cause now, enum cause then)
{
    return then == CAUSE_NONE || (then == CAUSE_RING_ERROR && now != CAUSE_RING_ERROR);
}

/* The ring has stood still for longer than a step takes: for one that only now is known to be lost. */
static void count_stall(struct rdzv *st, rm_time now)
{
    if (class_of(st) != &st->goodput.productive)
        return;
    rdzv_account(st, now);
    rm_time still = now - st->turned - (rm_time)st->step_time;
    if (still > st->goodput.productive)
        still = st->goodput.productive;
    if (still <= 0)
        return;
    st->goodput.productive -= still;
    st->goodput.recovery += still;
}

void rdzv_recovery_begin(struct rdzv *st, enum cause cause, struct rdzv_worker *w, rm_time now)
{
    struct rdzv_open_recovery *r = &st->recovery;
    if (cause != CAUSE_WORKER_LEFT && cause != CAUSE_WORKER_JOINED)
        count_stall(st, now);
    if (!r->active) {
        *r = (struct rdzv_open_recovery){.active = true, .start = now, .began = now};
    }
    r->formed = false;
    if (is_sharper(cause, r->times.cause))
        r->times.cause = cause;
    if (w && w->act != CAUSE_NONE && w->act_at < r->start)
        r->start = w->act_at;
}

static int64_t steps_redone(const struct rdzv *st)
{
    int64_t step = st->resume.held ? st->resume.step : 0;
    int64_t redone = st->known_step > step ? st->known_step - step : 0;
    for (int r = 0; r < st->world && redone == 0; r++) {
        const struct rdzv_worker *w = &st->worker[st->member[r]];
        redone += w->discarded && w->state.held && w->state.step == step;
    }
    return redone;
}

/* The member list is out: what was lost, and how long agreeing took. */
void rdzv_recovery_formed(struct rdzv *st, rm_time now)
{
    struct rdzv_open_recovery *r = &st->recovery;
    r->resume_step = st->resume.held ? st->resume.step : 0;
    if (!r->active) {
        *r = (struct rdzv_open_recovery){.start = now, .began = now, .resume_step = r->resume_step};
        r->agreed = now;
        return;
    }
    r->agreed = now;
    int64_t redone = steps_redone(st);
    r->times.steps_redone += redone;
    rm_time wasted = (rm_time)((double)redone * st->step_time);
    if (wasted > st->goodput.productive)
        wasted = st->goodput.productive;
    st->goodput.productive -= wasted;
    st->goodput.rework += wasted;
    st->known_step = r->resume_step;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        st->worker[i].discarded = false;
}

static rm_time longest_transfer(const struct rdzv *st)
{
    rm_time longest = 0;
    for (int r = 0; r < st->world; r++) {
        if (st->worker[st->member[r]].state_time > longest)
            longest = st->worker[st->member[r]].state_time;
    }
    return longest;
}

void rdzv_recovery_done(struct rdzv *st, rm_time now, struct rdzv_out *out)
{
    struct rdzv_open_recovery *r = &st->recovery;
    if (!r->active || !r->formed)
        return;
    rm_time forming = r->went - r->agreed, transfer = longest_transfer(st);
    struct rdzv_recovery *t = &r->times;
    rdzv_account(st, now);
    t->detect = r->began - r->start;
    t->agree = r->agreed - r->began;
    t->state = transfer < forming ? transfer : forming;
    t->ring = forming - t->state;
    t->first_step = now - r->went;
    t->total = now - r->start;
    rdzv_tell(out, TELL_RECOVERED)->recovery = *t;
    st->last_recovery = *t;
    st->recoveries++;
    *r = (struct rdzv_open_recovery){0};
}
