/* A ring that stands still although everybody is there: who holds it up, and what is done about it. */
#ifndef RM_COORDINATOR_RDZV_HANG_H
#define RM_COORDINATOR_RDZV_HANG_H

#include "coordinator/core/rdzv_state.h"

/* What a heartbeat shows of a trainer. */
void rdzv_hang_heartbeat(struct rdzv_worker *w, const struct msg_heartbeat *h, rm_time now);
/* How long steps take: patience follows their median. */
void rdzv_hang_step_took(struct rdzv *st, rm_time took);
/* The median of the newest steps, ten at most, that rings of as many members as now have made; 0: none yet.
 */
rm_time rdzv_hang_step_of_ring(const struct rdzv *st);
/* Before an event is heard: whether this coordinator has only just begun to hear anybody again; stood_still:
 * so it has, by its own clock. */
void rdzv_hang_listen(const struct turn *turn, bool stood_still);
/* Whether the answer of this worker, which is no member, is still to be waited for. */
bool rdzv_hang_answers(const struct rdzv *st, const struct rdzv_worker *w, rm_time now);
/* When the last of those who owe an answer has given it or its trainer is killed, unless it moves; 0: nobody
 * owes one. */
rm_time rdzv_hang_answers_until(const struct rdzv *st);
/* Has the trainer killed that holds up a step, a stop or a save, or breaks a ring whose connections do not
 * work. */
void rdzv_check_hang(const struct turn *turn);
/* When to look next; RM_NEVER while nobody has anything to do. */
rm_time rdzv_hang_at(const struct rdzv *st);

#endif
