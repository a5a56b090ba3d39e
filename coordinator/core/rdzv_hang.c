/* A ring that stands still although everybody is there: who holds it up, and what is done about it. */
#include "coordinator/core/rdzv_hang.h"

#include <stdio.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_bridge.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_pairs.h"
#include "coordinator/core/rdzv_program.h"
#include "coordinator/core/rdzv_recovery.h"
#include "coordinator/core/rdzv_remedy.h"
#include "coordinator/core/rdzv_ring.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_stop.h"
#include "coordinator/core/rdzv_trouble.h"
#include "coordinator/core/rdzv_who.h"

enum {
    ANSWER_FORMINGS = 3,
    STEPS_OF_PATIENCE = 10,
    LOOKS_PER_TIMEOUT = 4,
    FRESH_BEATS = 4,
    SILENT_BEATS = 2,
    SLOW_PATIENCES = 4
};

static const rm_time least_patience = 30 * RM_S; /* where the job leaves it to us */
static const rm_time least_fresh = RM_S / 2;     /* a waiting trainer beats ten times a second */

static rm_time patience(const struct rdzv *st)
{
    RM_ASSERT(st->median_step >= 0, "a step takes %lld ns", (long long)st->median_step);
    /* heartbeats are all that shows of a program, and each comes by two clocks */
    if (st->settings.program)
        return rm_later(least_patience,
                        rm_later(st->settings.step_timeout, FRESH_BEATS * st->settings.heartbeat));
    if (st->settings.step_timeout > 0)
        return st->settings.step_timeout;
    rm_time steps = STEPS_OF_PATIENCE * st->median_step;
    return steps > least_patience ? steps : least_patience;
}

void rdzv_hang_heartbeat(struct rdzv_worker *w, const struct msg_heartbeat *h, rm_time now)
{
    if (h->counter != w->counter)
        w->turned = now;
    w->counter = h->counter;
    w->waiting_for = h->waiting_for;
}

/* One step in ten that takes ten times as long, for an evaluation or for a machine that had other things to
 * do, would draw a mean along; the median stays. */
static rm_time median_of_newest(const struct rdzv *st, int count)
{
    RM_ASSERT(count > 0 && count <= STEP_TIMES_KEPT && count <= st->steps_timed, "%d of %lld steps", count,
              (long long)st->steps_timed);
    rm_time sorted[STEP_TIMES_KEPT];
    for (int i = 0; i < count; i++) {
        rm_time took = st->step_times[(st->steps_timed - 1 - i) % STEP_TIMES_KEPT];
        int at = i;
        for (; at > 0 && sorted[at - 1] > took; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = took;
    }
    return sorted[count / 2];
}

static int timed_of(const struct rdzv *st, int most)
{
    most = most < STEP_TIMES_KEPT ? most : STEP_TIMES_KEPT;
    return st->steps_timed < most ? (int)st->steps_timed : most;
}

void rdzv_hang_step_took(struct rdzv *st, rm_time took)
{
    RM_ASSERT(took > 0, "step %lld took %lld ns", (long long)st->steps_timed, (long long)took);
    st->step_times[st->steps_timed++ % STEP_TIMES_KEPT] = took;
    st->median_step = median_of_newest(st, timed_of(st, STEP_TIMES_KEPT));
}

rm_time rdzv_hang_step_of_ring(const struct rdzv *st)
{
    int count = rdzv_ring_has_pace(st) ? timed_of(st, st->paced.steps) : 0;
    RM_ASSERT(count >= 0 && count <= st->steps_timed, "%d steps of a ring of %d", count, st->world);
    return count ? median_of_newest(st, count) : 0;
}

/* Who says that it waits for itself waits for nobody here. */
static bool waits_for_member(const struct rdzv *st, const struct rdzv_worker *w)
{
    int peer = w->waiting_for;
    return peer >= 0 && peer < RM_WORKERS_MAX && st->worker[peer].rank >= 0 && &st->worker[peer] != w;
}

/* It has nothing more to do here. */
static bool is_done(const struct rdzv *st, const struct rdzv_worker *w)
{
    RM_ASSERT(w->rank >= 0, "worker %d is no member that could be done", rdzv_index(st, w));
    return st->state == RDZV_QUIESCING ? w->stopped_round == st->round : w->finished;
}

/* Follows who waits for whom, from one that waits. */
static struct rdzv_worker *end_of_chain(struct rdzv *st, struct rdzv_worker *w)
{
    for (int hops = 0; hops < st->world && waits_for_member(st, w); hops++) {
        struct rdzv_worker *next = &st->worker[w->waiting_for];
        if (is_done(st, next))
            break;
        w = next;
    }
    RM_ASSERT(w->rank >= 0, "worker %d holds up a ring that it is not in", rdzv_index(st, w));
    return w;
}

/* What a member shows. Its word alone is no evidence: one that is stopped in the middle of waiting goes on
 * saying that it waits. But who waits beats (trainer/collective/tcp_ring.h), so that its counter grows. */
enum sign {
    SIGN_OF_WORK, /* it computes, or it says nothing clear yet: look again later */
    SIGN_OF_WAITING,
    SIGN_OF_NOTHING /* not moved for all our patience */
};

/* What it did, or did not do, before it was asked for anything here does not count. */
static rm_time still_for(const struct rdzv *st, const struct rdzv_worker *w, rm_time now)
{
    rm_time still = now - rm_later(w->turned, st->state_since);
    RM_ASSERT(still >= 0, "worker %d moves %lld ns from now", rdzv_index(st, w), (long long)-still);
    return still;
}

static rm_time fresh(const struct rdzv *st)
{
    rm_time beats = FRESH_BEATS * st->settings.heartbeat;
    return beats > least_fresh ? beats : least_fresh;
}

static enum sign sign_of(const struct rdzv *st, const struct rdzv_worker *w, rm_time now)
{
    if (still_for(st, w, now) >= patience(st))
        return SIGN_OF_NOTHING;
    bool waits = w->waiting_for >= 0 && now - w->turned < fresh(st);
    return waits ? SIGN_OF_WAITING : SIGN_OF_WORK;
}

static int64_t came_to_all(const struct rdzv *st)
{
    int64_t came = 0;
    for (int r = 0; r < st->world; r++)
        came += st->worker[st->member[r]].bytes;
    return came;
}

/* All wait and show it. Whoever has only just stopped to does so, too, for a while, and so do all in a
 * reduction that is merely slow: only where it stays so, and nothing comes to anybody, is it true. What comes
 * in drops is no reduction. */
static bool is_circle(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    int64_t came = came_to_all(st);
    bool slow = came > st->circle_came && turn->now < st->turned + SLOW_PATIENCES * patience(st);
    if (st->circled == RM_NEVER || st->circled < st->turned || slow)
        st->circled = turn->now;
    st->circle_came = came;
    RM_ASSERT(st->circled <= turn->now, "all wait since %lld ns from now",
              (long long)(st->circled - turn->now));
    return turn->now - st->circled >= 2 * fresh(st);
}

/* In a ring each waits for the one before it, so that the one to whom nothing comes holds up all: of those
 * who wait it has received least. */
static bool is_behind(const struct rdzv_worker *w, const struct rdzv_worker *than)
{
    return !than || w->bytes < than->bytes;
}

/* The one that has stood still longest, if for all our patience: on a machine without a moment to spare
 * others may look like it. Else, where all wait and show it, nobody does, and it is their connections:
 * *ret_behind is the one that has received least; unless the chain ends at one that waits for nobody here.
 * With one that computes, slow as it may be, nothing hangs. NULL: nobody (yet). */
static struct rdzv_worker *culprit(const struct turn *turn, struct rdzv_worker **ret_behind)
{
    struct rdzv *st = turn->st;
    struct rdzv_worker *stillest = NULL, *behind = NULL;
    int waiting = 0, working = 0;
    *ret_behind = NULL;
    for (int r = 0; r < st->world; r++) {
        struct rdzv_worker *w = &st->worker[st->member[r]];
        if (w->presence != PRESENT || w->rank < 0)
            return NULL; /* its going says more */
        if (is_done(st, w))
            continue;
        enum sign sign = sign_of(st, w, turn->now);
        if (sign == SIGN_OF_WAITING && is_behind(w, behind))
            behind = w;
        waiting += sign == SIGN_OF_WAITING;
        working += sign == SIGN_OF_WORK;
        bool stiller = !stillest || still_for(st, w, turn->now) > still_for(st, stillest, turn->now);
        if (sign == SIGN_OF_NOTHING && stiller)
            stillest = w;
    }
    if (!stillest && !working && waiting) {
        RM_ASSERT(behind, "%d wait in a ring of %d, and nobody is behind", waiting, st->world);
        struct rdzv_worker *end = end_of_chain(st, behind);
        bool circle = is_circle(turn), nobody_hangs = waits_for_member(st, end);
        *ret_behind = circle && nobody_hangs && waits_for_member(st, behind) ? behind : NULL;
        return circle && !nobody_hangs ? end : NULL;
    }
    st->circled = RM_NEVER;
    return stillest;
}

/* Its agent kills its trainer and starts another one on the same memory. */
static void accuse(const struct turn *turn, struct rdzv_worker *w, const char *why)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(w->presence == PRESENT, "worker %d is accused, and is not here", rdzv_index(st, w));
    struct message *m = rdzv_send_one(turn, w, MSG_FAULT);
    m->fault.kind = FAULT_HANG;
    m->fault.peer = rdzv_index(st, w);
    m->fault.step = -1;
    text_copy_ends(m->fault.detail, sizeof m->fault.detail, why);
    rdzv_say(st, "worker %d: %s", rdzv_index(st, w), why);
    if (w->rank >= 0)
        rdzv_tell_worker(turn, TELL_WORKER_LOST, rdzv_index(st, w), why);
    rdzv_program_accused(st, w);
    w->trainer_pid = 0;
    w->stopped_round = -1;
    w->asked = RM_NEVER;
    rdzv_ring_without(turn, w, CAUSE_HANG);
    w->rank = -1;
    st->accused_since = turn->now;
    /* A drill is no failure: what its agent says of the trainer's end was ordered. */
    w->act = w->act == CAUSE_HANG ? CAUSE_TRAINER_EXIT : CAUSE_NONE;
}

/* ---- in a ring ---- */

/* When to look next; RM_NEVER while no ring is at work. */
static rm_time ring_at(const struct rdzv *st)
{
    if (!rdzv_ring_runs(st))
        return RM_NEVER;
    rm_time at = st->turned + patience(st);
    return at > st->hang_look_at ? at : st->hang_look_at;
}

/* All are well, so that nobody's trainer is killed for it: what one sends the other does not receive. */
static void break_circle(const struct turn *turn, const struct rdzv_worker *behind)
{
    struct rdzv *st = turn->st;
    char why[RM_WHY_MAX];
    int by = rdzv_index(st, behind), peer = behind->waiting_for;
    RM_ASSERT(behind->rank >= 0 && st->worker[peer].rank >= 0,
              "workers %d and %d, of ranks %d and %d, hold up a ring", by, peer, behind->rank,
              st->worker[peer].rank);
    snprintf(why, sizeof why, "no step for %.1f s, as nothing comes from worker %d to worker %d",
             (double)(turn->now - st->turned) / RM_S, peer, by);
    rdzv_say(st, "%s", why);
    rdzv_pairs_stall(st, by, peer, why);
    rdzv_recovery_begin(turn, CAUSE_RING_ERROR, NULL);
    rdzv_quiesce(turn, STOP_NOW);
}

static void check_ring(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    char why[RM_WHY_MAX];
    struct rdzv_worker *behind;
    if (turn->now < ring_at(st))
        return;
    st->hang_look_at = turn->now + patience(st) / LOOKS_PER_TIMEOUT;
    struct rdzv_worker *w = culprit(turn, &behind);
    RM_ASSERT(!w || !behind, "a worker hangs, and nobody does, in a ring of %d", st->world);
    if (behind)
        break_circle(turn, behind);
    if (!w)
        return;
    if (rdzv_is_stuck(st, w)) {
        rdzv_stuck_in_ring(turn, w);
        return;
    }
    snprintf(why, sizeof why, "its trainer hangs: no step for %.1f s",
             (double)(turn->now - st->turned) / RM_S);
    accuse(turn, w, why);
}

/* ---- told to stop at once ---- */

static bool owes_answer(const struct rdzv_worker *w)
{
    return w->presence == PRESENT && w->trainer_pid && !w->released && w->asked != RM_NEVER;
}

/* It may fill or load a memory first, and then it counts; and so does a launcher for as long as its program
 * needs to end, which nobody can make shorter: it is not its launcher's fault. Who was late while the ring
 * formed stood still for formTimeout already, by the same counter. */
static rm_time answer_at(const struct rdzv *st, const struct rdzv_worker *w)
{
    RM_ASSERT(w->asked != RM_NEVER, "worker %d owes no answer", rdzv_index(st, w));
    rm_time since = rm_later(w->turned, w->asked);
    bool was_late = w->slowness > 0 && since == w->asked;
    return since + (ANSWER_FORMINGS - was_late) * st->settings.form_timeout;
}

/* Whether anybody should still wait for the word of one who is no member. */
bool rdzv_hang_answers(const struct rdzv *st, const struct rdzv_worker *w, rm_time now)
{
    return !owes_answer(w) || now < w->asked + st->settings.join_window;
}

rm_time rdzv_hang_answers_until(const struct rdzv *st)
{
    rm_time until = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (owes_answer(w))
            until = rm_later(until, answer_at(st, w));
    }
    RM_ASSERT(until >= 0, "answers are owed until %lld ns", (long long)until);
    return until ? rm_later(until, st->blames_from) : 0;
}

static void check_answers(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->state != RDZV_FINISHED && st->state != RDZV_FAILED, "answers are waited for in state %s",
              rdzv_state_name(st->state));
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (owes_answer(w) && turn->now >= answer_at(st, w))
            accuse(turn, w, "its trainer hangs: it did not stop when it was told to");
    }
}

/* ---- saving ---- */

/* While its agent writes, its heartbeats count on. */
static rm_time save_at(const struct rdzv *st, int part)
{
    const struct rdzv_worker *w = &st->worker[st->save.worker[part]];
    RM_ASSERT(part >= 0 && part < st->save.count, "part %d of %d that are saved", part, st->save.count);
    if (w->presence != PRESENT || !w->trainer_pid || !rdzv_save_lacks(st, part) || rdzv_is_stuck(st, w))
        return RM_NEVER;
    return (w->turned > st->state_since ? w->turned : st->state_since) + patience(st);
}

static void check_save(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    for (int part = 0; st->state == RDZV_SAVING && part < st->save.count; part++) {
        if (turn->now >= save_at(st, part))
            accuse(turn, &st->worker[st->save.worker[part]], "its trainer hangs: it does not save");
    }
}

/* ---- its own standing still ---- */

static bool hears_nobody(const struct turn *turn)
{
    const struct rdzv *st = turn->st;
    bool ring = rdzv_ring_runs(st);
    rm_time newest = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool counts = w->presence == PRESENT && (w->rank >= 0 || !ring);
        newest = counts ? rm_later(newest, w->heard) : newest;
    }
    RM_ASSERT(newest <= turn->now, "a worker is heard %lld ns from now", (long long)(newest - turn->now));
    return turn->now - newest > SILENT_BEATS * st->settings.heartbeat;
}

/* Who hears nobody stood still itself, or its network did: that says nothing of one of them. A pause of its
 * own that ends shortly after it was to look is not forgiven (rdzv.c), and shows so; one that is shows
 * nothing of those who moved meanwhile. What came meanwhile lies in a pile, of which only the whole says who
 * is well: each word of it comes in a call of its own. */
void rdzv_hang_listen(const struct turn *turn, bool stood_still)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(turn->now >= st->accounted, "time goes back by %lld ns",
              (long long)(st->accounted - turn->now));
    if (stood_still || hears_nobody(turn))
        st->blames_from = turn->now + st->settings.heartbeat;
}

void rdzv_check_hang(const struct turn *turn)
{
    if (turn->now < turn->st->blames_from)
        return;
    check_ring(turn);
    check_answers(turn);
    check_save(turn);
}

/* When to look next; RM_NEVER while nobody has anything to do. */
rm_time rdzv_hang_at(const struct rdzv *st)
{
    rm_time at = ring_at(st);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        if (owes_answer(&st->worker[i]))
            at = rm_earlier(at, answer_at(st, &st->worker[i]));
    }
    for (int part = 0; st->state == RDZV_SAVING && part < st->save.count; part++)
        at = rm_earlier(at, save_at(st, part));
    return rm_later(at, st->blames_from);
}
