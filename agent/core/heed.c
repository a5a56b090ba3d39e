#include "agent/core/heed.h"

#include <stddef.h>

#include "common/base/assert.h"

static const rm_time apart = 60 * RM_S; /* one leave a machine and minute */
static const rm_time least = 5 * RM_S;  /* in which a worker can leave */

void heed_init(struct heed *heed)
{
    *heed = (struct heed){.heard = false};
}

static const struct notice *will_of(const struct notices *notices)
{
    const struct notice *first = notices_first(notices);
    return first && first->certainty == NOTICE_WILL ? first : NULL;
}

/* When a worker that came to a machine which goes is to leave; RM_NEVER: it is not to. */
static rm_time doomed_at(const struct heed *heed, const struct notice *will)
{
    if (will->until == RM_NEVER)
        return RM_NEVER;
    rm_time at = rm_later(heed->since + apart, will->until - apart);
    RM_ASSERT(at >= heed->since + apart, "a machine that goes is left at %lld, known since %lld",
              (long long)at, (long long)heed->since);
    return will->until - at < least ? RM_NEVER : at;
}

bool heed_notices(struct heed *heed, const struct notices *notices, bool complete, rm_time now,
                  struct notice *ret)
{
    const struct notice *will = will_of(notices);
    if (!heed->heard && (complete || will))
        *heed = (struct heed){.heard = true, .doomed = will, .since = now};
    if (!will) {
        heed->told = false; /* what was told is withdrawn, and another one is another leave */
        return false;
    }
    if (heed->doomed && !heed->told && (now < doomed_at(heed, will) || will->until - now < least))
        return false;
    rm_time until = rm_later(will->until, now + least);
    RM_ASSERT(heed->heard && until >= now + least, "a leave until %lld, at %lld", (long long)until,
              (long long)now);
    if (heed->told && (until == RM_NEVER || until > heed->leaves.until - NOTICE_SAME_MOMENT))
        return false;
    heed->told = true;
    heed->leaves = *will;
    heed->leaves.until = until;
    *ret = heed->leaves;
    return true;
}

rm_time heed_deadline(const struct heed *heed, const struct notices *notices, rm_time now)
{
    const struct notice *will = will_of(notices);
    rm_time at = heed->doomed && !heed->told && will ? doomed_at(heed, will) : RM_NEVER;
    RM_ASSERT(!heed->told || heed->heard, "of %d notices one was told, and none heard", notices->count);
    return at > now ? at : RM_NEVER;
}
