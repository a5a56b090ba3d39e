/* Who is here, who may take part, and who may yet come. */
#include "coordinator/core/rdzv_who.h"

#include <string.h>

#include "common/base/assert.h"

static const rm_time says_again_within = 30 * RM_S; /* of a call that stands still; an agent does each 10 s */

/* ---- who is here ---- */

bool rdzv_sees_another_folder(const struct rdzv *st, const struct rdzv_worker *w)
{
    return st->folder[0] && w->list.folder[0] && strcmp(w->list.folder, st->folder) != 0;
}

bool rdzv_trouble_pauses(const struct rdzv *st, const struct rdzv_trouble *t)
{
    RM_ASSERT(t->times >= 0, "%d failures", t->times);
    return t->times > 0 && t->until > st->accounted;
}

bool rdzv_pauses(const struct rdzv *st, const struct rdzv_worker *w)
{
    return rdzv_trouble_pauses(st, &w->trouble) || rdzv_trouble_pauses(st, &w->writing);
}

/* A member is let go by the table of faults, not from one moment to the next. */
bool rdzv_held_back(const struct rdzv *st, const struct rdzv_worker *w)
{
    return rdzv_pauses(st, w) || (w->rank < 0 && rdzv_sees_another_folder(st, w));
}

bool rdzv_is_stuck(const struct rdzv *st, const struct rdzv_worker *w)
{
    const struct rdzv_trouble *t = &w->writing;
    return t->times > 0 && t->stuck && st->accounted < t->newest + says_again_within;
}

bool rdzv_fails_to_save(const struct rdzv_worker *w)
{
    const struct rdzv_trouble *t = &w->writing;
    RM_ASSERT(t->times >= 0 && (unsigned)t->where < FAULT_PLACES, "%d failures to write, at place %d",
              t->times, (int)t->where);
    return t->times > 0 && t->where == FAULT_IN_SAVE;
}

bool rdzv_usable(const struct rdzv *st, const struct rdzv_worker *w)
{
    return w->presence == PRESENT && !w->released && w->trainer_pid && w->address[0] &&
           w->stopped_round == st->round;
}

bool rdzv_follows(const struct rdzv *st, const struct rdzv_worker *w)
{
    bool told = w->rank >= 0 && w->rank < st->form.count && st->form.member[w->rank].role == ROLE_FOLLOW;
    RM_ASSERT(w->rank < st->world, "rank %d of a ring of %d", w->rank, st->world);
    return told && w->state.held && st->resume.held && w->state.step < st->resume.step;
}

bool rdzv_has_gone(const struct rdzv_worker *w)
{
    return w->presence == ABSENT || !w->trainer_pid;
}

bool rdzv_is_going(const struct rdzv_worker *w)
{
    return w->leaving || w->goes;
}

bool rdzv_gives_in_time(const struct rdzv *st, const struct rdzv_worker *w)
{
    if (!rdzv_is_going(w) || w->leave_until == RM_NEVER)
        return true;
    return w->state.step != st->gave_way && leave_with_margin(st->handing) <= w->leave_until - st->accounted;
}

bool rdzv_candidate(const struct rdzv *st, const struct rdzv_worker *w)
{
    bool is_held_back = rdzv_pauses(st, w) || rdzv_sees_another_folder(st, w);
    return rdzv_usable(st, w) && !w->leaving && !is_held_back;
}

int rdzv_candidates(const struct rdzv *st)
{
    int n = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        n += rdzv_candidate(st, &st->worker[i]);
    RM_ASSERT(n <= RM_WORKERS_MAX, "%d workers may form", n);
    return n;
}

int rdzv_members_max(const struct rdzv *st)
{
    const struct rdzv_settings *s = &st->settings;
    RM_ASSERT(s->workers_max >= 1 && s->lanes >= 1, "a ring for %d workers and %d lanes", s->workers_max,
              s->lanes);
    return s->workers_max < s->lanes ? s->workers_max : s->lanes;
}

int rdzv_left(const struct rdzv *st)
{
    int n = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool there = w->presence != ABSENT || w->expected >= 0;
        n += there && !w->leaving && !w->released && !w->quarantine[0];
    }
    return n;
}

bool rdzv_ring_runs(const struct rdzv *st)
{
    return st->state == RDZV_TRAINING || (st->state == RDZV_QUIESCING && st->stop_at == STOP_BOUNDARY);
}

bool rdzv_stops_now(const struct rdzv *st)
{
    return st->state == RDZV_QUIESCING && st->stop_at == STOP_NOW;
}

bool rdzv_all_finished(const struct rdzv *st)
{
    for (int r = 0; r < st->world; r++) {
        const struct rdzv_worker *w = &st->worker[st->member[r]];
        if (!w->finished || w->presence != PRESENT)
            return false;
    }
    return st->world > 0;
}

/* ---- who may come ---- */

/* The target may have been moved since: another number of them than that says nothing. */
bool rdzv_at_target(const struct rdzv *st, int workers)
{
    RM_ASSERT(workers >= 0 && workers <= RM_WORKERS_MAX, "%d workers are counted", workers);
    return workers == st->settings.workers_target || workers >= rdzv_members_max(st);
}

bool rdzv_more_may_come(const struct rdzv *st)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool stays = w->presence != ABSENT && !w->leaving && !w->released;
        if (stays && !rdzv_candidate(st, w))
            return true;
    }
    return !rdzv_at_target(st, rdzv_candidates(st));
}

bool rdzv_on_its_way(const struct rdzv *st)
{
    if (st->settings.unsupervised)
        return rdzv_more_may_come(st);
    if (!st->expect_known)
        return true;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (w->followed)
            return true;
        if (w->released || w->leaving)
            continue;
        bool coming = w->expected >= 0 || w->presence != ABSENT;
        if (coming && !rdzv_candidate(st, w))
            return true;
    }
    return false;
}
