#include "common/base/lane_shares.h"

#include "common/base/assert.h"

void shares_even(struct lane_shares *ret, int lanes, int world)
{
    RM_ASSERT(world >= 1 && world <= RM_WORKERS_MAX && lanes >= 1, "%d lanes for %d", lanes, world);
    *ret = (struct lane_shares){.world = world};
    for (int r = 0; r < world; r++)
        ret->count[r] = (r + 1) * lanes / world - r * lanes / world;
}

struct lane_run shares_run(const struct lane_shares *s, int rank)
{
    struct lane_run run = {0};
    RM_ASSERT(rank >= 0 && rank < s->world, "the lanes of rank %d of %d", rank, s->world);
    for (int r = 0; r < rank; r++)
        run.first += s->count[r];
    run.count = s->count[rank];
    return run;
}

int shares_owner(const struct lane_shares *s, int lane)
{
    int end = 0;
    for (int r = 0; r < s->world && lane >= 0; r++) {
        end += s->count[r];
        if (lane < end)
            return r;
    }
    return -1;
}

int shares_most(const struct lane_shares *s)
{
    int most = 0;
    for (int r = 0; r < s->world; r++)
        most = s->count[r] > most ? s->count[r] : most;
    return most;
}

int shares_lanes(const struct lane_shares *s)
{
    int lanes = 0;
    for (int r = 0; r < s->world; r++)
        lanes += s->count[r];
    return lanes;
}

bool shares_are_even(const struct lane_shares *s)
{
    int most = shares_most(s);
    for (int r = 0; r < s->world; r++)
        if (s->count[r] + 1 < most)
            return false;
    return true;
}
