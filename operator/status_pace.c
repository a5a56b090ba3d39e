#include "operator/status_pace.h"

static const rm_time ticking_each = 10 * RM_S;
static const rm_time turn_holds =
    10 * RM_S; /* a place that nobody comes to is lost: else all could come at once */
static const double tickings_per_second = 20, urgents_at_once = 30, urgents_per_second = 0.5;

struct status_paces status_paces_init(rm_time now)
{
    return (struct status_paces){bucket_init(tickings_per_second, tickings_per_second, now)};
}

bool status_pace_allows(struct status_paces *all, struct status_pace *own, enum op_change change, rm_time now,
                        rm_time *ret_when)
{
    if (change == OP_SAME)
        return true;
    if (change == OP_URGENT) {
        if (!own->urgent.burst)
            own->urgent = bucket_init(urgents_per_second, urgents_at_once, now);
        return bucket_take(&own->urgent, now, ret_when);
    }
    *ret_when = own->written + ticking_each;
    if (own->written && *ret_when > now)
        return false;
    if (!own->turn || now - own->turn > turn_holds)
        own->turn = bucket_queue(&all->ticking, now);
    *ret_when = own->turn;
    if (own->turn > now)
        return false;
    own->turn = 0;
    return true;
}
