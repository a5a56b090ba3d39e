/* Where the time goes. */
#include "coordinator/core/rdzv_goodput.h"

#include "common/base/assert.h"
#include "coordinator/core/rdzv_state.h"

static rm_time *class_of(struct rdzv *st)
{
    struct rdzv_goodput *g = &st->goodput;
    RM_ASSERT(st->state != RDZV_FINISHED && st->state != RDZV_FAILED,
              "time of a run that is over, in state %d", (int)st->state);
    bool planned = st->state == RDZV_QUIESCING && st->stop_at == STOP_BOUNDARY;
    if (st->state == RDZV_GATHERING || st->state == RDZV_RECOVERING || (!st->trained && st->told < 0))
        return &g->waiting;
    if (st->state == RDZV_SAVING)
        return &g->checkpoint;
    if (planned || (st->state == RDZV_TRAINING && !st->recovery.active))
        return &g->productive;
    return &g->recovery;
}

void rdzv_account(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(turn->now >= st->accounted, "time goes back by %lld ns",
              (long long)(st->accounted - turn->now));
    if (st->state != RDZV_FINISHED && st->state != RDZV_FAILED)
        *class_of(st) += turn->now - st->accounted;
    st->accounted = turn->now;
}

struct rdzv_goodput rdzv_goodput(const struct rdzv *st, rm_time now)
{
    RM_ASSERT(now >= st->accounted, "where the time went %lld ns ago", (long long)(st->accounted - now));
    struct rdzv_goodput g = st->goodput;
    if (st->state == RDZV_TRAINING && !st->recovery.active)
        g.productive += now - st->accounted;
    return g;
}

double rdzv_productive_share(struct rdzv_goodput g)
{
    RM_ASSERT(g.productive >= 0 && g.checkpoint >= 0 && g.recovery >= 0 && g.waiting >= 0 && g.rework >= 0,
              "productive %lld ns, rework %lld ns", (long long)g.productive, (long long)g.rework);
    rm_time all = g.productive + g.checkpoint + g.recovery + g.waiting + g.rework;
    return all > 0 ? (double)g.productive / (double)all : 0;
}

/* Of a user's program nobody knows which step it goes on from: what it did since its last report, or where it
 * says none since the generation began, is taken for lost. */
static void count_rework(struct rdzv *st, rm_time now)
{
    const struct rdzv_report *r = &st->report;
    bool said = r->known && generation_compare(r->generation, st->ring) == 0;
    rm_time since = said ? rm_later(r->moved, st->state_since) : st->state_since;
    rm_time lost = rm_earlier(now - since, st->goodput.productive);
    RM_ASSERT(lost >= 0, "%lld ns of work are lost", (long long)lost);
    st->goodput.productive -= lost;
    st->goodput.rework += lost;
}

void rdzv_count_frozen(const struct turn *turn, rm_time frozen, bool waited)
{
    struct rdzv_goodput *g = &turn->st->goodput;
    rdzv_account(turn);
    if (waited && class_of(turn->st) != &g->productive)
        return; /* its ring was given up meanwhile, and the time counted as what it was */
    rm_time stood = rm_earlier(frozen, g->productive);
    RM_ASSERT(stood >= 0, "a program stood still for %lld ns", (long long)stood);
    g->productive -= stood;
    *(waited ? &g->waiting : &g->checkpoint) += stood;
}

/* The ring has stood still for longer than a step takes: for one that only now is known to be lost. */
void rdzv_count_stall(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    if (class_of(st) != &st->goodput.productive)
        return;
    rdzv_account(turn);
    if (st->settings.program) {
        count_rework(st, turn->now);
        return;
    }
    rm_time still = turn->now - st->turned - (rm_time)st->step_time;
    if (still > st->goodput.productive)
        still = st->goodput.productive;
    if (still <= 0)
        return;
    RM_ASSERT(still <= st->goodput.productive, "it stood still for %lld ns of %lld", (long long)still,
              (long long)st->goodput.productive);
    st->goodput.productive -= still;
    st->goodput.recovery += still;
}
