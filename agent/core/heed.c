#include "agent/core/heed.h"

#include <stddef.h>

static const rm_time apart = 60 * RM_S; /* one leave a machine and minute */
static const rm_time jitter = 2 * RM_S; /* moments that are told again differ by that much */

void heed_init(struct heed *heed, rm_time now)
{
    *heed = (struct heed){.came = now};
}

static const struct notice *will_of(const struct notices *notices)
{
    const struct notice *first = notices_first(notices);
    return first && first->certainty == NOTICE_WILL ? first : NULL;
}

bool heed_notices(struct heed *heed, const struct notices *notices, bool complete, rm_time now,
                  struct notice *ret)
{
    const struct notice *will = will_of(notices);
    if (!heed->heard)
        heed->doomed = will != NULL;
    heed->heard = heed->heard || complete || will;
    if (!will || (heed->doomed && now < heed->came + apart))
        return false;
    if (heed->told && (will->until == RM_NEVER || will->until > heed->leaves.until - jitter))
        return false;
    heed->told = true;
    heed->leaves = *ret = *will;
    return true;
}

rm_time heed_deadline(const struct heed *heed, const struct notices *notices)
{
    bool waits = heed->heard && heed->doomed && !heed->told && will_of(notices);
    return waits ? heed->came + apart : RM_NEVER;
}
