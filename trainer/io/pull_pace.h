/* How fast a member gives its state to those who listen while it trains (transfer_listen.h): so that the ring
 * keeps nine tenths of its speed. Pure.
 *
 * For as long as a block is given a member may stand still, for want of a processor or of the connection; no
 * longer. So blocks are given in a share of the time only: what took a while is followed by a rest. The share
 * begins at PULL_LEAST percent. Each commit tells how long steps take: where they are as long as those in
 * which nothing was given the share doubles, where they are longer by more than PULL_LOSS percent it is
 * halved. It never goes below PULL_LEAST, so all has come some day. What a step's words take is on top: who
 * misses those begins anew.
 *
 * A member that makes no step is held up by nothing: blocks are given at once. */
#ifndef RM_IO_PULL_PACE_H
#define RM_IO_PULL_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/time.h"

enum {
    PULL_LEAST = 5, /* percent of the time */
    PULL_MOST = 100,
    PULL_LOSS = 10, /* percent that a step may be longer, */
    PULL_ROOM = 5,  /* and up to which more is given */
    PULL_STEPS = 4, /* of which the longest does not count */
};
#define PULL_REST_MOST (2 * RM_S)   /* who waits for a block takes silence for death some day */
#define PULL_TURN_MOST (1 * RM_S)   /* who takes a block as slowly as that keeps no others waiting */
#define PULL_STILL     (20 * RM_MS) /* between two steps a member stands for less */

/* The newest steps of a kind. */
struct pull_steps {
    int count;
    rm_time took[PULL_STEPS];
};

struct pull_pace {
    int64_t step;        /* the newest that was made, */
    rm_time committed;   /* and when; RM_NEVER: nobody saw that */
    rm_time still_since; /* RM_NEVER: a step is being made */
    bool gave;           /* since the newest step */
    struct pull_steps alone, beside;
    int percent;
    rm_time rests_until;
    bool taken; /* somebody is being given a block, since: */
    rm_time taken_at;
    uint64_t turn;
};

/* Also for another ring, whose steps take another time. */
void pull_pace_begin(struct pull_pace *p);
/* A state of that step stands. */
void pull_pace_stands(struct pull_pace *p, int64_t step, rm_time now);
/* It is worked with again. */
void pull_pace_moves(struct pull_pace *p);
/* How long nobody may be given a block yet. 0: the turn is the caller's, until pull_pace_gave. */
rm_time pull_pace_take(struct pull_pace *p, rm_time now, uint64_t *ret_turn);
void pull_pace_gave(struct pull_pace *p, uint64_t turn, rm_time begun, rm_time now);

#endif
