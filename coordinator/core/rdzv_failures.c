/* Whose failures are counted, and what they lead to: quarantine for the one that fails again and again, the
 * end of the job where several do. Leaves, drills and machines that were taken away are no failures. */
#include "coordinator/core/rdzv_failures.h"

#include <stdio.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_recovery.h"
#include "coordinator/core/rdzv_stop.h"
#include "coordinator/core/rdzv_who.h"

static bool counts(const struct rdzv *st, const struct rdzv_failure *f, rm_time now)
{
    RM_ASSERT(f->at <= now && f->worker >= 0 && f->worker < RM_WORKERS_MAX,
              "worker %d failed %lld ns from now", f->worker, (long long)(f->at - now));
    return f->at + st->settings.within > now && !st->worker[f->worker].quarantine[0];
}

/* Drops what no longer counts, adds this one, and returns how many of all are this worker's. */
static int add_failure(const struct turn *turn, int worker)
{
    struct rdzv *st = turn->st;
    int kept = 0, own = 1;
    for (int i = 0; i < st->failures; i++) {
        if (!counts(st, &st->failure[i], turn->now))
            continue;
        own += st->failure[i].worker == worker;
        st->failure[kept++] = st->failure[i];
    }
    st->failures = kept;
    if (st->failures < FAILURES_KEPT)
        st->failure[st->failures++] = (struct rdzv_failure){turn->now, worker};
    st->failures_total++;
    RM_ASSERT(own <= st->failures_total && st->failures <= st->failures_total,
              "%d failures of worker %d, %d that count, %lld of all", own, worker, st->failures,
              (long long)st->failures_total);
    return own;
}

/* Its process is sent away, and so is every one that comes under this index from now on. */
static void quarantine(const struct turn *turn, struct rdzv_worker *w, int own, const char *why)
{
    struct rdzv *st = turn->st;
    int index = rdzv_index(st, w);
    RM_ASSERT(own > st->settings.max_restarts && !w->quarantine[0],
              "worker %d goes into quarantine for %d failures of %d", index, own, st->settings.max_restarts);
    text_print_ends(w->quarantine, sizeof w->quarantine,
                    "%d failures within %.0f s, failurePolicy.maxRestarts allows %d; the newest: %s", own,
                    (double)st->settings.within / RM_S, st->settings.max_restarts, why);
    w->expected = -1;
    rdzv_say(st, "worker %d is put into quarantine: %s", index, w->quarantine);
    rdzv_tell_worker(turn, TELL_WORKER_QUARANTINED, index, w->quarantine);
    if (w->presence == PRESENT)
        rdzv_send_away(turn, w, EXIT_MACHINE, w->quarantine);
    rdzv_lose(turn, w, "it is in quarantine");
    bool any_will_do = st->known_step >= st->settings.steps && rdzv_left(st) > 0; /* all steps are made */
    if (rdzv_left(st) < st->settings.workers_min && !any_will_do)
        rdzv_give_up(
            st, EXIT_TRAINING, "worker %d is in quarantine (%s), and %d %s left of the %d that are needed",
            index, w->quarantine, rdzv_left(st), rdzv_left(st) == 1 ? "is" : "are", st->settings.workers_min);
}

static void too_many(struct rdzv *st, int index, const char *why)
{
    RM_ASSERT(st->failures > st->settings.max_restarts, "%d failures are too many, of %d", st->failures,
              st->settings.max_restarts);
    rdzv_give_up(st, EXIT_TRAINING,
                 "%d failures within %.0f s, failurePolicy.maxRestarts allows %d; the newest: worker %d: %s",
                 st->failures, (double)st->settings.within / RM_S, st->settings.max_restarts, index, why);
}

void rdzv_count_program_failure(const struct turn *turn, struct rdzv_worker *w, const char *why)
{
    struct rdzv *st = turn->st;
    int index = rdzv_index(st, w);
    add_failure(turn, index);
    RM_ASSERT(st->failures > 0, "a failure of worker %d is none of %d", index, st->failures);
    rdzv_tell_worker(turn, TELL_WORKER_FAILED, index, why);
    if (st->failures > st->settings.max_restarts)
        too_many(st, index, why);
}

void rdzv_count_failure(const struct turn *turn, struct rdzv_worker *w, const char *why)
{
    struct rdzv *st = turn->st;
    if (w->quarantine[0])
        return;
    int index = rdzv_index(st, w), own = add_failure(turn, index);
    RM_ASSERT(own >= 1 && st->failures >= 1, "%d failures of worker %d, of %d", own, index, st->failures);
    rdzv_tell_worker(turn, TELL_WORKER_FAILED, index, why);
    if (own > st->settings.max_restarts)
        quarantine(turn, w, own, why);
    else if (st->failures > st->settings.max_restarts)
        too_many(st, index, why);
}

void rdzv_not_finite(const struct turn *turn, struct rdzv_worker *w, const struct msg_fault *f)
{
    struct rdzv *st = turn->st;
    struct rdzv_not_finite *n = &st->not_finite;
    RM_ASSERT(w->rank >= 0, "worker %d is in no ring, and has a step's numbers", rdzv_index(st, w));
    if (set_is_empty(n->by)) {
        n->first = rdzv_index(st, w);
        text_copy_ends(n->why, sizeof n->why, f->detail);
    }
    set_add(&n->by, rdzv_index(st, w));
    if (rdzv_stops_now(st))
        return;
    rdzv_recovery_begin(turn, CAUSE_RING_ERROR, w);
    rdzv_quiesce(turn, STOP_NOW);
}

/* Another one was in the ring and does not say so; who is gone can't be asked. */
static bool others_were_there(const struct rdzv *st, int but)
{
    RM_ASSERT(but >= 0 && but < RM_WORKERS_MAX, "others than worker %d", but);
    bool others = false;
    for (int r = 0; r < st->world; r++)
        others = others || (st->worker[st->member[r]].presence == PRESENT && st->member[r] != but);
    return others;
}

void rdzv_not_finite_stopped(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    struct rdzv_not_finite n = st->not_finite;
    st->not_finite = (struct rdzv_not_finite){0};
    if (set_is_empty(n.by))
        return;
    RM_ASSERT(set_has(n.by, n.first), "worker %d said it first, and not at all", n.first);
    if (set_count(n.by) > 1 || st->world == 1) {
        st->ending.not_finite |= !st->ending.set;
        rdzv_give_up(st, EXIT_TRAINING, "%s", n.why);
    } else if (others_were_there(st, n.first)) {
        char why[MSG_DETAIL_MAX];
        text_print_ends(why, sizeof why, "no other worker says so: %s", n.why);
        rdzv_count_failure(turn, &st->worker[n.first], why);
    }
}
