/* The step from state(s) to state(s+1): norm, clipping, lineage and AdamW, restartable at any instruction.
 *
 * AdamW as PyTorch's: decoupled weight decay (2-D tensors only), bias correction, epsilon added to
 * sqrt(v / (1 - beta2^t)). Every operation is fp32 with its own rounding in a fixed order, the same for any
 * number of threads and any instruction set.
 *
 *     after lanes_words_to, and the reduction of the words into that -> update_commit(l, rule, &info)
 *     after state_open with state_pending, or after state_update_receive_end -> update_apply(...)
 *     before state_update_receive_end -> update_check_received(...) */
#ifndef RM_TRAINER_UPDATE_H
#define RM_TRAINER_UPDATE_H

#include <stdint.h>

#include "common/os/pool.h"
#include "trainer/backend/cpu/sums/lanes.h"
#include "trainer/exact/schedule.h"
#include "trainer/state/state.h"

struct update_rule {
    struct schedule schedule;
    double beta1, beta2, epsilon, weight_decay;
    double clip_norm; /* 0: no clipping */
};

struct update_info {
    int64_t step; /* now held */
    double loss;  /* mean over lanes */
    double norm;  /* of the mean gradient, before clipping */
    double clip;  /* factor in (0, 1] */
    double rate;
};

/* Makes the reduced words, which are complete, the update to s+1 and applies it. From the moment that it
 * begins, a successor will finish it; it cannot fail. info may be NULL. */
void update_commit(struct lanes *l, const struct update_rule *rule, struct update_info *info);

/* Would what lies in the buffers of state_update_receive_begin lead from the state held to that step and
 * lineage? To be asked before state_update_receive_end makes it pending, which can't be taken back.
 * ERR_PROTOCOL where it leads elsewhere (the source's words are not right, or this state is of another
 * history), and nothing has changed. pool NULL: one thread. */
int update_check_received(struct state *s, const struct update_rule *rule, struct pool *pool,
                          const struct state_point *wanted, struct error *err);

/* Applies the pending update (state_pending is true) to all pieces that lack it, and commits. pool NULL:
 * one thread. */
void update_apply(struct state *s, const struct update_rule *rule, struct pool *pool,
                  struct update_info *info);

#endif
