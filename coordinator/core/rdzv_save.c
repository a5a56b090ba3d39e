/* Checkpoints as they are written: pieces that come in, what is published, the SAVING state, and faults. */
#include "coordinator/core/rdzv_save.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_bridge.h"
#include "coordinator/core/rdzv_ending.h"
#include "coordinator/core/rdzv_fault.h"
#include "coordinator/core/rdzv_interval.h"
#include "coordinator/core/rdzv_leave.h"
#include "coordinator/core/rdzv_listen.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_outage.h"
#include "coordinator/core/rdzv_pairs.h"
#include "coordinator/core/rdzv_pieces.h"
#include "coordinator/core/rdzv_remedy.h"
#include "coordinator/core/rdzv_resume.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_stop.h"
#include "coordinator/core/rdzv_trouble.h"
#include "coordinator/core/rdzv_vouch.h"
#include "coordinator/core/rdzv_waiting.h"
#include "coordinator/core/rdzv_who.h"

/* ---- written and published ---- */

/* The fingerprint is that of whoever computed the state: since then one that computes otherwise may have
 * taken its place, and be the publisher. */
static void keep_fingerprint(const struct rdzv *st, struct rdzv_collection *c, const struct rdzv_worker *w)
{
    RM_ASSERT(c->used, "a piece of worker %d is of no checkpoint", rdzv_index(st, w));
    if (!c->publish.fingerprint[0])
        text_copy(c->publish.fingerprint, sizeof c->publish.fingerprint,
                  w->fingerprint[0] ? w->fingerprint : st->fingerprint);
}

/* The digest is that which its writer reported: another ring may since have come to the last step by another
 * history. */
static void keep_digest(const struct rdzv *st, struct rdzv_collection *c, const struct rdzv_worker *w)
{
    RM_ASSERT(c->used, "the weights of worker %d are of no checkpoint", rdzv_index(st, w));
    if (c->digest_known || !c->publish.final)
        return;
    c->digest_known = w->digest_known || st->digest_known;
    memcpy(c->digest, w->digest_known ? w->digest : st->digest, RM_HASH_BYTES);
}

static bool is_waited_for(const struct rdzv *st, int64_t step)
{
    return st->state == RDZV_SAVING && st->save.step == step;
}

/* A late piece of what that ring's states kept from being a checkpoint. */
static bool is_skipped(const struct rdzv *st, int64_t step)
{
    return st->skipped.step > 0 && st->skipped.step == step &&
           generation_compare(st->skipped.ring, st->ring) == 0 && !is_waited_for(st, step);
}

/* Two workers' states came to differ since they were compared. Pieces of both would make one that nobody had;
 * which of them is right nobody here knows. Where all stand still for it, there is nothing to wait for: a
 * program's states end the job, and of ours none counts any more, but what is older does. */
static void refuse_pieces(const struct turn *turn, const struct msg_checkpointed *m)
{
    struct rdzv *st = turn->st;
    bool waited_for = is_waited_for(st, m->step);
    rdzv_forget_pieces(st, m->step);
    st->skipped = (struct rdzv_skipped){.step = m->step, .ring = st->ring};
    struct rdzv_tell *t = rdzv_tell(turn, TELL_CHECKPOINT_SKIPPED);
    t->step = m->step;
    text_copy(t->text, sizeof t->text,
              "the workers' states of this step differ, so pieces of them make no checkpoint");
    if (!waited_for)
        return;
    if (!st->settings.brought)
        rdzv_vouch_for_none(st, st->ring, m->step);
    if (!st->settings.brought && !st->ending.set) {
        rdzv_say(st, "the workers' states of step %" PRId64 " differ, so none of them counts", m->step);
        rdzv_quiesce(turn, STOP_NOW);
        return;
    }
    st->ending.differ = true;
    rdzv_give_up(st, EXIT_TRAINING,
                 "the workers' states of step %" PRId64 " differ, so nothing is saved of them", m->step);
    rdzv_end(turn);
}

void rdzv_checkpointed(const struct turn *turn, struct rdzv_worker *w, const struct msg_checkpointed *m)
{
    struct rdzv *st = turn->st;
    rdzv_write_is_over(w, m->step);
    if (m->part >= m->parts || (!m->final && m->step <= st->saved) || is_skipped(st, m->step) ||
        rdzv_is_unvouched(st, m->step))
        return;
    if (rdzv_pieces_differ(st, m)) {
        refuse_pieces(turn, m);
        return;
    }
    struct rdzv_collection *c = rdzv_collection_of(st, m);
    keep_digest(st, c, w);
    keep_fingerprint(st, c, w);
    rdzv_slice_is_in(st, w, m->step, !c->in[m->part]);
    if (!c->in[m->part]) {
        rdzv_save_is_taken(turn, w);
        c->have++;
    }
    c->in[m->part] = true;
    RM_ASSERT(c->have <= c->parts, "%d of %d parts of step %" PRId64, c->have, c->parts, m->step);
    if (m->damaged)
        set_add(&c->damage, rdzv_index(st, w));
    rdzv_measure_slice(st, m);
    st->exact = st->exact && m->exact; /* also what was mixed before this coordinator came */
    c->publish.exact = c->publish.exact && m->exact;
    c->pieces[m->part] = m->count;
    memcpy(c->piece[m->part], m->piece, sizeof m->piece);
    rdzv_name_publishers(turn);
}

static void tell_published(const struct turn *turn, const struct msg_published *p)
{
    struct rdzv *st = turn->st;
    struct rdzv_tell *t = rdzv_tell(turn, TELL_CHECKPOINT_SAVED);
    t->step = p->step;
    t->final = p->final;
    t->bytes = p->bytes;
    t->took = p->took;
    t->waited = rdzv_outage_over(turn, p->step);
    rdzv_measure_publishing(st, p);
    /* Equal: its publisher died before it could say so, and others have found it meanwhile. */
    RM_ASSERT(p->final || p->step >= st->saved, "step %" PRId64 " is published behind step %" PRId64, p->step,
              st->saved);
    st->saved = p->step;
    st->final_saved = st->final_saved || p->final;
    rdzv_load_forgive(st, p->step);
}

/* Of two histories of one step, the one that somebody was told to publish. */
static const struct rdzv_collection *whole_one(const struct rdzv *st, const struct msg_published *p)
{
    const struct rdzv_collection *whole = NULL;
    for (int i = 0; i < COLLECTIONS; i++) {
        const struct rdzv_collection *c = &st->collection[i];
        bool same = c->used && c->publish.step == p->step && c->publish.final == p->final;
        if (same && c->have >= c->parts && (!whole || c->publisher >= 0))
            whole = c;
    }
    RM_ASSERT(!whole || whole->have == whole->parts, "step %" PRId64 " is whole without a part", p->step);
    return whole;
}

void rdzv_published(const struct turn *turn, const struct msg_published *p)
{
    struct rdzv *st = turn->st;
    st->saved_at = turn->now;
    rdzv_interval_published(turn, p->step);
    const struct rdzv_collection *whole = whole_one(st, p);
    bool overtaken = !p->final && p->step < st->saved; /* all went on from a newer one meanwhile */
    if (whole && !overtaken) {
        tell_published(turn, p);
        if (p->final && whole->digest_known)
            memcpy(st->digest, whole->digest, RM_HASH_BYTES);
    } else if (st->settings.predecessor.given && !p->final && p->step > st->saved)
        tell_published(turn, p); /* at a predecessor's word, and nobody was told */
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        st->worker[i].doubts = false;
    for (int i = 0; i < COLLECTIONS; i++) {
        struct rdzv_collection *c = &st->collection[i];
        bool over = c->publish.final ? st->final_saved : c->publish.step <= st->saved;
        c->used = c->used && !over;
        c->publisher = c->used ? c->publisher : -1;
    }
    rdzv_name_publishers(turn);
    rdzv_lists_are_old(st);
}

/* ---- SAVING ---- */

static bool may_save(const struct rdzv *st, const struct rdzv_worker *w, const struct msg_state *state)
{
    RM_ASSERT((unsigned)st->state < RDZV_FINISHED, "worker %d saves in state %s", rdzv_index(st, w),
              rdzv_state_name(st->state));
    return !rdzv_held_back(st, w) && rdzv_holds(st, w, state);
}

/* Who could not write a part of it (`failing`) is asked only where nobody else holds it: two of those would
 * hand it to each other. */
static bool choose_writers(const struct turn *turn, const struct msg_state *wanted, bool failing,
                           struct msg_save *save)
{
    const struct rdzv *st = turn->st;
    struct worker_set no_time = rdzv_leave_no_writers(turn, wanted);
    RM_ASSERT(save->count == 0, "step %" PRId64 " has %d writers before any is chosen", save->step,
              save->count);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (may_save(st, w, wanted) && !set_has(no_time, i) && rdzv_fails_to_save(w) == failing)
            save->worker[save->count++] = i;
    }
    return save->count > 0;
}

static void send_save(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->save.count > 0 && st->save.count <= RM_WORKERS_MAX, "step %" PRId64 " is saved in %d parts",
              st->save.step, st->save.count);
    rdzv_send(turn, MSG_SAVE)->save = st->save;
    for (int i = 0; i < st->save.count; i++)
        rdzv_send_to(turn, &st->worker[st->save.worker[i]]);
}

bool rdzv_save_begin(const struct turn *turn, const struct msg_state *state, bool final)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state != RDZV_FINISHED && st->state != RDZV_FAILED, "step %" PRId64 " is saved in state %s",
              state->step, rdzv_state_name(st->state));
    /* a checkpoint of that step stands, be it of another history: its place is taken */
    if (!state->held || (!final && (state->step == 0 || state->step <= st->saved)))
        return false;
    struct msg_save save = {.step = state->step, .final = final};
    struct msg_state wanted = rdzv_what_to_save(st, state, final);
    if (wanted.held && wanted.step != state->step)
        return false;
    if (!choose_writers(turn, &wanted, false, &save) && !choose_writers(turn, &wanted, true, &save))
        return false;
    if (st->state != RDZV_SAVING || st->save.step != save.step || st->save.final != final) {
        st->save_since = st->save_again_at = turn->now;
        st->vanished = 0;
        st->save_waits = true;
        st->save_handed_on = false;
    }
    st->save = save;
    st->save_again = false;
    rdzv_save_is_cut(st);
    st->save_state = *state;
    rdzv_say(st, "saving step %" PRId64 "%s from %d workers", save.step, final ? " as final" : "",
             save.count);
    send_save(turn);
    rdzv_move(turn, RDZV_SAVING);
    return true;
}

static bool a_writer_is_gone(const struct rdzv *st)
{
    RM_ASSERT(st->state == RDZV_SAVING, "step %" PRId64 " is saved in state %s", st->save.step,
              rdzv_state_name(st->state));
    for (int i = 0; i < st->save.count; i++) {
        const struct rdzv_worker *w = &st->worker[st->save.worker[i]];
        if (rdzv_has_gone(w) && !rdzv_part_is_in(st, i))
            return true;
    }
    return false;
}

/* Too few were here, so what they hold was to be saved before anything else. One of them can't, or the time
 * for that is over, and by now enough others have come: they get that state from memory, and nobody waits for
 * its store, nor ends. */
static bool is_needless(const struct rdzv *st)
{
    RM_ASSERT(st->state == RDZV_SAVING && st->save.count > 0, "step %" PRId64 " is saved by %d in state %s",
              st->save.step, st->save.count, rdzv_state_name(st->state));
    bool fails = st->accounted >= rdzv_save_gives_up_at(st) || st->save_held_up;
    for (int i = 0; i < st->save.count; i++)
        fails = fails || rdzv_fails_to_save(&st->worker[st->save.worker[i]]);
    bool goes_on = !st->save.final && !st->ending.set && rdzv_candidates(st) >= st->settings.workers_min;
    return fails && goes_on && !st->pairs.too_few && !rdzv_pairs_hold_back(st, st->accounted) &&
           rdzv_leave_before_ring(st) == LEAVE_HAND_OVER;
}

/* True: all stop, and who has only heard of the last step saves it as well. */
static bool give_to_listeners(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_SAVING, "step %" PRId64 " is given to others in state %s", st->save.step,
              rdzv_state_name(st->state));
    if (!st->save.final || !rdzv_listen_holds(st))
        return false;
    rdzv_say(st, "nobody of the ring can save step %" PRId64 ", and who has heard it may", st->save.step);
    rdzv_quiesce_for_all(turn);
    return true;
}

void rdzv_settle_saving(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_SAVING, "step %" PRId64 " is saved in state %s", st->save.step,
              rdzv_state_name(st->state));
    if (rdzv_save_is_done(st)) {
        if (st->save.final || st->ending.set)
            rdzv_end(turn);
        else
            rdzv_move(turn, RDZV_GATHERING);
        return;
    }
    if (is_needless(st)) {
        rdzv_say(st, "enough workers are here without the one that can't save step %" PRId64, st->save.step);
        rdzv_quiesce_for_all(turn);
        return;
    }
    if (rdzv_save_waits_in_vain(turn) && give_to_listeners(turn))
        return;
    if (rdzv_save_gives_up(turn))
        return;
    rdzv_name_publishers(turn);
    bool anew = (st->save_again && turn->now >= st->save_again_at) || a_writer_is_gone(st);
    if (anew && rdzv_save_begin(turn, &st->save_state, st->save.final))
        return;
    if (anew && give_to_listeners(turn))
        return;
    if (rdzv_trouble_at(st) != RM_NEVER)
        return; /* who can't save it now may a moment later */
    bool in_vain = !rdzv_on_its_way(st) || turn->now >= st->state_since + st->settings.start_timeout;
    bool nobody_left = !rdzv_choose_publisher(st) && in_vain;
    if (nobody_left) {
        rdzv_quiesce(turn, STOP_NOW);
        return;
    }
    if (!anew)
        return;
    rdzv_say(st, "nobody holds step %" PRId64 " any more", st->save.step);
    if (st->ending.set)
        rdzv_end(turn);
    else
        rdzv_quiesce(turn, STOP_NOW); /* whoever came meanwhile has not been asked what it holds */
}

/* RM_NEVER: no pieces vanished, or it has begun. */
static rm_time save_anew_at(const struct rdzv *st)
{
    return st->save_again && st->save_again_at > st->accounted ? st->save_again_at : RM_NEVER;
}

rm_time rdzv_saving_until(const struct rdzv *st)
{
    RM_ASSERT(st->state == RDZV_SAVING, "a save is waited for in state %s", rdzv_state_name(st->state));
    rm_time at = st->state_since + st->settings.start_timeout;
    at = rm_earlier(at > st->accounted ? at : RM_NEVER, rdzv_save_gives_up_at(st));
    return rm_earlier(at, save_anew_at(st));
}

/* ---- storage that fails ---- */

/* What the run ends with goes to others who hold it; where nobody is left who could, it is tried again until
 * the time for that is over. */
static void save_fault(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_SAVING, "worker %d can't save in state %s", rdzv_index(st, w),
              rdzv_state_name(st->state));
    struct fault_decision d = rdzv_trouble(turn, w, FAULT_IN_SAVE, f, false);
    if (d.remedy == FAULT_ENDS) {
        if (!give_to_listeners(turn))
            rdzv_save_failed(turn, f->step, f->detail);
        return;
    }
    rdzv_say(st, "worker %d can't save step %" PRId64 ": %s", rdzv_index(st, w), f->step, f->detail);
    if (f->lasted)
        rdzv_tell_waiting_for(turn, f->detail);
    if (rdzv_is_published_by(st, w, f))
        rdzv_forget_publisher(st, w);
    else
        st->save_again = true;
}

static void tell_not_written(const struct turn *turn, const struct msg_fault *f)
{
    snprintf(rdzv_tell(turn, TELL_WAITING)->text, MSG_DETAIL_MAX,
             "the checkpoint of step %" PRId64 " can't be written; training goes on: %s", f->step, f->detail);
}

static void write_anew(const struct turn *turn, const struct msg_fault *f)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state == RDZV_SAVING && f->step == st->save.step,
              "step %" PRId64 " is written anew, and %" PRId64 " is saved", f->step, st->save.step);
    if (st->vanished++ && !st->settings.unsupervised &&
        turn->now >= st->save_since + st->settings.save_patience) {
        rdzv_save_failed(turn, f->step, f->detail);
        return;
    }
    st->save_again = true;
    st->save_again_at = turn->now + fault_pause(st->vanished);
    rdzv_tell_waiting_for(turn, f->detail);
}

/* What its writers said is written is not there, or is not what they said, or a checkpoint of that name that
 * stands there is damaged and nobody else has said so. Which of them it was can't be told, and who found it
 * was not; but the next one to publish is another, who may find that all is well. */
static void pieces_vanished(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(f->class == CLASS_OBJECT, "pieces of step %" PRId64 " vanished, by a fault of class %d",
              f->step, (int)f->class);
    w->doubts = true;
    rdzv_forget_pieces(st, f->step);
    rdzv_forget_publisher(st, w);
    if (st->state == RDZV_SAVING && f->step == st->save.step)
        write_anew(turn, f);
    else
        tell_not_written(turn, f);
}

/* In SAVING, for what this worker's call is about, or for what it can't do as long as that is under way: its
 * memory is in use, and its thread. */
static bool waits_for(const struct rdzv *st, const struct rdzv_worker *w, const struct msg_fault *f)
{
    RM_ASSERT(st->state == RDZV_SAVING, "worker %d is waited for in state %s", rdzv_index(st, w),
              rdzv_state_name(st->state));
    for (int i = 0; i < st->save.count; i++) {
        if (st->save.worker[i] == rdzv_index(st, w) && rdzv_save_lacks(st, i))
            return true;
    }
    return rdzv_is_published_by(st, w, f);
}

/* A periodic checkpoint that can't be written costs nothing but itself; one that the run ends with does. */
void rdzv_write_fault(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(f->step >= 0, "worker %d can't write step %" PRId64, rdzv_index(st, w), f->step);
    bool saving = st->state == RDZV_SAVING;
    if (f->class == CLASS_OBJECT && rdzv_is_published_by(st, w, f)) {
        pieces_vanished(turn, w, f);
        return;
    }
    if (saving && (f->lasted ? waits_for(st, w, f) : f->step == st->save.step)) {
        save_fault(turn, w, f);
        return;
    }
    if (!f->lasted) {
        tell_not_written(turn, f);
        rdzv_forget_pieces(st, f->step);
    } else if (!saving && !rdzv_is_stuck(st, w)) /* it says so again and again */
        rdzv_tell_waiting_for(turn, f->detail);
    rdzv_slice_fault(turn, w, f);
}
