/* Notes the step and the ring whose states nobody vouches for, and takes them from whoever holds one. */
#include "coordinator/core/rdzv_vouch.h"

#include "common/base/assert.h"
#include "coordinator/core/rdzv_base.h"

static void take_it_from(struct rdzv_worker *w, int64_t step)
{
    if (!w->state.held || w->state.step != step)
        return;
    w->state = (struct msg_state){0};
    w->update_step = -1;
}

void rdzv_vouch_for_none(struct rdzv *st, struct msg_generation ring, int64_t step)
{
    RM_ASSERT(ring.n > 0, "nobody vouches for step %lld of no ring", (long long)step);
    if (generation_compare(ring, st->unvouched.ring) < 0)
        return; /* said again */
    st->unvouched.ring = ring;
    st->unvouched.step = step;
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        take_it_from(&st->worker[i], step);
}

void rdzv_vouch_again(struct rdzv *st, struct msg_generation ring, int64_t step)
{
    RM_ASSERT(step >= 0, "step %lld is made", (long long)step);
    if (generation_compare(ring, st->unvouched.ring) > 0 && step >= st->unvouched.step)
        st->unvouched.step = -1;
}

void rdzv_outvoted(const struct rdzv *st, struct rdzv_worker *w, struct msg_generation ring, int64_t step)
{
    RM_ASSERT(ring.n > 0 && step >= 0, "worker %d is outvoted in ring %lld at step %lld", rdzv_index(st, w),
              (long long)ring.n, (long long)step);
    w->outvoted.ring = ring;
    w->outvoted.step = step;
    take_it_from(w, step);
}

/* Whether what it holds in `ring` was given to it in one later than `doubted`, so that it is another state.
 */
static bool got_another_since(const struct rdzv_worker *w, struct msg_generation ring,
                              struct msg_generation doubted)
{
    RM_ASSERT(doubted.n > 0, "a state of no ring (%lld) is doubted", (long long)doubted.n);
    return generation_compare(ring, doubted) > 0 && generation_compare(w->began, doubted) > 0;
}

static bool is_outvoted(const struct rdzv_worker *w, struct msg_generation ring, int64_t step)
{
    return w->outvoted.ring.n && w->outvoted.step == step && !got_another_since(w, ring, w->outvoted.ring);
}

bool rdzv_is_unvouched(const struct rdzv *st, int64_t step)
{
    return st->unvouched.ring.n && st->unvouched.step >= 0 && st->unvouched.step == step;
}

struct msg_state rdzv_vouched(const struct rdzv *st, const struct rdzv_worker *w, struct msg_generation ring,
                              const struct msg_state *state)
{
    RM_ASSERT(!state->held || state->step >= 0, "step %lld is held", (long long)state->step);
    bool none = rdzv_is_unvouched(st, state->step) && !got_another_since(w, ring, st->unvouched.ring);
    return state->held && (none || is_outvoted(w, ring, state->step)) ? (struct msg_state){0} : *state;
}
