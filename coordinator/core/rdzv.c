/* One step of the coordinator: what an event means, and then what each state waits for. The table of states
 * is in rdzv_states.c. */
#include "coordinator/core/rdzv.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_ending.h"
#include "coordinator/core/rdzv_failures.h"
#include "coordinator/core/rdzv_form.h"
#include "coordinator/core/rdzv_gather.h"
#include "coordinator/core/rdzv_goodput.h"
#include "coordinator/core/rdzv_hang.h"
#include "coordinator/core/rdzv_invariants.h"
#include "coordinator/core/rdzv_leave.h"
#include "coordinator/core/rdzv_listen.h"
#include "coordinator/core/rdzv_lists.h"
#include "coordinator/core/rdzv_load.h"
#include "coordinator/core/rdzv_members.h"
#include "coordinator/core/rdzv_notice.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_outage.h"
#include "coordinator/core/rdzv_pairs.h"
#include "coordinator/core/rdzv_pieces.h"
#include "coordinator/core/rdzv_probe.h"
#include "coordinator/core/rdzv_program.h"
#include "coordinator/core/rdzv_progress.h"
#include "coordinator/core/rdzv_recover.h"
#include "coordinator/core/rdzv_recovery.h"
#include "coordinator/core/rdzv_relief.h"
#include "coordinator/core/rdzv_remedy.h"
#include "coordinator/core/rdzv_report.h"
#include "coordinator/core/rdzv_save.h"
#include "coordinator/core/rdzv_state.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_stop.h"
#include "coordinator/core/rdzv_train.h"
#include "coordinator/core/rdzv_trouble.h"
#include "coordinator/core/rdzv_vouch.h"
#include "coordinator/core/rdzv_who.h"
#include "coordinator/core/rdzv_will.h"

enum { SETTLE_TURNS = 16 };

struct rdzv *rdzv_open(const struct rdzv_settings *settings, rm_time now)
{
    rdzv_check_settings(settings);
    struct rdzv *st = calloc(1, sizeof *st);
    if (!st)
        return NULL;
    st->settings = *settings;
    st->state = RDZV_GATHERING;
    st->state_since = st->started = st->accounted = st->arrived = st->saved_at = now;
    st->left = now - RM_S;
    st->round = 1;
    st->told = st->evaluated = st->saved = st->known_step = st->given_up = st->gave_way = -1;
    st->due = st->circled = st->pairs.stuck_since = RM_NEVER;
    st->exact = settings->exact;
    st->loss = st->held_out = NAN;
    st->numbers = msg_numbers_unknown();
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        w->expected = w->attempt = w->conn = w->rank = w->waiting_for = -1;
        w->old_rank = INT_MAX;
        w->stopped_round = w->update_step = -1;
        w->asked = w->leave_until = w->waits_since = RM_NEVER;
    }
    rdzv_say(st, "waiting for workers");
    if (settings->predecessor.given)
        rdzv_restore(st);
    return st;
}

void rdzv_free(struct rdzv *st)
{
    free(st);
}

enum rdzv_state rdzv_state(const struct rdzv *st)
{
    return st->state;
}

const char *rdzv_why(const struct rdzv *st)
{
    return st->why;
}

bool rdzv_may_hand_over(const struct rdzv *st)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (w->presence != ABSENT && w->leaving && !w->released)
            return false;
    }
    return st->state == RDZV_RECOVERING || st->state == RDZV_GATHERING || st->state == RDZV_TRAINING;
}

static void settle_states(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    for (int i = 0; i < SETTLE_TURNS; i++) {
        enum rdzv_state before = st->state;
        int64_t round = st->round;
        rdzv_will_settle(turn);
        rdzv_relief_settle(turn);
        if (st->state == RDZV_RECOVERING)
            rdzv_settle_recovering(turn);
        else if (st->final_saved && st->digest_known && st->state != RDZV_SAVING)
            rdzv_end(turn); /* published after its holders were thought lost */
        else if (st->state == RDZV_GATHERING)
            rdzv_settle_gathering(turn);
        else if (st->state == RDZV_FORMING)
            rdzv_settle_forming(turn);
        else if (st->state == RDZV_TRAINING)
            rdzv_settle_training(turn);
        else if (st->state == RDZV_QUIESCING)
            rdzv_settle_quiescing(turn);
        else if (st->state == RDZV_SAVING)
            rdzv_settle_saving(turn);
        bool over = st->state == RDZV_FINISHED || st->state == RDZV_FAILED;
        if (over || (st->state == before && st->round == round))
            break;
        RM_ASSERT(i < SETTLE_TURNS - 1, "no rest after %d turns, in state %s: %s", i + 1,
                  rdzv_state_name(st->state), st->why);
    }
    if (st->state != RDZV_FINISHED && st->state != RDZV_FAILED) {
        rdzv_name_publishers(turn);
        rdzv_release_leavers(turn);
        rdzv_ask_folders(turn);
    }
}

/* ---- events ---- */

static struct rdzv_worker *by_conn(struct rdzv *st, int conn)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        if (st->worker[i].presence == PRESENT && st->worker[i].conn == conn)
            return &st->worker[i];
    }
    return NULL;
}

/* While the ring forms everybody has to move, but it gets on only by those who don't wait for somebody. Who
 * was not told to go by this coordinator has no answer of it: another one may run the program by now. */
static void on_heartbeat(const struct turn *turn, struct rdzv_worker *w, const struct msg_heartbeat *h)
{
    RM_ASSERT(w->presence == PRESENT, "worker %d beats, and is not here", rdzv_index(turn->st, w));
    bool moves = h->bytes != w->bytes || h->counter != w->counter;
    if (moves)
        w->moved = turn->now;
    if (moves && turn->st->state == RDZV_FORMING && w->rank >= 0 && !w->ready && h->waiting_for < 0)
        rdzv_ring_moved(turn);
    w->bytes = h->bytes;
    rdzv_hang_heartbeat(w, h, turn->now);
    if (turn->st->settings.alone && turn->st->state != RDZV_RECOVERING)
        rdzv_acknowledge(turn, w); /* nothing else is said to one that runs a program */
}

/* Who says so of two, with no step between, may be the one that fails, as its memory does. */
static bool names_another_source(const struct rdzv *st, struct rdzv_worker *w, int peer)
{
    RM_ASSERT(peer >= 0, "worker %d names nobody (%d)", rdzv_index(st, w), peer);
    bool before = w->named_source.steps == st->steps_seen + 1 && w->named_source.worker != peer;
    w->named_source.steps = st->steps_seen + 1;
    w->named_source.worker = peer;
    return before;
}

/* Two that can't reach each other, or one that gave another something else than was agreed. */
static void blame_pair_or_source(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(f->peer < RM_WORKERS_MAX, "worker %d names worker %d", rdzv_index(st, w), f->peer);
    bool source = f->class == CLASS_SOURCE && f->peer >= 0 && st->worker[f->peer].presence == PRESENT;
    if (!source) {
        rdzv_pairs_fault(st, w, f);
        return;
    }
    if (!rdzv_stops_now(st))
        rdzv_pairs_in_vain(st);
    bool another = names_another_source(st, w, f->peer);
    rdzv_source_fault(turn, &st->worker[f->peer], f);
    if (st->worker[f->peer].trouble.times > 1 && !another)
        st->forming_failures = 0; /* it has bounds of its own, and pauses */
}

/* What this worker has is not what it should be: all stop, and that is told as `kind`, once a ring: it may be
 * said twice, as a connection breaks, and by others. */
static void not_as_it_should(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f,
                             enum rdzv_tell_kind kind)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(w->rank >= 0, "worker %d is in no ring that its state could differ from", rdzv_index(st, w));
    if (!generation_compare(w->differed, st->ring))
        return;
    w->differed = st->ring;
    if (!rdzv_stops_now(st)) {
        rdzv_recovery_begin(turn, CAUSE_RING_ERROR, w);
        rdzv_pairs_in_vain(st);
        rdzv_quiesce(turn, STOP_NOW);
    }
    rdzv_say(st, "worker %d: %s", rdzv_index(st, w), rdzv_reason(f->detail));
    rdzv_tell_worker(turn, kind, rdzv_index(st, w), f->detail);
}

/* Who was told to stop before it saw so has dropped nothing, and must not be who all receive from; nor must
 * pieces of such states be a checkpoint. A successor hears of it as often as it is said. */
static void doubt_states(struct rdzv *st, const struct message *m)
{
    bool counts = generation_compare(m->generation, st->ring) == 0 || st->state == RDZV_RECOVERING;
    if (m->fault.class != CLASS_PAIR || m->fault.step < 0 || m->generation.n <= 0 || !counts)
        return;
    rdzv_vouch_for_none(st, m->generation, m->fault.step);
    rdzv_forget_pieces(st, m->fault.step);
}

/* Its state is not that of most, and it drops it: what made it so may do so again. CLASS_PAIR: there is no
 * majority that could be right, and nobody is to blame. Of states of one history that is seen before anything
 * of them is used; who was given a sum that is none is not to blame either, and who has itself spoiled what
 * it added (CLASS_MACHINE) is, unless a drill did. */
static void state_differs(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f)
{
    RM_ASSERT(f->kind == FAULT_PROOF || f->kind == FAULT_LINEAGE, "a state differs by a fault of kind %d",
              (int)f->kind);
    bool proof = f->kind == FAULT_PROOF, ordered = proof && w->act == CAUSE_RING_ERROR;
    bool again = !generation_compare(w->owned_up, turn->st->ring);
    turn->st->exact &= proof;
    w->owned_up = turn->st->ring;
    not_as_it_should(turn, w, f, proof ? TELL_PROOF_FAILED : TELL_WORKER_DIFFERS);
    if (f->class == CLASS_MACHINE && !ordered && !again)
        rdzv_count_failure(turn, w, f->detail);
    if (ordered && f->class == CLASS_MACHINE)
        w->act = CAUSE_NONE;
}

/* Who holds the state that counts names one who does not, and is told to stop at once, maybe before it sees
 * so itself: its state must not be who all receive from. One word is enough for that: a wrong one costs a
 * transfer, and a true one that is not believed costs the weights. A failure counts at its own word alone. */
static bool another_differs(const struct turn *turn, const struct msg_fault *f)
{
    struct rdzv *st = turn->st;
    struct rdzv_worker *other = f->peer >= 0 ? &st->worker[f->peer] : NULL;
    if (f->class != CLASS_UNKNOWN || !other || other->rank < 0 || f->step < 0)
        return false;
    st->exact = false;
    rdzv_outvoted(st, other, st->ring, f->step);
    not_as_it_should(turn, other, f, TELL_WORKER_DIFFERS);
    return true;
}

/* Its agent starts another one. */
static void trainer_ended(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f)
{
    struct rdzv *st = turn->st;
    w->trainer_pid = 0;
    w->runs = false;
    st->lost++; /* a launcher, say: the programs of others fail by it */
    w->stopped_round = -1;
    w->asked = RM_NEVER;
    rdzv_say(st, "worker %d's %s ended: %s", rdzv_index(st, w), st->settings.program ? "launcher" : "trainer",
             rdzv_reason(f->detail));
    if (w->rank >= 0)
        rdzv_tell_worker(turn, TELL_WORKER_LOST, rdzv_index(st, w), f->detail);
    rdzv_ring_without(turn, w, CAUSE_TRAINER_EXIT);
    w->rank = -1;
    RM_ASSERT(!w->must_stop, "worker %d's trainer ended, and its answer is waited for", rdzv_index(st, w));
    rdzv_beside_ended(w, f);
    if (w->act == CAUSE_TRAINER_EXIT) {
        w->act = CAUSE_WORKER_JOINED; /* its way back is never skipped for cost */
        w->act_at = RM_NEVER;
    } else if (!w->trouble.exit_told) {
        rdzv_beside_over(turn, w, f->detail);
    }
    w->trouble.exit_told = false;
}

static void on_fault(const struct turn *turn, struct rdzv_worker *w, const struct message *m)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(w->presence == PRESENT, "worker %d tells a fault, and is not here", rdzv_index(st, w));
    const struct msg_fault *f = &m->fault;
    bool mine = w->rank >= 0 && generation_compare(m->generation, st->ring) == 0;
    if (f->kind == FAULT_PROOF)
        doubt_states(st, m);
    bool at_work = mine && (st->state == RDZV_TRAINING || st->state == RDZV_FORMING || rdzv_ring_runs(st));
    if (st->state == RDZV_RECOVERING && f->kind != FAULT_STORAGE && !f->over)
        w->phase = PHASE_IDLE; /* whatever ring it was in does not go on */
    if (f->kind == FAULT_TRAINER_EXIT) {
        trainer_ended(turn, w, f);
    } else if (f->kind == FAULT_PROGRAM && st->settings.brought) {
        rdzv_beside_failed(turn, w, f);
    } else if (f->kind == FAULT_PROGRAM) {
        rdzv_program_fault(turn, w, m);
    } else if (f->kind == FAULT_STORAGE) {
        rdzv_storage_fault(turn, w, f);
    } else if (f->kind == FAULT_NOT_FINITE && mine) {
        if (!rdzv_stops_now(st))
            rdzv_pairs_in_vain(st);
        rdzv_not_finite(turn, w, f);
    } else if (f->kind == FAULT_DATA || f->kind == FAULT_MACHINE) {
        rdzv_work_fault(turn, w, f);
    } else if (mine && f->kind == FAULT_LINEAGE && f->class == CLASS_JOB) {
        st->ending.differ |= !st->ending.set;
        rdzv_give_up(st, EXIT_TRAINING, "%s", f->detail);
    } else if (mine && f->kind == FAULT_LINEAGE && (f->class == CLASS_MACHINE || f->class == CLASS_PAIR)) {
        state_differs(turn, w, f);
    } else if (mine && f->kind == FAULT_PROOF) {
        state_differs(turn, w, f);
    } else if (mine && f->kind == FAULT_LINEAGE && another_differs(turn, f)) {
        return;
    } else if (mine && rdzv_stops_now(st)) {
        blame_pair_or_source(turn, w, f);
    } else if (at_work) {
        if (f->peer >= 0 && st->worker[f->peer].presence == AWAY)
            rdzv_lose(turn, &st->worker[f->peer], "a ring neighbour lost it too");
        blame_pair_or_source(turn, w, f);
        if (!rdzv_stops_now(st)) {
            rdzv_say(st, "worker %d: %s", rdzv_index(st, w), rdzv_reason(f->detail));
            rdzv_recovery_begin(turn, CAUSE_RING_ERROR, f->peer >= 0 ? &st->worker[f->peer] : NULL);
            rdzv_quiesce(turn, STOP_NOW);
        }
    }
}

/* Who is sent a SIGTERM believes in its pod's grace period, also on a machine that goes before that. Who goes
 * by its machine's own word knows better, and its time is not for others to shorten. */
static void on_leaving(const struct turn *turn, struct rdzv_worker *w, const struct msg_leaving *l)
{
    struct msg_leaving leaving = *l;
    if (!l->trains_on)
        leaving.deadline = rdzv_relief_bounds(turn->st, w, l->deadline);
    RM_ASSERT(leaving.deadline <= l->deadline, "worker %d goes later than it says", rdzv_index(turn->st, w));
    rdzv_leaving(turn, w, &leaving);
}

static void on_worker(const struct turn *turn, struct rdzv_worker *w, const struct message *m)
{
    switch (m->type) {
    case MSG_HEARTBEAT:
        on_heartbeat(turn, w, &m->heartbeat);
        break;
    case MSG_PROGRESS:
        rdzv_progress(turn, w, m);
        break;
    case MSG_REPORTED:
        rdzv_reported(turn, w, m);
        break;
    case MSG_FROZEN:
        rdzv_frozen(turn, m);
        break;
    case MSG_EVALUATED:
        rdzv_evaluated(turn, w, &m->evaluated);
        rdzv_ring_moved(turn);
        break;
    case MSG_NOTICED:
        rdzv_noticed(turn, w, &m->noticed);
        break;
    case MSG_LEAVING:
        on_leaving(turn, w, &m->leaving);
        break;
    case MSG_FAULT:
        on_fault(turn, w, m);
        break;
    case MSG_STOPPED:
        rdzv_stopped(turn, w, m);
        break;
    case MSG_READY:
        rdzv_ready(turn, w, m);
        break;
    case MSG_CHECKPOINTS:
        rdzv_listed(turn, w, &m->checkpoints);
        break;
    case MSG_CHECKPOINTED:
        rdzv_checkpointed(turn, w, &m->checkpointed);
        break;
    case MSG_PUBLISHED:
        rdzv_write_is_over(w, m->published.step);
        rdzv_published(turn, &m->published);
        break;
    case MSG_SAVE_WAITS:
        rdzv_save_waits(turn, w, &m->save_waits);
        break;
    case MSG_FINISHED:
        rdzv_finished(turn->st, w, m);
        break;
    case MSG_HEARD:
        rdzv_heard(turn, w, &m->heard);
        break;
    case MSG_PROBED:
        rdzv_probed(turn, w, &m->probed);
        break;
    default:
        break;
    }
}

/* -1: it names none. */
static int64_t newest_step_in(const struct message *m)
{
    switch (m->type) {
    case MSG_HELLO:
        return m->hello.state.step;
    case MSG_HEARTBEAT:
        return m->heartbeat.step;
    case MSG_PROGRESS:
        return m->progress.step;
    case MSG_EVALUATED:
        return m->evaluated.step;
    case MSG_STOPPED:
        return m->stopped.update_step > m->stopped.state.step ? m->stopped.update_step
                                                              : m->stopped.state.step;
    case MSG_READY:
        return m->ready.state.step;
    case MSG_HEARD:
        return m->heard.state.step;
    case MSG_FINISHED:
        return m->finished.step;
    case MSG_CHECKPOINTED:
        return m->checkpointed.step;
    case MSG_PUBLISHED:
        return m->published.step;
    default:
        return -1;
    }
}

/* Nobody can have made it: who says so is not heard, and is waited for as one that says nothing. */
static bool is_behind_the_end(const struct rdzv *st, const struct message *m)
{
    return !st->settings.program && newest_step_in(m) > st->settings.steps;
}

static void on_message(const struct turn *turn, const struct rdzv_event *event)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(event->message, "connection %d brings nothing", event->conn);
    const struct message *m = event->message;
    struct rdzv_worker *w = by_conn(st, event->conn); /* NULL: refused or replaced */
    if (is_behind_the_end(st, m))
        return;
    if (m->type == MSG_HELLO && m->term > st->settings.term) {
        rdzv_step_down(turn, m->term);
    } else if (m->type == MSG_HELLO) {
        rdzv_hello(turn, event->conn, &m->hello);
    } else if (w) {
        w->heard = turn->now;
        on_worker(turn, w, m);
    }
}

static void forgive(rm_time *since, rm_time pause)
{
    RM_ASSERT(pause >= 0, "a pause of %lld ns", (long long)pause);
    *since += *since == RM_NEVER ? 0 : pause;
}

/* Somebody calls at the deadline or before. Where the call comes much later it was this program that stood
 * still, or its machine: what it has not heard meanwhile says nothing about anybody. */
static bool forgive_own_pause(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    rm_time pause = turn->now - st->accounted;
    RM_ASSERT(pause >= 0, "time goes back by %lld ns", (long long)-pause);
    if (st->due == RM_NEVER || turn->now < st->due + st->settings.heartbeat)
        return false;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        forgive(&w->heard, pause);
        forgive(&w->away_since, pause);
        forgive(&w->moved, pause);
        forgive(&w->turned, pause);
        forgive(&w->asked, pause);
        forgive(&w->taken_at, pause);
        forgive(&w->waits_since, pause);
    }
    for (int i = 0; i < COLLECTIONS; i++)
        forgive(&st->collection[i].held_since, pause);
    forgive(&st->turned, pause);
    forgive(&st->state_since, pause);
    forgive(&st->accused_since, pause);
    forgive(&st->save_since, pause);
    forgive(&st->arrived, pause);
    return true;
}

static void on_act(struct rdzv *st, const struct rdzv_event *event)
{
    struct rdzv_worker *w = &st->worker[event->act.worker];
    RM_ASSERT(event->act.worker >= 0 && event->act.worker < RM_WORKERS_MAX, "a drill on worker %d",
              event->act.worker);
    w->act = event->act.cause;
    w->act_at = event->act.at;
}

static void on_event(const struct turn *turn, const struct rdzv_event *event)
{
    struct rdzv *st = turn->st;
    switch (event->kind) {
    case RDZV_MESSAGE:
        on_message(turn, event);
        break;
    case RDZV_CLOSED:
        rdzv_closed(turn, event->conn);
        break;
    case RDZV_EXPECT:
        rdzv_expect(turn, &event->expect);
        break;
    case RDZV_ACT:
        on_act(st, event);
        break;
    case RDZV_RELIEVE:
        rdzv_relief_asked(turn, &event->relief);
        break;
    case RDZV_INTERRUPT:
        if (!st->ending.set) {
            rdzv_give_up(st, EXIT_INTERRUPTED, "interrupted");
            st->ending.interrupted = true;
        }
        break;
    case RDZV_TICK:
        break;
    }
}

void rdzv_step(struct rdzv *st, const struct rdzv_event *event, rm_time now, struct rdzv_out *out)
{
    const struct turn turn = {st, now, out};
    rdzv_out_begin(out);
    if (st->state == RDZV_FINISHED || st->state == RDZV_FAILED)
        return;
    bool stood_still = forgive_own_pause(&turn);
    rdzv_hang_listen(&turn, stood_still);
    rdzv_account(&turn);
    on_event(&turn, event);
    if (st->state != RDZV_FINISHED && st->state != RDZV_FAILED) {
        rdzv_check_silence(&turn);
        rdzv_check_hang(&turn);
        settle_states(&turn);
    }
    st->due = rdzv_deadline(st);
    rdzv_check_invariants(st);
}

static rm_time state_deadline(const struct rdzv *st)
{
    switch (st->state) {
    case RDZV_RECOVERING:
        return rdzv_recovering_until(st);
    case RDZV_GATHERING:
        return rdzv_gathering_until(st);
    case RDZV_FORMING:
        return rdzv_forming_until(st);
    case RDZV_QUIESCING:
        return rdzv_quiescing_until(st);
    case RDZV_TRAINING:
        return rdzv_training_until(st);
    case RDZV_SAVING:
        return rdzv_saving_until(st);
    default:
        return RM_NEVER;
    }
}

rm_time rdzv_deadline(const struct rdzv *st)
{
    if (st->state == RDZV_FINISHED || st->state == RDZV_FAILED)
        return RM_NEVER;
    bool finished = rdzv_all_finished(st) && !st->settings.program; /* a program's end is one word */
    bool more_to_tell = (st->final_saved || finished) && st->told < st->settings.steps;
    if (more_to_tell)
        return st->accounted; /* at once */
    rm_time at = rm_earlier(rm_earlier(state_deadline(st), rdzv_hang_at(st)), rdzv_trouble_at(st));
    at = rm_earlier(at, rdzv_will_at(st));
    if (st->alone_at > st->accounted)
        at = rm_earlier(at, st->alone_at);
    return rm_earlier(at, rdzv_silence_at(st));
}
