/* What a worker does about notices of its machine's end: a `will` is a leave, with the nearest deadline; a
 * `may` is nothing that it does by itself. Pure.
 *
 * A worker that comes to a machine of which the first word is that it will go (or to whose port a stranger
 * answers so) does not leave before it has been there for a minute: what takes its place may come to that
 * machine again. */
#ifndef RM_AGENT_CORE_HEED_H
#define RM_AGENT_CORE_HEED_H

#include "common/notice/notice.h"

struct heed {
    rm_time came;         /* when this worker started */
    bool heard, doomed;   /* a first complete word; it was that of a `will` */
    struct notice leaves; /* by what it was last told to leave, where `told` */
    bool told;
};

void heed_init(struct heed *heed, rm_time now);

/* complete: all that is not among the notices is not so, as far as the source knows.
 * After each word, and at heed_deadline with the same one: true where the worker is to leave by *ret, or
 * sooner than it was told to. */
bool heed_notices(struct heed *heed, const struct notices *notices, bool complete, rm_time now,
                  struct notice *ret);

/* When what waits for the minute to be over is due; RM_NEVER: nothing does. */
rm_time heed_deadline(const struct heed *heed, const struct notices *notices);

#endif
