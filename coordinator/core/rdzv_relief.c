/* Who may have to leave, or will as only its Node says, and goes in the change in which another one comes in
 * its place. */
#include "coordinator/core/rdzv_relief.h"

#include <string.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_leave.h"
#include "coordinator/core/rdzv_machine.h"
#include "coordinator/core/rdzv_who.h"
#include "coordinator/core/rdzv_will.h"

/* Who asks does so twice a minute at least, as long as it lives. */
static const rm_time holds = 60 * RM_S;

/* Twice the longest that a cloud promises. */
static const rm_time left_most = 2 * 3600 * RM_S;

/* When its machine goes, by the newest word; RM_NEVER: that names it for nothing such. */
static rm_time goes_at(const struct rdzv *st, const struct rdzv_worker *w)
{
    const struct rdzv_relief *relief = &st->relief;
    rm_time at = RM_NEVER, asked = st->relief_until - holds;
    for (int i = 0; i < relief->count; i++) {
        bool own = relief->one[i].worker == rdzv_index(st, w) && relief->one[i].attempt == w->attempt;
        if (own && relief->one[i].by == EASED_BY_WILL)
            at = rm_earlier(at, asked + rm_earlier(relief->one[i].left, left_most));
    }
    RM_ASSERT(at >= asked || at == RM_NEVER, "a machine went %lld ns before that was told",
              (long long)(asked - at));
    return at;
}

static bool is_told(const struct rdzv *st, const struct rdzv_worker *w)
{
    return rdzv_is_eased(st, w) && goes_at(st, w) != RM_NEVER;
}

/* A SIGTERM may have been told before the question came, or to a predecessor, which bounded the grace that is
 * told anew. Who goes by its machine's own word knows better. */
static void bound_who_leave(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->accounted == turn->now, "a word of machines at %lld is held against %lld",
              (long long)turn->now, (long long)st->accounted);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (w->presence != PRESENT || !w->leaving || w->goes || w->released || w->leave_until == RM_NEVER)
            continue;
        rm_time bounded = rdzv_relief_bounds(st, w, w->leave_until - turn->now);
        w->leave_until = rm_earlier(w->leave_until, turn->now + bounded);
    }
}

void rdzv_relief_asked(const struct turn *turn, const struct rdzv_relief *relief)
{
    struct rdzv *st = turn->st;
    int least = st->settings.workers_min, most = rdzv_members_max(st), stay = relief->stay;
    bool known[RM_WORKERS_MAX];
    RM_ASSERT(relief->count >= 0 && relief->count <= RDZV_EASED_MAX, "%d are eased", relief->count);
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        known[i] = is_told(st, &st->worker[i]);
    st->relief = *relief;
    st->relief.stay = stay < least ? least : stay < most ? stay : most;
    st->relief_until = turn->now + holds;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (known[i] || w->presence != PRESENT || w->rank < 0 || w->released || !is_told(st, w))
            continue;
        rdzv_say(st, "worker %d's machine goes in %.0f s, as its Node says", i,
                 (double)(goes_at(st, w) - turn->now) / RM_S);
        rdzv_leave_save_ahead(turn, w->pool);
    }
    bound_who_leave(turn);
}

/* Whether that process of it is named, by its machine or as one whose pod is deleted; *ret_deleted: so. */
static bool is_named(const struct rdzv *st, const struct rdzv_worker *w, bool *ret_deleted)
{
    const struct rdzv_relief *relief = &st->relief;
    bool named = false;
    RM_ASSERT(relief->count >= 0 && relief->count <= RDZV_EASED_MAX, "%d are eased", relief->count);
    *ret_deleted = false;
    for (int i = 0; i < relief->count; i++) {
        if (relief->one[i].worker != rdzv_index(st, w) || relief->one[i].attempt != w->attempt)
            continue;
        named = true;
        *ret_deleted = *ret_deleted || relief->one[i].by == EASED_BY_DELETION;
    }
    return named;
}

/* A machine that holds (rdzv_machine_holds) eases nobody; whose pod is deleted goes all the same. */
bool rdzv_is_eased(const struct rdzv *st, const struct rdzv_worker *w)
{
    bool deleted;
    return !rdzv_is_going(w) && st->accounted < st->relief_until && is_named(st, w, &deleted) &&
           (deleted || !rdzv_machine_holds(st, w));
}

int rdzv_relief_members(const struct rdzv *st)
{
    int n = 0;
    for (int r = 0; r < st->world; r++)
        n += rdzv_is_eased(st, &st->worker[st->member[r]]);
    return n;
}

/* Members of whom no end is known but that they are eased. */
static int staying(const struct rdzv *st)
{
    int n = 0;
    for (int r = 0; r < st->world; r++)
        n += !rdzv_is_going(&st->worker[st->member[r]]);
    RM_ASSERT(n <= st->world, "%d of a ring of %d stay", n, st->world);
    return n;
}

bool rdzv_relief_has_place(const struct rdzv *st)
{
    return rdzv_relief_members(st) > 0 && staying(st) >= st->relief.stay;
}

/* The rank of whose machine will go first; else of the last one, as who comes is of no more use there than
 * who was there before; -1: nobody is. */
static int next_to_go(const struct rdzv *st)
{
    int next = -1;
    rm_time first = RM_NEVER;
    for (int r = st->world - 1; r >= 0; r--) {
        const struct rdzv_worker *w = &st->worker[st->member[r]];
        rm_time at = goes_at(st, w);
        if (!rdzv_is_eased(st, w) || (next >= 0 && at >= first))
            continue;
        next = r;
        first = at;
    }
    RM_ASSERT(next < st->world, "rank %d of a ring of %d goes", next, st->world);
    return next;
}

void rdzv_relief_make_room(struct rdzv *st, int before)
{
    int r;
    while (st->world > before && staying(st) > st->relief.stay && (r = next_to_go(st)) >= 0) {
        st->world--;
        memmove(st->member + r, st->member + r + 1, sizeof *st->member * (size_t)(st->world - r));
    }
    RM_ASSERT(st->world >= 0, "a ring of %d", st->world);
}

bool rdzv_relief_bars(const struct rdzv *st, const struct rdzv_worker *w)
{
    return rdzv_is_eased(st, w) && w->rank < 0 && staying(st) >= st->relief.stay;
}

/* Whether somebody stays who trains with it, and so holds what it holds. Who may go may go as well: a
 * question has not always room to say of all who will. */
static bool somebody_stays(const struct rdzv *st, const struct rdzv_worker *w)
{
    for (int r = 0; r < st->world; r++) {
        const struct rdzv_worker *m = &st->worker[st->member[r]];
        bool stays = !rdzv_is_going(m) && !m->released && !rdzv_is_eased(st, m);
        if (m != w && m->presence == PRESENT && stays && !rdzv_follows(st, m))
            return true;
    }
    return false;
}

rm_time rdzv_relief_takes(const struct rdzv *st, const struct rdzv_worker *w)
{
    return is_told(st, w) ? rdzv_will_takes(st, somebody_stays(st, w)) : RM_NEVER;
}

rm_time rdzv_relief_bounds(const struct rdzv *st, const struct rdzv_worker *w, rm_time deadline)
{
    rm_time at = st->accounted < st->relief_until ? goes_at(st, w) : RM_NEVER;
    rm_time takes = rdzv_will_takes(st, false);
    if (at == RM_NEVER || takes < 0 || deadline <= 0)
        return deadline;
    RM_ASSERT(takes > 0, "a leave takes %lld ns", (long long)takes);
    return rm_earlier(deadline, rm_later(at - st->accounted, takes));
}

static const char *why_eased(const struct rdzv *st, const struct rdzv_worker *w)
{
    bool deleted;
    if (is_named(st, w, &deleted) && deleted)
        return "its pod is deleted";
    return goes_at(st, w) != RM_NEVER ? "its machine will go, as its Node says" : "its machine may go";
}

void rdzv_relief_settle(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    for (int i = 0; i < RM_WORKERS_MAX && st->state == RDZV_TRAINING; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (w->presence != PRESENT || w->released || !rdzv_relief_bars(st, w))
            continue;
        w->leave_until = RM_NEVER;
        text_copy(w->leaving_reason, sizeof w->leaving_reason, why_eased(st, w));
        rdzv_leave_announced(turn, w);
    }
}
