/* What a recovery cost: from the moment that something was lost to the first step after it. */
#include "coordinator/core/rdzv_recovery.h"

#include "common/base/assert.h"
#include "coordinator/core/rdzv_goodput.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_states.h"

static bool is_sharper(enum cause now, enum cause then)
{
    RM_ASSERT(now != CAUSE_NONE, "no cause is sharper than cause %d", (int)then);
    return then == CAUSE_NONE || (then == CAUSE_RING_ERROR && now != CAUSE_RING_ERROR);
}

void rdzv_recovery_begin(const struct turn *turn, enum cause cause, struct rdzv_worker *w)
{
    struct rdzv_open_recovery *r = &turn->st->recovery;
    RM_ASSERT(cause != CAUSE_NONE, "a recovery from nothing, in state %s", rdzv_state_name(turn->st->state));
    if (cause != CAUSE_WORKER_LEFT && cause != CAUSE_WORKER_JOINED)
        rdzv_count_stall(turn);
    if (!r->active) {
        *r = (struct rdzv_open_recovery){.active = true, .start = turn->now, .began = turn->now};
    }
    r->formed = false;
    if (is_sharper(cause, r->times.cause))
        r->times.cause = cause;
    if (w && w->act != CAUSE_NONE && w->act_at < r->start)
        r->start = w->act_at;
    RM_ASSERT(r->start <= r->began && r->began <= turn->now, "a recovery from %lld, noticed %lld, at %lld ns",
              (long long)r->start, (long long)r->began, (long long)turn->now);
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
void rdzv_recovery_formed(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    struct rdzv_open_recovery *r = &st->recovery;
    RM_ASSERT(st->world > 0, "nobody recovers, in state %s", rdzv_state_name(st->state));
    r->resume_step = st->resume.held ? st->resume.step : 0;
    if (!r->active) {
        *r = (struct rdzv_open_recovery){
            .start = turn->now, .began = turn->now, .resume_step = r->resume_step};
        r->agreed = turn->now;
        return;
    }
    r->agreed = turn->now;
    int64_t redone = steps_redone(st);
    r->times.steps_redone += redone;
    double most = (double)st->goodput.productive, lost = (double)redone * st->step_time;
    rm_time wasted = lost < most ? (rm_time)lost : st->goodput.productive;
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

void rdzv_recovery_done(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    struct rdzv_open_recovery *r = &st->recovery;
    if (!r->active || !r->formed)
        return;
    rm_time forming = r->went - r->agreed, transfer = longest_transfer(st);
    struct rdzv_recovery *t = &r->times;
    rdzv_account(turn);
    RM_ASSERT(r->start <= r->began && r->began <= r->agreed && r->agreed <= r->went && r->went <= turn->now,
              "a recovery from %lld, noticed %lld, agreed %lld, formed %lld, over %lld ns",
              (long long)r->start, (long long)r->began, (long long)r->agreed, (long long)r->went,
              (long long)turn->now);
    t->detect = r->began - r->start;
    t->agree = r->agreed - r->began;
    t->state = transfer < forming ? transfer : forming;
    t->ring = forming - t->state;
    t->first_step = turn->now - r->went;
    t->total = turn->now - r->start;
    RM_ASSERT(t->detect + t->agree + t->state + t->ring + t->first_step == t->total && t->ring >= 0,
              "a recovery of %lld ns, of which %lld of the state and %lld of the ring", (long long)t->total,
              (long long)t->state, (long long)t->ring);
    rdzv_tell(turn, TELL_RECOVERED)->recovery = *t;
    st->last_recovery = *t;
    st->recoveries++;
    *r = (struct rdzv_open_recovery){0};
}
