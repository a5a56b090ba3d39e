/* What is done about a worker in trouble: it waits, is left out, or the job ends. */
#include "coordinator/core/rdzv_remedy.h"

#include <stdio.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_pairs.h"
#include "coordinator/core/rdzv_recovery.h"
#include "coordinator/core/rdzv_stop.h"
#include "coordinator/core/rdzv_trouble.h"
#include "coordinator/core/rdzv_waiting.h"
#include "coordinator/core/rdzv_who.h"

/* In a run its index stays empty from now on; in pods another one may come, on another machine. */
void rdzv_leave_out(const struct turn *turn, struct rdzv_worker *w, const char *why, int exit_code)
{
    struct rdzv *st = turn->st;
    int index = rdzv_index(st, w);
    RM_ASSERT(exit_code != EXIT_DONE, "worker %d is left out with the code of one that is done", index);
    char text[MSG_DETAIL_MAX];
    text_print_ends(text, sizeof text, "worker %d is left out: %s", index, why);
    rdzv_say(st, "%s", text);
    if (w->presence == PRESENT) {
        struct message *m = rdzv_send_one(turn, w, MSG_ABANDON);
        m->abandon.exit_code = exit_code;
        m->abandon.elsewhere = true;
        text_copy_ends(m->abandon.why, sizeof m->abandon.why, text);
    }
    if (st->settings.unsupervised) {
        rdzv_tell_worker(turn, TELL_WORKER_REFUSED, index, text);
        rdzv_lose(turn, w, text);
        return;
    }
    text_copy_ends(w->quarantine, sizeof w->quarantine, why);
    w->expected = -1;
    rdzv_tell_worker(turn, TELL_WORKER_QUARANTINED, index, w->quarantine);
    rdzv_lose(turn, w, text);
    RM_ASSERT(w->presence == ABSENT && w->rank < 0, "worker %d is left out, and is rank %d", index, w->rank);
    bool any_will_do = st->known_step >= st->settings.steps && rdzv_left(st) > 0;
    if (rdzv_left(st) < st->settings.workers_min && !any_will_do)
        rdzv_give_up(st, exit_code, "worker %d: %s", index, why);
}

void rdzv_act_on_trouble(const struct turn *turn, struct rdzv_worker *w, const struct fault_decision *d)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(d->pause > 0, "worker %d is asked again after %lld ns", rdzv_index(st, w), (long long)d->pause);
    if (d->remedy == FAULT_ENDS)
        rdzv_give_up(st, d->exit_code, "worker %d: %s", rdzv_index(st, w), w->trouble.why);
    else if (d->remedy == FAULT_LEAVES_OUT)
        rdzv_leave_out(turn, w, w->trouble.why, d->exit_code);
    else if (d->remedy == FAULT_WAITS)
        rdzv_say(st, "worker %d waits for %.0f s: %s", rdzv_index(st, w), (double)d->pause / RM_S,
                 w->trouble.why);
}

/* Its trainer ends after this word; that end is no failure of its own. */
void rdzv_work_fault(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f)
{
    struct fault_decision d = rdzv_trouble(turn, w, FAULT_IN_WORK, f, false);
    w->trouble.exit_told = true;
    rdzv_act_on_trouble(turn, w, &d);
    if (d.remedy == FAULT_ENDS && !turn->st->settings.unsupervised)
        rdzv_leave_out(turn, w, w->trouble.why, d.exit_code); /* it is not to be started again */
    RM_ASSERT(w->trouble.where == FAULT_IN_WORK, "worker %d fails at its work, and at place %d",
              rdzv_index(turn->st, w), (int)w->trouble.where);
}

/* Once may be a ring that changed meanwhile. */
void rdzv_source_fault(const struct turn *turn, struct rdzv_worker *source, const struct msg_fault *f)
{
    struct fault_decision d = rdzv_trouble(turn, source, FAULT_IN_WORK, f, false);
    RM_ASSERT(source->presence == PRESENT, "worker %d gave a wrong state, and is not here",
              rdzv_index(turn->st, source));
    if (source->trouble.times == 1)
        source->trouble.until = turn->now;
    else
        rdzv_act_on_trouble(turn, source, &d);
}

void rdzv_slice_fault(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f)
{
    struct fault_decision d = rdzv_trouble(turn, w, FAULT_IN_SLICE, f, false);
    RM_ASSERT(d.remedy != FAULT_ENDS, "a part that worker %d does not write ends the run",
              rdzv_index(turn->st, w));
    if (d.remedy == FAULT_LEAVES_OUT)
        rdzv_leave_out(turn, w, w->writing.why, d.exit_code);
}

/* ---- a write that does not return ---- */

static bool another_is_well(const struct rdzv *st, const struct rdzv_worker *but)
{
    RM_ASSERT(rdzv_is_stuck(st, but), "worker %d stands still alone, and does not", rdzv_index(st, but));
    for (int r = 0; r < st->world; r++) {
        const struct rdzv_worker *w = &st->worker[st->member[r]];
        if (w != but && w->presence == PRESENT && !rdzv_is_stuck(st, w))
            return true;
    }
    return false;
}

/* A boundary that all were to stop at is not reached any more. */
static void end_in_ring(const struct turn *turn, const struct rdzv_worker *w)
{
    struct rdzv *st = turn->st;
    rdzv_give_up(st, EXIT_MACHINE, "worker %d: %s", rdzv_index(st, w), w->writing.why);
    if (st->state == RDZV_QUIESCING && st->stop_at == STOP_BOUNDARY)
        rdzv_quiesce(turn, STOP_NOW);
    RM_ASSERT(st->ending.set, "worker %d ends a run that goes on", rdzv_index(st, w));
}

/* Outside of the ring, which it can't join as that reaches no boundary any more; so it may not have been told
 * to stop yet. Who is apart from a member would be left out of the next ring as well. */
static bool waits_outside(const struct rdzv *st, const struct rdzv_worker *w)
{
    RM_ASSERT(w->presence != PRESENT || w->rank < st->world, "worker %d has rank %d of %d", rdzv_index(st, w),
              w->rank, st->world);
    bool here = w->presence == PRESENT && w->trainer_pid && w->address[0];
    bool may_join = here && w->rank < 0 && !rdzv_pairs_bar(st, rdzv_index(st, w));
    return may_join && !w->leaving && !w->released && !rdzv_held_back(st, w);
}

/* Those who are in the ring keep their places where all are taken: it would be formed with the same ones. */
static bool enough_wait_outside(const struct rdzv *st)
{
    int n = 0;
    if (st->world >= rdzv_members_max(st))
        return false;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        n += waits_outside(st, &st->worker[i]);
    RM_ASSERT(n <= RM_WORKERS_MAX - st->world, "%d wait outside of a ring of %d", n, st->world);
    return n >= st->settings.workers_min;
}

/* Who is stuck gives them what it holds, and is let go by the next ring that it holds up. For their answers
 * the ring waits, as it is formed for them. */
static void form_with_others(const struct turn *turn, const struct rdzv_worker *stuck)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(stuck->rank >= 0, "worker %d holds up a ring, and is in none", rdzv_index(st, stuck));
    rdzv_say(st, "others are well: worker %d: %s", rdzv_index(st, stuck), stuck->writing.why);
    rdzv_recovery_begin(turn, CAUSE_RING_ERROR, NULL);
    rdzv_quiesce_for_all(turn);
}

/* Its trainer waits for memory that a call is about which does not return, and the ring for its trainer.
 * Another trainer would wait as well. In pods another worker may come elsewhere, so that fewer than min for a
 * while are better than all who stand still; but nobody goes who is alone, or no worse off than the rest. */
void rdzv_stuck_in_ring(const struct turn *turn, struct rdzv_worker *w)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(rdzv_is_stuck(st, w), "no call of worker %d stands still", rdzv_index(st, w));
    bool over = !st->settings.unsupervised && turn->now >= w->writing.since + st->settings.end_timeout;
    bool alone = another_is_well(st, w);
    if (alone && (over || st->settings.unsupervised))
        rdzv_leave_out(turn, w, w->writing.why, EXIT_MACHINE);
    else if ((over || st->settings.unsupervised) && enough_wait_outside(st))
        form_with_others(turn, w);
    else if (over)
        end_in_ring(turn, w);
    else
        rdzv_tell_waiting_for(turn, w->writing.why);
}
