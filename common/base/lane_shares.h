/* Whose the lanes of a step are where nobody was dealt others: each rank has a run of them, in the order of
 * ranks, of whatever length; 0 too. Pure. */
#ifndef RM_BASE_LANE_SHARES_H
#define RM_BASE_LANE_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/limits.h"

struct lane_run {
    int first, count;
};

struct lane_shares {
    int world;
    int count[RM_WORKERS_MAX]; // (world)
};

/* A ring makes so many before its lanes may follow how fast its ranks are (trainer/core/pace.h). */
enum { SHARES_USUAL_STEPS = 15 };

/* The usual ones: as many for each as for any other, or one less. */
void shares_even(struct lane_shares *ret, int lanes, int world);

struct lane_run shares_run(const struct lane_shares *s, int rank);
/* -1: nobody's. */
int shares_owner(const struct lane_shares *s, int lane);
int shares_most(const struct lane_shares *s);
int shares_lanes(const struct lane_shares *s);
/* Has no rank more than one lane more than another one? */
bool shares_are_even(const struct lane_shares *s);

#endif
