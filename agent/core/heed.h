/* What a worker does about notices of its machine's end: a `will` is a leave, with the nearest deadline; a
 * `may` is nothing that it does by itself. Pure.
 *
 * Who leaves has a few seconds to do so, also where the moment that was told is over.
 *
 * A worker that comes to a machine of which the first word is that it will go (or to whose port a stranger
 * answers so) works until a minute before the moment, and for a minute at least: what takes its place may
 * come to that machine again. Where no moment is known, or it is over by then, that worker stays until it
 * is told otherwise: the machine is there longer than was said. So at most two leave a machine in a row for
 * one moment. */
#ifndef RM_AGENT_CORE_HEED_H
#define RM_AGENT_CORE_HEED_H

#include "common/notice/notice.h"

struct heed {
    bool heard, doomed;   /* a first complete word; it was that of a `will` */
    rm_time since;        /* when that word came */
    struct notice leaves; /* by what it was last told to leave, where `told` */
    bool told;
};

void heed_init(struct heed *heed);

/* complete: all that is not among the notices is not so, as far as the source knows.
 * After each word, and at heed_deadline with the same one: true where the worker is to leave by *ret, or
 * sooner than it was told to. ret->until is some seconds ahead at least. */
bool heed_notices(struct heed *heed, const struct notices *notices, bool complete, rm_time now,
                  struct notice *ret);

/* When what waits is due; RM_NEVER: nothing does. */
rm_time heed_deadline(const struct heed *heed, const struct notices *notices, rm_time now);

#endif
