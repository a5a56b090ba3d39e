/* Who may have to leave, and goes in the change in which another one comes in its place. */
#include "coordinator/core/rdzv_relief.h"

#include <string.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_leave.h"
#include "coordinator/core/rdzv_machine.h"
#include "coordinator/core/rdzv_who.h"

/* Who asks does so twice a minute at least, as long as it lives. */
static const rm_time holds = 60 * RM_S;

void rdzv_relief_asked(const struct turn *turn, const struct rdzv_relief *relief)
{
    struct rdzv *st = turn->st;
    int least = st->settings.workers_min, most = rdzv_members_max(st), stay = relief->stay;
    RM_ASSERT(relief->count >= 0 && relief->count <= RM_WORKERS_MAX, "%d are eased", relief->count);
    st->relief = *relief;
    st->relief.stay = stay < least ? least : stay < most ? stay : most;
    st->relief_until = turn->now + holds;
}

/* Whether that process of it is named, by its machine or as one whose pod is deleted; *ret_deleted: so. */
static bool is_named(const struct rdzv *st, const struct rdzv_worker *w, bool *ret_deleted)
{
    const struct rdzv_relief *relief = &st->relief;
    bool named = false;
    RM_ASSERT(relief->count >= 0 && relief->count <= RM_WORKERS_MAX, "%d are eased", relief->count);
    *ret_deleted = false;
    for (int i = 0; i < relief->count; i++) {
        if (relief->one[i].worker != rdzv_index(st, w) || relief->one[i].attempt != w->attempt)
            continue;
        named = true;
        *ret_deleted = *ret_deleted || relief->one[i].deleted;
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

/* The rank of the last one, as who comes is of no more use there than who was there before; -1: nobody is. */
static int last_eased(const struct rdzv *st)
{
    for (int r = st->world - 1; r >= 0; r--)
        if (rdzv_is_eased(st, &st->worker[st->member[r]]))
            return r;
    return -1;
}

void rdzv_relief_make_room(struct rdzv *st, int before)
{
    int r;
    while (st->world > before && staying(st) > st->relief.stay && (r = last_eased(st)) >= 0) {
        st->world--;
        memmove(st->member + r, st->member + r + 1, sizeof *st->member * (size_t)(st->world - r));
    }
    RM_ASSERT(st->world >= 0, "a ring of %d", st->world);
}

bool rdzv_relief_bars(const struct rdzv *st, const struct rdzv_worker *w)
{
    return rdzv_is_eased(st, w) && w->rank < 0 && staying(st) >= st->relief.stay;
}

static const char *why_eased(const struct rdzv *st, const struct rdzv_worker *w)
{
    bool deleted;
    return is_named(st, w, &deleted) && deleted ? "its pod is deleted" : "its machine may go";
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
