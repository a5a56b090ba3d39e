/* What a sum is made of, by programs or by trainers themselves; a part of sim.h, which includes it. */
#ifndef RM_TESTS_SIM_LANES_H
#define RM_TESTS_SIM_LANES_H

#include "common/base/lane_set.h"
#include "common/base/time.h"
#include "common/wire/message.h"

struct node;
struct ring;
struct sim;
struct trainer;

/* What a rank adds to a sum: which lanes, of which step and pass, by the shares of which ring. */
struct lane_sum {
    struct msg_generation ring;
    int64_t step; /* 0: there is none */
    int pass;
    struct lane_set lanes;
};

/* What a rank keeps of a pass whose ring is no more. */
struct lane_keep {
    struct msg_generation ring; /* the newest by whose deal it computed */
    int64_t behind;             /* the step that its lanes were computed from */
    uint64_t hash;              /* and its history */
    bool alone, again;          /* begun in a ring of one, or with other exponents: nothing of it is kept */
    struct lane_set done, own;  /* own: whose computing is under way */
    bool spoilt;                /* a bit of what they add up to has changed */
    rm_time begun, until;       /* of those that are under way */
};

rm_time lanes_take(struct sim *sim, int node, rm_time drawn);
/* A pass begins, or is gone on with; returns how much of the time for the usual share it takes. */
rm_time lanes_begin(struct sim *sim, int node, bool again, rm_time takes);
/* No further lane is begun: when the one under way ends; -1: all are done before, or none is kept. */
rm_time lanes_pause(struct sim *sim, int node);
void lanes_done(struct sim *sim, struct node *n);
void lanes_forget(struct node *n);
struct lane_set lanes_kept(const struct sim *sim, const struct node *n);
/* What it tells of its pass once the step is made. */
struct msg_pace lanes_pace(const struct trainer *t);
void lanes_check(struct sim *sim, const struct ring *ring);
/* It connects a ring; and a header of that has come to it, of a pass that fits. */
void lanes_connect(struct sim *sim, struct trainer *t, const struct ring *ring);
void lanes_hear(struct sim *sim, struct trainer *t, const uint32_t *us);

#endif
