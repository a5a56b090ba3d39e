/* All that membership (who is in the ring) asks of states and checkpoints (from which step it goes on). A
 * program that keeps its state elsewhere, or has none, would need these six and nothing else of that half.
 * tests/layout holds the files of membership to this header. */
#ifndef RM_COORDINATOR_RDZV_BRIDGE_H
#define RM_COORDINATOR_RDZV_BRIDGE_H

#include "coordinator/core/rdzv_state.h"

/* The newest state that anybody at rest holds and that is worth more than the newest checkpoint; held is
 * false where there is none. Memory that is older than a checkpoint of ours is worth less than that. */
struct msg_state rdzv_best_state(const struct rdzv *st);
bool rdzv_holds_what_is_saved(const struct rdzv *st, const struct rdzv_worker *w); /* in SAVING */
bool rdzv_save_lacks(const struct rdzv *st, int part); /* the save under way waits for this part */
/* The newest step of which a piece is in; -1: nothing is being saved. */
int64_t rdzv_step_under_way(const struct rdzv *st);
/* It is gone, or may not have heard that it is to publish. */
void rdzv_forget_publisher(struct rdzv *st, const struct rdzv_worker *w);
/* It may not have heard what it is to save. */
void rdzv_save_resend(const struct turn *turn, struct rdzv_worker *w);

#endif
