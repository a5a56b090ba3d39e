/* Where nobody says who is expected: workers come and go by somebody else's will, and the coordinator waits
 * for them instead of ending. What is known is how many there were to be when the job began. */
#include "coordinator/core/rdzv.h"
#include "coordinator/core/rdzv_state.h"

static const rm_time time_to_stop = 2 * RM_S;

/* Times lostAfter: a machine that took the coordinator with it is noticed after one of them, the name leads
 * to the successor a moment later, and agents come back with pauses between their tries. */
static const int patience_for_survivors = 3;

/* The target may have been moved since: another number of them than that says nothing. */
bool rdzv_at_target(const struct rdzv *st, int workers)
{
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

static bool all_leave(const struct rdzv *st)
{
    for (int r = 0; r < st->world; r++) {
        const struct rdzv_worker *w = &st->worker[st->member[r]];
        if (!w->leaving && !w->released)
            return false;
    }
    return st->world > 0;
}

/* Before the first of those who leave is killed, with time to stop the ring. */
static rm_time in_time(const struct rdzv *st, rm_time at)
{
    for (int r = 0; r < st->world; r++) {
        const struct rdzv_worker *w = &st->worker[st->member[r]];
        if (w->leaving && w->leave_until != RM_NEVER && w->leave_until - time_to_stop < at)
            at = w->leave_until - time_to_stop;
    }
    return at;
}

/* The first leave acts at once where somebody commands: who is to leave with it was said in one breath. Told
 * by several machines they come apart, and where all leave the ring should stop once. The ring trains
 * meanwhile. */
rm_time rdzv_leave_at(const struct rdzv *st)
{
    rm_time window = RDZV_LEAVES_TOGETHER_MS * RM_MS, at = st->left + window;
    if (!st->settings.unsupervised)
        return at;
    if (all_leave(st))
        return st->accounted;
    return in_time(st, st->leave_asked + window > at ? st->leave_asked + window : at);
}

/* Where nobody tells who lives, newcomers alone say nothing: they would fall back to a checkpoint, past
 * survivors that are about to come. At target there is no place for any. */
static bool survivors_may_come(const struct rdzv *st)
{
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
    return st->state_since + (patient ? patience_for_survivors : 1) * st->settings.lost_after;
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
