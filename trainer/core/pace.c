/* Keeps each rank's last times a lane, and from them works out shares of lanes and who is slow.
 * engine_pace.c feeds it with what headers say, and takes its shares. */
#include "trainer/core/pace.h"

#include <string.h>

#include "common/base/assert.h"

_Static_assert(PACE_HEARD - 1 + PACE_PATIENCE == SHARES_USUAL_STEPS, "the first headers move no shares");

void pace_begin(struct pace *p, int lanes, int world, bool moves)
{
    RM_ASSERT(lanes >= 1 && world >= 1 && world <= RM_WORKERS_MAX, "%d lanes for %d", lanes, world);
    *p = (struct pace){.moves = moves && world > 1};
    shares_even(&p->shares, lanes, world);
}

static bool takes_lanes(const struct pace *p, int rank)
{
    RM_ASSERT(rank >= 0 && rank < p->shares.world, "the lanes of rank %d of %d", rank, p->shares.world);
    return p->shares.count[rank] > 0;
}

uint32_t pace_of_rank(const struct pace *p, int rank)
{
    uint64_t sum = 0;
    uint32_t least = UINT32_MAX, most = 0;
    RM_ASSERT(rank >= 0 && rank < p->shares.world, "the pace of rank %d of %d", rank, p->shares.world);
    if (p->heard < PACE_HEARD || !takes_lanes(p, rank))
        return 0;
    for (int i = 0; i < PACE_HEARD; i++) {
        uint32_t us = p->us[rank][i];
        sum += us;
        least = us < least ? us : least;
        most = us > most ? us : most;
    }
    uint32_t mean = (uint32_t)((sum - least - most) / (PACE_HEARD - 2));
    return mean ? mean : 1;
}

/* ---- shares ---- */

struct paces {
    int lanes, world;
    uint64_t us[RM_WORKERS_MAX]; /* 0: has no lanes, and gets none */
};

static struct paces paces_of(const struct pace *p)
{
    struct paces all = {.lanes = shares_lanes(&p->shares), .world = p->shares.world};
    for (int r = 0; r < all.world; r++)
        all.us[r] = pace_of_rank(p, r);
    return all;
}

/* How long the lanes of a step take, us. */
static uint64_t step_takes(const struct paces *all, const struct lane_shares *shares)
{
    uint64_t longest = 0;
    RM_ASSERT(all->world == shares->world, "%d paces for %d shares", all->world, shares->world);
    for (int r = 0; r < all->world; r++) {
        uint64_t us = all->us[r] * (uint64_t)shares->count[r];
        longest = us > longest ? us : longest;
    }
    return longest;
}

bool pace_has_room(const struct pace *p, int rank)
{
    const struct lane_shares *shares = &p->shares;
    RM_ASSERT(rank >= 0 && rank < shares->world, "room of rank %d of %d", rank, shares->world);
    struct paces all = paces_of(p);
    uint64_t longest = step_takes(&all, shares);
    if (!all.us[rank] || longest <= PACE_LEAST)
        return shares_are_even(shares) && shares->count[rank] < shares_most(shares);
    return all.us[rank] * (uint64_t)(shares->count[rank] + 1) <= longest;
}

/* Are there shares that take no longer? */
static bool step_may_take(const struct paces *all, uint64_t us)
{
    RM_ASSERT(all->world >= 1 && all->world <= RM_WORKERS_MAX, "a step of %d", all->world);
    uint64_t lanes = 0;
    for (int r = 0; r < all->world; r++) {
        if (all->us[r] > us)
            return false;
        lanes += all->us[r] ? us / all->us[r] : 0;
    }
    return lanes >= (uint64_t)all->lanes;
}

static int first_to_end(const struct paces *all, const struct lane_shares *shares)
{
    int first = -1;
    uint64_t soonest = 0;
    for (int r = 0; r < all->world; r++) {
        uint64_t ends = all->us[r] * (uint64_t)(shares->count[r] + 1);
        if (!all->us[r] || (first >= 0 && ends >= soonest))
            continue;
        first = r;
        soonest = ends;
    }
    RM_ASSERT(first >= 0, "nobody of %d has lanes", all->world);
    return first;
}

/* One each, and each further one to who has done it first: no shares take less time. */
static void share_out(const struct paces *all, struct lane_shares *ret)
{
    int left = all->lanes;
    *ret = (struct lane_shares){.world = all->world};
    for (int r = 0; r < all->world; r++) {
        ret->count[r] = all->us[r] ? 1 : 0;
        left -= ret->count[r];
    }
    RM_ASSERT(left >= 0, "%d lanes are too few by %d", all->lanes, -left);
    for (; left > 0; left--)
        ret->count[first_to_end(all, ret)]++;
}

static bool others_are_better(const struct paces *all, const struct lane_shares *shares)
{
    uint64_t now = step_takes(all, shares), part = now * 100 / (100 + PACE_GAIN);
    if (now <= PACE_LEAST)
        return false;
    return step_may_take(all, part < now - PACE_LEAST ? part : now - PACE_LEAST);
}

/* Those who have no lanes have none to take time. */
static bool all_are_known(const struct pace *p, const uint32_t *us)
{
    for (int r = 0; r < p->shares.world; r++)
        if (takes_lanes(p, r) && !us[r])
            return false;
    return true;
}

bool pace_hear(struct pace *p, const uint32_t *us)
{
    if (!all_are_known(p, us))
        return false;
    for (int r = 0; r < p->shares.world; r++)
        p->us[r][p->heard % PACE_HEARD] = us[r];
    p->heard++;
    if (!p->moves || p->heard < PACE_HEARD)
        return false;
    struct paces all = paces_of(p);
    p->better = others_are_better(&all, &p->shares) ? p->better + 1 : 0;
    if (p->better < PACE_PATIENCE)
        return false;
    share_out(&all, &p->shares);
    p->better = 0;
    RM_ASSERT(shares_lanes(&p->shares) == all.lanes, "%d lanes are shared out, of %d",
              shares_lanes(&p->shares), all.lanes);
    return true;
}

/* ---- who is slow ---- */

/* The lower one in the middle. */
static uint64_t median_of(const struct paces *all)
{
    uint64_t sorted[RM_WORKERS_MAX];
    int n = 0;
    RM_ASSERT(all->world >= 1 && all->world <= RM_WORKERS_MAX, "%d have a median", all->world);
    for (int r = 0; r < all->world; r++) {
        if (!all->us[r])
            continue;
        int at = n++;
        for (; at > 0 && sorted[at - 1] > all->us[r]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = all->us[r];
    }
    return n ? sorted[(n - 1) / 2] : 0;
}

int pace_percent(const struct pace *p, int rank)
{
    RM_ASSERT(rank >= 0 && rank < p->shares.world, "the pace of rank %d of %d", rank, p->shares.world);
    struct paces all = paces_of(p);
    uint64_t median = median_of(&all), own = all.us[rank];
    if (!own || !median)
        return 0;
    uint64_t usual = (uint64_t)((all.lanes + all.world - 1) / all.world);
    if (own > median && (own - median) * usual < PACE_LEAST)
        return 100;
    uint64_t percent = own * 100 / median;
    return percent > INT32_MAX ? INT32_MAX : (int)percent;
}

enum pace_turn pace_watch_hear(struct pace_watch *w, int percent)
{
    if (!percent || (percent > PACE_SLOW) == w->slow) {
        w->steps = percent ? 0 : w->steps;
        return PACE_STAYS;
    }
    RM_ASSERT(w->steps >= 0 && w->steps < PACE_STEPS, "%d steps in a row", w->steps);
    w->steps++;
    if (w->steps < PACE_STEPS)
        return w->steps == 1 ? PACE_DOUBTED : PACE_STAYS;
    w->slow = !w->slow;
    w->steps = 0;
    return PACE_TURNS;
}
