/* Workers that can't reach each other. Two are *apart* once that is known of them. */
#ifndef RM_COORDINATOR_RDZV_PAIRS_H
#define RM_COORDINATOR_RDZV_PAIRS_H

#include "coordinator/core/rdzv_state.h"

bool rdzv_pairs_are_apart(const struct rdzv *st, int a, int b);
/* The members that this worker is apart from. */
struct worker_set rdzv_pairs_in_ring(const struct rdzv *st, int worker);
/* The worker is no member, and may not join: it is apart from one. */
bool rdzv_pairs_bar(const struct rdzv *st, int worker);
/* A member that it is apart from has answered it before, and no step came of that. */
bool rdzv_pairs_answer_only(const struct rdzv *st, int worker);
/* What was seen of the process before it under this number says little of this one. */
void rdzv_pairs_another_process(struct rdzv *st, int worker);
/* Each has answered the other's handshake. */
void rdzv_pairs_answered(struct rdzv *st, int a, int b);

/* A member of a ring that breaks says whom it can't reach; also while the ring stops, as others name
 * somebody, too. */
void rdzv_pairs_fault(struct rdzv *st, const struct rdzv_worker *w, const struct msg_fault *f);
/* `by` waits for bytes that do not come from `peer`. */
void rdzv_pairs_stall(struct rdzv *st, int by, int peer, const char *why);
/* The forming breaks, and nobody is named. */
void rdzv_pairs_in_vain(struct rdzv *st);
/* All have answered the stop. True: that two are apart is news. */
bool rdzv_pairs_stopped(const struct turn *turn);
/* Chooses who is to form, of those who are candidates now. */
void rdzv_pairs_choose(const struct turn *turn);
/* There is something to save, to end, or to wait for before a ring forms. */
bool rdzv_pairs_hold_back(const struct rdzv *st, rm_time now);
/* When a ring may form. */
rm_time rdzv_pairs_form_at(const struct rdzv *st);
/* When too few who reach each other end the run; RM_NEVER: they don't. */
rm_time rdzv_pairs_give_up_at(const struct rdzv *st);
/* True: it has waited long enough, and an ending is set. */
bool rdzv_pairs_give_up(const struct turn *turn);
/* Which pairs can't reach each other, in words. */
void rdzv_pairs_say_too_few(const struct rdzv *st, char *out, size_t size);
/* `form` is about to be sent. */
void rdzv_pairs_formed(const struct turn *turn);
/* `go` is sent. */
void rdzv_pairs_went(struct rdzv *st);
/* A step of this ring is made: all its members reach each other. */
void rdzv_pairs_stepped(struct rdzv *st);

#endif
