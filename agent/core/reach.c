/* How long one try to reach the coordinator may take, and what a connection bears once it stands. */
#include "agent/core/reach.h"

#include "common/base/assert.h"

static const rm_time found_within = RM_S, held_up = RM_S / 2;
static const rm_time least_patience = RM_S, most_patience = 300 * RM_S;

void reach_begin(struct reach *reach, rm_time now, rm_time handshake_within)
{
    RM_ASSERT(handshake_within >= 0, "a handshake within %lld ns", (long long)handshake_within);
    *reach = (struct reach){.until = now + handshake_within};
    reach->look = rm_earlier(reach->until, now + found_within);
}

enum reach_found reach_look(struct reach *reach, bool reached, rm_time now)
{
    RM_ASSERT(reach->look <= now, "a look at %lld, at %lld", (long long)reach->look, (long long)now);
    bool over = !reached || now >= reach->until, late = now - reach->look > held_up;
    if (over && (!late || reach->spared))
        return reached ? REACH_SILENT : REACH_NOBODY;
    reach->spared = reach->spared || over;
    reach->look = over ? now + found_within : reach->until;
    reach->until = rm_later(reach->until, reach->look);
    return REACH_WAIT;
}

rm_time reach_patience(rm_time lost_after)
{
    return rm_earlier(rm_later(lost_after, least_patience), most_patience);
}
