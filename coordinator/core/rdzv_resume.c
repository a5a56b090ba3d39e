/* From which step the next ring goes on: what is held in memory, and what can be loaded. */
#include "coordinator/core/rdzv_resume.h"

#include <string.h>

#include "common/base/assert.h"
#include "coordinator/core/rdzv_bridge.h"
#include "coordinator/core/rdzv_who.h"

/* ---- in memory ---- */

/* What is saved is read by who comes, sooner than such a worker could give it. */
static bool gives_it_too_late(const struct rdzv *st, const struct rdzv_worker *w)
{
    RM_ASSERT(w->state.held, "worker %d gives what it does not hold", (int)(w - st->worker));
    bool goes = w->leaving || (w->goes && w->state.step == st->gave_way);
    return goes && w->state.step <= st->saved && !rdzv_gives_in_time(st, w);
}

/* The highest step from `lowest` on that anyone at rest holds; among its holders the last ring's members
 * first. */
static struct msg_state best_from(const struct rdzv *st, int64_t lowest)
{
    const struct rdzv_worker *best = NULL;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool stranded = set_has(st->pairs.stranded, i);
        if (!rdzv_usable(st, w) || !w->state.held || w->state.step < lowest || stranded ||
            gives_it_too_late(st, w))
            continue;
        if (!best || w->state.step > best->state.step ||
            (w->state.step == best->state.step && w->old_rank < best->old_rank))
            best = w;
    }
    return best ? best->state : (struct msg_state){0};
}

/* Memory that is older than a checkpoint of ours is worth less than that. */
struct msg_state rdzv_best_state(const struct rdzv *st)
{
    struct msg_state best = best_from(st, st->saved);
    RM_ASSERT(!best.held || best.step >= st->saved, "step %lld is best, and %lld is saved",
              (long long)best.step, (long long)st->saved);
    return best;
}

/* ---- checkpoints ---- */

bool rdzv_is_of(const struct msg_checkpoint *c, const struct msg_state *s)
{
    return c->step == s->step && !memcmp(c->lineage, s->lineage, RM_HASH_BYTES);
}

bool rdzv_is_refused(const struct rdzv *st, const struct msg_checkpoint *c)
{
    RM_ASSERT(st->refused_count >= 0 && st->refused_count <= REFUSED_KEPT, "%d checkpoints are refused",
              st->refused_count);
    for (int i = 0; i < st->refused_count; i++) {
        const struct msg_checkpoint *r = &st->refused[i];
        if (r->step == c->step && !memcmp(r->lineage, c->lineage, RM_HASH_BYTES))
            return true;
    }
    return false;
}

bool rdzv_may_load(const struct rdzv *st, const struct msg_checkpoint *c)
{
    if (!st->settings.resume && c->step > st->saved)
        return false; /* left by an earlier run */
    if (!st->settings.program && c->step > st->settings.steps)
        return false; /* of another job, whatever it says of itself */
    return !rdzv_is_refused(st, c);
}

static bool lists(const struct rdzv_worker *w, const struct msg_checkpoint *c)
{
    RM_ASSERT(w->list.count >= 0 && w->list.count <= RM_CHECKPOINTS_LISTED, "a list of %d checkpoints",
              w->list.count);
    for (int i = 0; i < w->list.count; i++) {
        const struct msg_checkpoint *other = &w->list.checkpoint[i];
        if (other->step == c->step && !memcmp(other->lineage, c->lineage, RM_HASH_BYTES))
            return true;
    }
    return false;
}

static bool all_list(const struct rdzv *st, const struct msg_checkpoint *c)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        if (rdzv_candidate(st, &st->worker[i]) && !lists(&st->worker[i], c))
            return false;
    }
    return true;
}

/* The newest checkpoint that all who form can read; held is false where there is none. */
struct msg_state rdzv_newest_checkpoint(const struct rdzv *st)
{
    struct msg_state best = {0};
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (!rdzv_candidate(st, w))
            continue;
        for (int j = 0; j < w->list.count; j++) {
            const struct msg_checkpoint *c = &w->list.checkpoint[j];
            if ((best.held && c->step <= best.step) || !rdzv_may_load(st, c) || !all_list(st, c))
                continue;
            best.held = true;
            best.step = c->step;
            memcpy(best.lineage, c->lineage, RM_HASH_BYTES);
        }
    }
    RM_ASSERT(!best.held || st->settings.resume || best.step <= st->saved, "step %lld is of an earlier run",
              (long long)best.step);
    return best;
}

/* Published since: it is another one at the same place. */
void rdzv_load_forgive(struct rdzv *st, int64_t step)
{
    int kept = 0;
    RM_ASSERT(st->refused_count >= 0 && st->refused_count < REFUSED_KEPT, "%d checkpoints are refused",
              st->refused_count);
    for (int i = 0; i < st->refused_count; i++) {
        if (st->refused[i].step != step)
            st->refused[kept++] = st->refused[i];
    }
    st->refused_count = kept;
    if (st->suspect.checkpoint.step == step)
        st->suspect.sightings = 0;
}

/* ---- which of both ---- */

bool rdzv_needs_lists(const struct rdzv *st)
{
    return !rdzv_best_state(st).held && (st->settings.resume || st->saved >= 0);
}

/* A list that is under way may have been made before, and come after. */
void rdzv_lists_are_old(struct rdzv *st)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        w->list_asked = w->list_asked && !w->listed;
        w->list_is_old = w->list_is_old || w->list_asked;
        w->listed = false;
    }
}

bool rdzv_lists_are_in(const struct rdzv *st)
{
    if (!rdzv_needs_lists(st))
        return true;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        if (rdzv_candidate(st, &st->worker[i]) && !st->worker[i].listed)
            return false;
    }
    return true;
}

/* What is held in memory goes before a checkpoint, unless the checkpoint is newer and can be read by all: a
 * list may have been made before the newest one was published. */
struct msg_state rdzv_choose_held(const struct rdzv *st, const struct msg_state *checkpoint)
{
    struct msg_state held = rdzv_best_state(st), any = best_from(st, 0);
    if (held.held || !any.held || (checkpoint->held && checkpoint->step > any.step))
        return held;
    RM_ASSERT(any.step < st->saved, "step %lld is held, %lld is saved, and neither is best",
              (long long)any.step, (long long)st->saved);
    return any;
}

/* Nothing is held, and nothing can be loaded. */
bool rdzv_begins_anew(const struct rdzv *st)
{
    return !best_from(st, 0).held && !rdzv_newest_checkpoint(st).held;
}
