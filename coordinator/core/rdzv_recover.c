/* Taking over from a coordinator that died: what the agents say is all there is to know. */
#include "coordinator/core/rdzv_recover.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_goodput.h"
#include "coordinator/core/rdzv_interval.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_program.h"
#include "coordinator/core/rdzv_recovery.h"
#include "coordinator/core/rdzv_ring.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_stop.h"
#include "coordinator/core/rdzv_who.h"

/* Rounds of a later term are above those of every earlier one: trainers ignore older rounds. */
static const int64_t rounds_per_term = 1000000;

/* Times lostAfter: a machine that took the coordinator with it is noticed after one of them, the name leads
 * to the successor a moment later, and agents come back with pauses between their tries. */
static const int patience_for_survivors = 3;

/* Where nobody tells who lives, newcomers alone say nothing: they would fall back to a checkpoint, past
 * survivors that are about to come. At target there is no place for any. */
static bool survivors_may_come(const struct rdzv *st)
{
    RM_ASSERT(st->state == RDZV_RECOVERING, "survivors are waited for in state %s",
              rdzv_state_name(st->state));
    int here = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (w->presence == PRESENT && w->state.held)
            return false;
        here += w->presence == PRESENT;
    }
    return !rdzv_at_target(st, here);
}

rm_time rdzv_recovering_until(const struct rdzv *st)
{
    bool patient = st->settings.unsupervised && survivors_may_come(st);
    RM_ASSERT(st->state == RDZV_RECOVERING, "hellos are waited for in state %s", rdzv_state_name(st->state));
    return st->state_since + (patient ? patience_for_survivors : 1) * st->settings.lost_after;
}

void rdzv_restore(struct rdzv *st)
{
    const struct rdzv_predecessor *h = &st->settings.predecessor;
    RM_ASSERT(h->given && st->world == 0, "a coordinator of term %" PRId64 " restores a ring of %d",
              st->settings.term, st->world);
    st->state = RDZV_RECOVERING;
    st->round = st->settings.term * rounds_per_term;
    st->told = h->told;
    st->trained = h->told >= 0;
    st->evaluated = h->evaluated;
    st->saved = h->saved;
    st->begun = h->begun;
    rdzv_interval_restore(st);
    if (h->spent_at > 0 && h->spent_at <= st->accounted) {
        st->goodput = h->spent;
        st->accounted = h->spent_at;
    } else {
        st->settings.predecessor.spent =
            (struct rdzv_goodput){0}; /* it never said, or can't have said that */
    }
    rdzv_say(st, "the coordinator before this one is lost: waiting for the workers' hellos");
}

static bool in_ring(enum msg_phase phase)
{
    return phase == PHASE_READY || phase == PHASE_TRAINING;
}

/* A worker has one rank: a list that names one twice is of no ring that a coordinator ever formed. */
static bool names_a_ring(const struct msg_hello *h)
{
    RM_ASSERT(h->members_count >= 0 && h->members_count <= RM_WORKERS_MAX, "worker %d names a ring of %d",
              h->worker, h->members_count);
    struct worker_set seen = {0};
    for (int r = 0; r < h->members_count; r++) {
        if (set_has(seen, h->member[r]))
            return false;
        set_add(&seen, h->member[r]);
    }
    return true;
}

/* The newest member list that anybody names is the one that counts. */
void rdzv_recover_hello(struct rdzv *st, const struct msg_hello *h)
{
    RM_ASSERT(st->state == RDZV_RECOVERING, "worker %d names a ring in state %s", h->worker,
              rdzv_state_name(st->state));
    if (st->told < 0 && in_ring(h->phase) && h->state.held)
        st->told = st->known_step = h->state.step;        /* the ring was formed, and nobody was told */
    bool of_own_term = h->ring.term >= st->settings.term; /* nobody can have formed one yet */
    if (generation_compare(h->ring, st->ring) <= 0 || of_own_term || !names_a_ring(h))
        return;
    st->ring = h->ring;
    st->world = h->members_count;
    memcpy(st->member, h->member, sizeof st->member);
}

/* Of one that has told of a fault the word is older than the fault, and is said again. */
void rdzv_recover_ready(struct rdzv *st, struct rdzv_worker *w, const struct message *m)
{
    RM_ASSERT(st->state == RDZV_RECOVERING, "a ring is found in state %s", rdzv_state_name(st->state));
    if (generation_compare(m->generation, w->ring) != 0 || w->phase == PHASE_IDLE)
        return;
    w->phase = PHASE_READY;
    w->began = m->generation;
    w->state = m->ready.state;
    if (st->told < 0)
        st->told = st->known_step = w->state.step;
}

static bool is_inside(const struct rdzv *st, const struct rdzv_worker *w)
{
    return w->presence == PRESENT && w->trainer_pid && in_ring(w->phase) &&
           generation_compare(w->ring, st->ring) == 0;
}

/* What was told meanwhile may be of an older ring, too. */
static bool program_has_failed(const struct rdzv *st)
{
    const struct rdzv_program *p = &st->program;
    RM_ASSERT(p->worker >= 0 && p->worker < RM_WORKERS_MAX, "the program of worker %d failed", p->worker);
    return p->failed && generation_compare(st->worker[p->worker].ring, st->ring) == 0;
}

/* Who told of its program's failure and says hello once more does not know that it was heard. */
static bool ring_is_whole(const struct rdzv *st)
{
    RM_ASSERT(st->state == RDZV_RECOVERING, "a ring is found whole in state %s", rdzv_state_name(st->state));
    for (int r = 0; r < st->world; r++) {
        if (!is_inside(st, &st->worker[st->member[r]]))
            return false;
    }
    return st->world > 0 && !program_has_failed(st);
}

/* Some of a whole ring wait to be told to go, perhaps, and processes of another generation live. */
static bool starts_beside_others(const struct rdzv *st)
{
    RM_ASSERT(st->world > 0, "a ring of %d starts beside others", st->world);
    bool waits = false, others = false;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        waits = waits || (is_inside(st, w) && w->phase == PHASE_READY);
        others = others || (rdzv_program_lives_on(st, w) && generation_compare(w->ring, st->ring) != 0);
    }
    return waits && others;
}

static bool all_expected_are_here(const struct rdzv *st)
{
    RM_ASSERT(st->state == RDZV_RECOVERING, "all are here in state %s", rdzv_state_name(st->state));
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (w->expected >= 0 && (w->presence != PRESENT || w->attempt < w->expected))
            return false;
    }
    return st->expect_known;
}

static void tell_recovered(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    rm_time lost = st->settings.predecessor.lost_at, began = st->started;
    if (lost <= 0 || lost > began)
        lost = began;
    st->last_recovery = (struct rdzv_recovery){.cause = CAUSE_COORDINATOR_LOST,
                                               .detect = began - lost,
                                               .agree = turn->now - began,
                                               .total = turn->now - lost};
    RM_ASSERT(st->last_recovery.detect >= 0 && st->last_recovery.agree >= 0,
              "a successor began at %lld, and agreed at %lld", (long long)began, (long long)turn->now);
    rdzv_tell(turn, TELL_RECOVERED)->recovery = st->last_recovery;
    st->recoveries++;
}

static void take_ranks(struct rdzv *st)
{
    RM_ASSERT(st->state == RDZV_RECOVERING, "a ring of %d is taken over in state %s", st->world,
              rdzv_state_name(st->state));
    for (int r = 0; r < st->world; r++) {
        struct rdzv_worker *w = &st->worker[st->member[r]];
        w->rank = w->old_rank = r;
    }
    st->trained = st->trained || st->world > 0;
}

/* Training was never interrupted, and is not now: `go` does nothing to those who train. */
static void adopt(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    take_ranks(st);
    st->program.failed = false; /* of an older ring: this one runs */
    st->found = true;
    st->resume = st->worker[st->member[0]].state;
    for (int r = 1; r < st->world; r++) { /* rank 0 may still follow */
        const struct msg_state *state = &st->worker[st->member[r]].state;
        if (state->held && (!st->resume.held || state->step > st->resume.step))
            st->resume = *state;
    }
    rdzv_send(turn, MSG_GO);
    for (int r = 0; r < st->world; r++)
        rdzv_send_to(turn, &st->worker[st->member[r]]);
    rdzv_tell_formed(turn);
    tell_recovered(turn);
    rdzv_interval_begins(turn);
    rdzv_account(turn);
    rm_time meanwhile = st->goodput.waiting - st->settings.predecessor.spent.waiting;
    RM_ASSERT(meanwhile >= 0, "%lld ns of training before this coordinator began", (long long)-meanwhile);
    st->goodput.waiting -= meanwhile;
    st->goodput.productive += meanwhile;
    rdzv_say(st, "training goes on with %d workers", st->world);
    rdzv_move(turn, RDZV_TRAINING);
    rdzv_program_adopted(turn);
}

static void form_anew(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    bool had_ring = st->world > 0;
    int64_t lost = st->lost;
    take_ranks(st);
    for (int r = 0; r < st->world; r++) {
        struct rdzv_worker *w = &st->worker[st->member[r]];
        if (w->presence != ABSENT)
            continue;
        w->rank = -1;
        st->lost++;
        rdzv_tell_worker(turn, TELL_WORKER_LOST, st->member[r], "it did not come back");
        rdzv_recovery_begin(turn, CAUSE_WORKER_LOST, w);
    }
    if (had_ring)
        rdzv_recovery_begin(turn, CAUSE_RING_ERROR, NULL);
    tell_recovered(turn);
    st->program.failed = program_has_failed(st);
    if (st->lost == lost && !st->program.failed)
        rdzv_quiesce_on(turn);
    else
        rdzv_quiesce(turn, STOP_NOW);
    RM_ASSERT(st->state == RDZV_QUIESCING, "a successor forms anew in state %s", rdzv_state_name(st->state));
}

void rdzv_settle_recovering(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_RECOVERING, "a ring is taken over in state %s", rdzv_state_name(st->state));
    bool whole = ring_is_whole(st), beside = whole && starts_beside_others(st);
    /* its predecessor may have answered somebody else, who is yet to come, until it ended */
    bool early = st->settings.alone && turn->now < st->state_since + st->settings.lost_after;
    if (whole && !beside && early)
        return;
    if (whole && !beside)
        adopt(turn);
    else if (beside || all_expected_are_here(st) || turn->now >= rdzv_recovering_until(st))
        form_anew(turn);
}

/* The workers obey somebody newer: nothing that is done here counts, and nobody is released. */
void rdzv_step_down(const struct turn *turn, int64_t term)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(term > st->settings.term, "term %" PRId64 " takes over from term %" PRId64, term,
              st->settings.term);
    st->ending.set = false;
    rdzv_give_up(st, EXIT_MACHINE,
                 "a coordinator of term %" PRId64 " has taken over from this one of term %" PRId64, term,
                 st->settings.term);
    rdzv_move(turn, RDZV_FAILED);
    rdzv_tell_end(turn, st->ending.exit_code, st->ending.text);
}
