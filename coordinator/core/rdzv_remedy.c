/* What is done about a worker in trouble: it waits, is left out, or the job ends. */
#include "coordinator/core/rdzv_remedy.h"

#include <stdio.h>

#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_stop.h"
#include "coordinator/core/rdzv_trouble.h"
#include "coordinator/core/rdzv_waiting.h"
#include "coordinator/core/rdzv_who.h"

/* In a run its index stays empty from now on; in pods another one may come, on another machine. */
void rdzv_leave_out(struct rdzv *st, struct rdzv_worker *w, const char *why, int exit_code, rm_time now,
                    struct rdzv_out *out)
{
    int index = rdzv_index(st, w);
    char text[MSG_DETAIL_MAX];
    snprintf(text, sizeof text, "worker %d is left out: %.300s", index, why);
    rdzv_say(st, "%s", text);
    if (w->presence == PRESENT) {
        struct message *m = rdzv_send_one(st, out, w, MSG_ABANDON);
        m->abandon.exit_code = exit_code;
        m->abandon.elsewhere = true;
        text_copy(m->abandon.why, sizeof m->abandon.why, text);
    }
    if (st->settings.unsupervised) {
        rdzv_tell_worker(st, out, TELL_WORKER_REFUSED, index, text);
        rdzv_lose(st, w, text, now, out);
        return;
    }
    snprintf(w->quarantine, sizeof w->quarantine, "%.180s", why);
    w->expected = -1;
    rdzv_tell_worker(st, out, TELL_WORKER_QUARANTINED, index, w->quarantine);
    rdzv_lose(st, w, text, now, out);
    bool any_will_do = st->known_step >= st->settings.steps && rdzv_left(st) > 0;
    if (rdzv_left(st) < st->settings.workers_min && !any_will_do)
        rdzv_give_up(st, exit_code, "worker %d: %s", index, why);
}

void rdzv_act_on_trouble(struct rdzv *st, struct rdzv_worker *w, const struct fault_decision *d, rm_time now,
                         struct rdzv_out *out)
{
    if (d->remedy == FAULT_ENDS)
        rdzv_give_up(st, d->exit_code, "worker %d: %s", rdzv_index(st, w), w->trouble.why);
    else if (d->remedy == FAULT_LEAVES_OUT)
        rdzv_leave_out(st, w, w->trouble.why, d->exit_code, now, out);
    else if (d->remedy == FAULT_WAITS)
        rdzv_say(st, "worker %d waits for %.0f s: %s", rdzv_index(st, w), (double)d->pause / RM_S,
                 w->trouble.why);
}

/* Its trainer ends after this word; that end is no failure of its own. */
void rdzv_work_fault(struct rdzv *st, struct rdzv_worker *w, const struct msg_fault *f, rm_time now,
                     struct rdzv_out *out)
{
    struct fault_decision d = rdzv_trouble(st, w, FAULT_IN_WORK, f, false, now);
    w->trouble.exit_told = true;
    rdzv_act_on_trouble(st, w, &d, now, out);
    if (d.remedy == FAULT_ENDS && !st->settings.unsupervised)
        rdzv_leave_out(st, w, w->trouble.why, d.exit_code, now, out); /* it is not to be started again */
}

void rdzv_slice_fault(struct rdzv *st, struct rdzv_worker *w, const struct msg_fault *f, rm_time now,
                      struct rdzv_out *out)
{
    struct fault_decision d = rdzv_trouble(st, w, FAULT_IN_SLICE, f, false, now);
    if (d.remedy == FAULT_LEAVES_OUT)
        rdzv_leave_out(st, w, w->trouble.why, d.exit_code, now, out);
}

/* ---- a write that does not return ---- */

static bool another_is_well(const struct rdzv *st, const struct rdzv_worker *but)
{
    for (int r = 0; r < st->world; r++) {
        const struct rdzv_worker *w = &st->worker[st->member[r]];
        if (w != but && w->presence == PRESENT && !rdzv_is_stuck(st, w))
            return true;
    }
    return false;
}

/* Its trainer waits for memory that a call is about which does not return, and the ring for its trainer.
 * Another trainer would wait as well. In pods another worker may come elsewhere, so that fewer than min for a
 * while are better than all who stand still; but nobody goes who is alone, or no worse off than the rest. */
void rdzv_stuck_in_ring(struct rdzv *st, struct rdzv_worker *w, rm_time now, struct rdzv_out *out)
{
    bool over = !st->settings.unsupervised && now >= w->trouble.since + st->settings.end_timeout;
    bool alone = another_is_well(st, w);
    if (alone && (over || st->settings.unsupervised))
        rdzv_leave_out(st, w, w->trouble.why, EXIT_MACHINE, now, out);
    else if (over)
        rdzv_give_up(st, EXIT_MACHINE, "worker %d: %s", rdzv_index(st, w), w->trouble.why);
    else
        rdzv_tell_waiting_for(st, w->trouble.why, out);
}
