/* When each worker whose machine will go has to leave, and whose places those take who come meanwhile. */
#include "coordinator/core/rdzv_will.h"

#include <string.h>

#include "common/base/assert.h"
#include "common/base/lane_shares.h"
#include "coordinator/core/rdzv_hang.h"
#include "coordinator/core/rdzv_leave.h"
#include "coordinator/core/rdzv_machine.h"
#include "coordinator/core/rdzv_states.h"
#include "coordinator/core/rdzv_who.h"

/* ---- when ---- */

/* Of the ring as it stands; 0 where it is about to be another one. */
static int64_t steps_of_ring(const struct rdzv *st)
{
    RM_ASSERT(st->world >= 0 && st->world <= RM_WORKERS_MAX, "a ring of %d", st->world);
    int64_t from = st->resume.held ? st->resume.step : 0, newest = from;
    for (int r = 0; r < st->world && st->state == RDZV_TRAINING; r++) {
        const struct rdzv_worker *w = &st->worker[st->member[r]];
        newest = w->state.held && w->state.step > newest ? w->state.step : newest;
    }
    return newest - from;
}

/* Of a ring that has made none yet the first one takes as long as it has taken, at least: of a job's first
 * step nothing else is known. Nor is of a program's, which may never tell of one. And where most have gone
 * the steps of those who stay are longer from the first one on, while the median is still that of the larger
 * ring. */
static rm_time usual_step(const struct rdzv *st)
{
    bool first = st->state == RDZV_TRAINING && !st->settings.program && steps_of_ring(st) == 0;
    rm_time lasts = first && st->accounted > st->state_since ? st->accounted - st->state_since : 0;
    RM_ASSERT(st->median_step >= 0, "a step takes %lld ns", (long long)st->median_step);
    return rm_later(rm_later(st->median_step, rdzv_hang_step_of_ring(st)), lasts);
}

/* Late steps may be those of lanes that followed how fast workers are; a ring begins without. */
static rm_time step_ahead(const struct rdzv *st)
{
    struct leave_paces paces = {.lanes = st->settings.lanes, .world = st->world};
    if (!st->settings.exact || steps_of_ring(st) >= SHARES_USUAL_STEPS)
        return usual_step(st);
    for (int r = 0; r < st->world; r++) {
        const struct rdzv_worker *w = &st->worker[st->member[r]];
        paces.lane[r] = w->paced == w->incarnation ? w->pace.lane_us * RM_US : 0;
    }
    return usual_step(st) + leave_usual_longer(&paces);
}

static rm_time margin(const struct rdzv *st)
{
    return leave_times_margin(&st->leave_times, step_ahead(st));
}

/* Whether somebody who trains with it is there long enough after it to hand on what both hold, or to save it.
 */
static bool is_outlived(const struct rdzv *st, const struct rdzv_worker *w, rm_time takes)
{
    RM_ASSERT(w->leave_until != RM_NEVER && takes >= 0, "worker %d goes at no time, and a save takes %lld ns",
              (int)(w - st->worker), (long long)takes);
    for (int r = 0; r < st->world; r++) {
        const struct rdzv_worker *m = &st->worker[st->member[r]];
        bool going = rdzv_is_going(m) || m->released;
        bool later = m->leave_until > w->leave_until + margin(st) + takes;
        bool holds = m->presence == PRESENT && m->rank >= 0 && !rdzv_follows(st, m);
        if (m != w && holds && (!going || (m->goes && later)))
            return true;
    }
    return false;
}

/* 0: that was not measured. */
static rm_time measured_save(const struct rdzv *st)
{
    rm_time takes = leave_takes(&st->save_speed, st->world > 0 ? st->world : 1);
    RM_ASSERT(takes >= 0, "a save takes %lld ns", (long long)takes);
    return takes ? leave_with_margin(takes) : 0;
}

static bool saves_nothing(const struct rdzv *st)
{
    return st->settings.program || st->settings.leave_unsaved;
}

/* What the last holders of a state keep to save it. Where no save was measured it is half of their time. */
static rm_time to_save(const struct rdzv *st, const struct rdzv_worker *w)
{
    RM_ASSERT(w->leave_until >= w->goes_since, "worker %d went %lld ns before that was heard",
              (int)(w - st->worker), (long long)(w->goes_since - w->leave_until));
    if (saves_nothing(st))
        return 0;
    rm_time takes = measured_save(st);
    return takes ? takes : (w->leave_until - w->goes_since) / 2;
}

/* Whose machine ends before its leave does is lost like any other: a step, where somebody stays who holds the
 * rest; all since the newest checkpoint for the last holders, and for a program. */
static rm_time to_leave(const struct rdzv *st, const struct rdzv_worker *w)
{
    rm_time save = to_save(st, w);
    bool outlived = is_outlived(st, w, save);
    if (outlived && !st->settings.program)
        return leave_times_survived(&st->leave_times, step_ahead(st));
    return margin(st) + (outlived ? 0 : save);
}

/* The ring is to stop when the margin begins, and it trains on for a moment in which other leaves may come.
 */
static rm_time waits_for_others(const struct rdzv *st)
{
    return st->settings.unsupervised ? RDZV_LEAVES_TOGETHER_MS * RM_MS : 0;
}

rm_time rdzv_will_takes(const struct rdzv *st, bool others_stay)
{
    bool saves = !others_stay && !saves_nothing(st);
    rm_time save = saves ? measured_save(st) : 0;
    if (saves && !save)
        return -1;
    bool survived = others_stay && !st->settings.program;
    rm_time leave = survived ? leave_times_survived(&st->leave_times, step_ahead(st)) : margin(st);
    return leave + st->settings.stop_takes + waits_for_others(st) + save;
}

/* Who trains no more has nothing to do here. */
static rm_time due_at(const struct rdzv *st, const struct rdzv_worker *w)
{
    RM_ASSERT(w->goes && w->leave_until != RM_NEVER, "a worker goes at no time, in state %s",
              rdzv_state_name(st->state));
    rm_time held = rdzv_machine_holds_until(st, w);
    if (st->state == RDZV_TRAINING && w->rank < 0)
        return rm_later(st->accounted, held);
    rm_time takes = to_leave(st, w) + st->settings.stop_takes + waits_for_others(st);
    return rm_later(w->leave_until - takes, held);
}

static bool goes(const struct rdzv_worker *w)
{
    return w->goes && w->presence != ABSENT;
}

/* Who is held makes room from the moment on at which it is no more. A successor does not know yet who is
 * there. */
rm_time rdzv_will_at(const struct rdzv *st)
{
    rm_time at = RM_NEVER;
    for (int i = 0; i < RM_WORKERS_MAX && st->state != RDZV_RECOVERING; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (!goes(w))
            continue;
        at = rm_earlier(at, due_at(st, w));
        at = rdzv_machine_holds(st, w) ? rm_earlier(at, rdzv_machine_holds_until(st, w)) : at;
    }
    return at;
}

static const rm_time together = RM_S;

void rdzv_will_settle(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    bool due[RM_WORKERS_MAX];
    if (turn->now < rdzv_will_at(st) || st->state == RDZV_RECOVERING)
        return;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        due[i] = goes(&st->worker[i]) && !rdzv_machine_holds(st, &st->worker[i]) &&
                 turn->now + together >= due_at(st, &st->worker[i]);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        if (due[i])
            rdzv_leave_announced(turn, &st->worker[i]);
    }
}

/* ---- whose place is taken ---- */

bool rdzv_will_makes_room(const struct rdzv *st, const struct rdzv_worker *w)
{
    return w->goes && !rdzv_machine_holds(st, w);
}

int rdzv_will_members(const struct rdzv *st)
{
    int n = 0;
    for (int r = 0; r < st->world; r++)
        n += rdzv_will_makes_room(st, &st->worker[st->member[r]]);
    return n;
}

static int places(const struct rdzv *st, int before)
{
    const struct rdzv_settings *s = &st->settings;
    int wanted = before > s->workers_target ? before : s->workers_target;
    wanted = wanted > s->workers_min ? wanted : s->workers_min;
    int most = rdzv_members_max(st);
    RM_ASSERT(before >= 0 && most >= 1, "%d of a ring of %d", before, most);
    return wanted < most ? wanted : most;
}

/* The rank of whoever goes first; -1: nobody does. */
static int first_to_go(const struct rdzv *st)
{
    RM_ASSERT(st->world >= 0 && st->world <= RM_WORKERS_MAX, "a ring of %d makes room", st->world);
    int first = -1;
    for (int r = 0; r < st->world; r++) {
        const struct rdzv_worker *w = &st->worker[st->member[r]];
        if (rdzv_will_makes_room(st, w) &&
            (first < 0 || w->leave_until < st->worker[st->member[first]].leave_until))
            first = r;
    }
    return first;
}

void rdzv_will_make_room(struct rdzv *st, int before)
{
    int most = places(st, before), r;
    while (st->world > most && (r = first_to_go(st)) >= 0) {
        st->world--;
        memmove(st->member + r, st->member + r + 1, sizeof *st->member * (size_t)(st->world - r));
    }
    RM_ASSERT(st->world >= 0, "a ring of %d", st->world);
}
