/* Workers that can't reach each other. */
#ifndef RM_COORDINATOR_RDZV_PAIRS_H
#define RM_COORDINATOR_RDZV_PAIRS_H

#include "coordinator/core/rdzv_state.h"

bool rdzv_pairs_are_apart(const struct rdzv *st, int a, int b);
uint64_t rdzv_pairs_in_ring(const struct rdzv *st, int worker); /* members that it is apart from */
bool rdzv_pairs_bar(const struct rdzv *st, int worker);         /* it may not join: there are such */
bool rdzv_pairs_answer_only(const struct rdzv *st, int worker); /* a handshake with a member proves little */
void rdzv_pairs_another_process(struct rdzv *st, int worker);
void rdzv_pairs_answered(struct rdzv *st, int a, int b); /* each the other's handshake */
/* Also while a ring that broke stops, for whom its other members name. */
void rdzv_pairs_fault(struct rdzv *st, const struct rdzv_worker *w, const struct msg_fault *f);
void rdzv_pairs_stall(struct rdzv *st, int by, int peer, const char *why); /* by waits for bytes of peer's */
void rdzv_pairs_in_vain(struct rdzv *st);         /* the forming breaks, and nobody is named */
bool rdzv_pairs_stopped(const struct turn *turn); /* all have answered the stop; a pair is apart now */
void rdzv_pairs_choose(const struct turn *turn);  /* who is to form */
bool rdzv_pairs_hold_back(const struct rdzv *st,
                          rm_time now); /* there is something to do or wait for first */
rm_time rdzv_pairs_form_at(const struct rdzv *st);
rm_time rdzv_pairs_give_up_at(const struct rdzv *st); /* RM_NEVER: it does not */
bool rdzv_pairs_give_up(const struct turn *turn);     /* true: an ending is set */
void rdzv_pairs_say_too_few(const struct rdzv *st, char *out, size_t size);
void rdzv_pairs_formed(const struct turn *turn); /* `form` is about to be sent */
void rdzv_pairs_went(struct rdzv *st);           /* `go` is sent */
void rdzv_pairs_stepped(struct rdzv *st);        /* a step of this ring is made */

#endif
