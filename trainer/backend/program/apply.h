/* An update on its way to a program: what the words add up to, the state that they lead to, and their mean in
 * fp32 for the program to apply. The same numbers as trainer/backend/cpu/sums/update.h finds; how weights
 * change by them is the program's own. */
#ifndef RM_BACKEND_PROGRAM_APPLY_H
#define RM_BACKEND_PROGRAM_APPLY_H

#include "common/os/pool.h"
#include "trainer/backend/cpu/sums/lanes.h"
#include "trainer/state/state.h"

struct apply {
    struct state *state;
    struct pool *pool;
    const uint8_t *held;
    int buffer;              /* of the words */
    struct state_point next; /* that they lead to */
    double norm;             /* of the mean gradient */
    uint64_t proof;          /* of the words (trainer/exact/proof.h) */
};

/* held: sum over the image of the state that the update is for, where watch_is_due; else NULL, in all three.
 * Of a pass that fits and whose words are summed: */
void apply_begin_own(struct apply *a, const struct lanes *lanes, const uint8_t *held);
/* Of the update that waits (state_pending): */
void apply_begin_pending(struct apply *a, struct state *state, struct pool *pool, const uint8_t *held);
/* Keeps it: from now on it is the update to the next step. */
void apply_seal(const struct apply *a);
/* The mean of all lanes, each element rounded once; mean (parameters). */
void apply_mean(const struct apply *a, float *mean);
/* The program holds the next state. */
void apply_done(const struct apply *a);

/* Would the update that was received lead from the state held to this one? ERR_PROTOCOL where not. */
int apply_check(struct state *state, struct pool *pool, const uint8_t *held, const struct state_point *wanted,
                struct error *err);

#endif
