/* How many lanes each rank of a ring computes, by how long they take it: the same on all ranks, decided by
 * what the headers since the ring was formed have said. Pure.
 *
 * A header brings each rank's time a lane. Of the newest eight of a rank, the longest and the shortest do not
 * count, and the others' mean is its pace; until there are eight of each, all have the usual shares. Where
 * other shares would make a step shorter by 5 % and by a millisecond, and eight headers in a row have said
 * so, the next step has those. Nobody who has lanes is left without one: so it goes on being known how fast
 * it is. Who has none gets none.
 *
 * A change costs nobody a bit: words are integers, whose sum is the same by whomever a lane was computed.
 * Where they are not (reduction: fast), shares stay as they are. Only headers of a step that fits are heard,
 * once each: a pass that is repeated has the shares of the first one. Where a ring breaks the next one begins
 * from the usual shares, whatever some have heard of the last header.
 *
 * Two releases that share lanes out differently can't be in one ring: whoever changes anything here raises
 * MSG_PROTOCOL. */
#ifndef RM_TRAINER_PACE_H
#define RM_TRAINER_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/lane_shares.h"

enum {
    PACE_HEARD = 8,    /* headers of which a pace is made */
    PACE_PATIENCE = 8, /* headers in a row that say that others would be better */
    PACE_GAIN = 5,     /* percent of a step that they must save, */
    PACE_LEAST = 1000, /* and us */
    PACE_SLOW = 150,   /* percent of the median rank's time a lane: above it a rank is slow, */
    PACE_STEPS = 20,   /* if for so many steps in a row; likewise it is no longer */
};

struct pace {
    struct lane_shares shares; /* of the next step */
    bool moves;
    int64_t heard; /* headers */
    int better;    /* of them in a row, in which other shares would have been */
    uint32_t us[RM_WORKERS_MAX][PACE_HEARD];
};

/* A new ring. moves: false: the usual shares are for good. */
void pace_begin(struct pace *p, int lanes, int world, bool moves);
/* us (world): time a lane that each rank said; 0: nobody knows. True: the next step has other shares. */
bool pace_hear(struct pace *p, const uint32_t *us);
/* How many us a lane takes that rank; 0: not known yet, or it has none. */
uint32_t pace_of_rank(const struct pace *p, int rank);
/* Whether that rank would have done one lane more no later in the next step than others have theirs: by how
 * long lanes take all, and where that is not known yet, or such a step takes no longer than PACE_LEAST, by
 * how many the usual shares are. Who has none is as fast as others, as far as is known. */
bool pace_has_room(const struct pace *p, int rank);
/* In percent of the median of those who have lanes, the quicker one of two; 100 where the usual share would
 * take it less than PACE_LEAST longer; 0: not known yet. */
int pace_percent(const struct pace *p, int rank);

/* Whether a worker is slow: outlives rings, as nothing else hangs on it. */
struct pace_watch {
    bool slow;
    int steps; /* in a row that say otherwise */
};

enum pace_turn {
    PACE_STAYS,
    PACE_DOUBTED, /* the first step that says otherwise */
    PACE_TURNS,   /* it is slow from here on, or no longer */
};

/* percent: of a step, from pace_percent. */
enum pace_turn pace_watch_hear(struct pace_watch *w, int percent);

#endif
