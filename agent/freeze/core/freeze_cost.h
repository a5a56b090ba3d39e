/* What a snapshot of a program's processes costs, by the one before it: whether there is room and time for
 * one, and how often one is made. Pure. */
#ifndef RM_FREEZE_CORE_COST_H
#define RM_FREEZE_CORE_COST_H

#include "common/base/error.h"
#include "common/base/time.h"

/* How a snapshot went; all 0: there was none yet. */
struct freeze_cost {
    int64_t memory;             /* bytes that its processes had in memory then */
    rm_time frozen, dump, send; /* they stood still; until it lay on this disk; until it was published */
};

struct freeze_want {
    int64_t memory, room; /* bytes: in memory now; free where it is written to. -1: not known */
    rm_time within;       /* RM_NEVER: there is time enough */
};

/* ERR_MACHINE with why there is to be none. Where no other one was made before it is tried: the time that it
 * takes is not known, and what is there after half a minute says more than a guess. */
int freeze_refuse(const struct freeze_cost *last, const struct freeze_want *want, struct error *err);

/* The time between the end of one and the next where the job leaves it to us: the processes stand still for a
 * thousandth of it at most, and it is sent in a tenth, but nobody loses more than `most`. */
rm_time freeze_every(const struct freeze_cost *last, rm_time most);

#endif
