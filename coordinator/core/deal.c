/* Shares the lanes of a step out that nobody has computed yet. */
#include "coordinator/core/deal.h"

#include "common/base/assert.h"

/* Who has most of those that are not settled yet; -1: nobody has any. */
static int richest(const struct lane_set *done, const bool *settled, int world)
{
    int best = -1, most = 0;
    for (int r = 0; r < world; r++) {
        int count = settled[r] ? 0 : lane_set_count(&done[r]);
        if (count > most) {
            most = count;
            best = r;
        }
    }
    RM_ASSERT(best < 0 || (best < world && !settled[best]), "rank %d of %d is settled twice", best, world);
    return best;
}

/* Returns which lanes somebody has. */
static struct lane_set keep_disjoint(int world, struct lane_set *done)
{
    struct lane_set kept = {0};
    int given = 0;
    bool settled[RM_WORKERS_MAX] = {false};
    for (int r = richest(done, settled, world); r >= 0; r = richest(done, settled, world)) {
        settled[r] = true;
        if (lane_set_meets(&done[r], &kept))
            done[r] = (struct lane_set){0};
        else
            lane_set_add_all(&kept, &done[r]);
    }
    for (int r = 0; r < world; r++)
        given += lane_set_count(&done[r]);
    RM_ASSERT(given == lane_set_count(&kept), "%d lanes are somebody's, and %d are kept", given,
              lane_set_count(&kept));
    return kept;
}

/* Fills ret (world) with the ranks that may get lanes; returns how many they are. */
static int find_busy(int world, struct worker_set idle, const struct lane_set *done, int *ret)
{
    int count = 0;
    for (int r = 0; r < world; r++) {
        RM_ASSERT(!set_has(idle, r) || lane_set_is_empty(&done[r]), "rank %d has lanes, and gets none", r);
        if (!set_has(idle, r))
            ret[count++] = r;
    }
    RM_ASSERT(count > 0, "all of %d ranks get no lane", world);
    return count;
}

int deal_lanes(int lanes, int world, struct worker_set idle, struct lane_set *done, int *ret_rank)
{
    int busy[RM_WORKERS_MAX];
    RM_ASSERT(world >= 1 && world <= RM_WORKERS_MAX && lanes >= 1 && lanes <= RM_LANES_MAX,
              "%d lanes are dealt to %d", lanes, world);
    struct lane_set kept = keep_disjoint(world, done);
    int left = lanes - lane_set_count(&kept), dealt = 0, among = find_busy(world, idle, done, busy);
    RM_ASSERT(left >= 0 && lane_set_next(&kept, lanes - 1) < 0, "%d lanes of %d are computed", lanes - left,
              lanes);
    for (int lane = 0; lane < lanes; lane++) {
        if (!lane_set_has(&kept, lane))
            ret_rank[lane] = busy[(int64_t)dealt++ * among / left];
        for (int r = 0; r < world && lane_set_has(&kept, lane); r++)
            if (lane_set_has(&done[r], lane))
                ret_rank[lane] = r;
    }
    RM_ASSERT(dealt == left, "%d lanes are dealt, of %d", dealt, left);
    return left;
}
