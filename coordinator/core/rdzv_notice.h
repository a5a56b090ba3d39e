/* What workers are told of their machines' end, kept for who watches. Nothing is done about it here: a worker
 * whose machine will go says by itself that it will leave (rdzv_leave.h). Where no `will` stands any more it
 * need not, unless its leave has begun. */
#ifndef RM_COORDINATOR_RDZV_NOTICE_H
#define RM_COORDINATOR_RDZV_NOTICE_H

#include "common/wire/message.h"
#include "coordinator/core/rdzv_turn.h"

struct rdzv_worker;

/* A worker says what all its notices come to: that word takes the place of its last one. Told once: another
 * source or cause, a `may` that has become a `will`, and what is withdrawn; a moment that moves is not. It
 * says all of it again to each connection. Of whom nobody knows the source or the cause it is no word, and of
 * times no more than twice what the vendor promises is believed. */
void rdzv_noticed(const struct turn *turn, struct rdzv_worker *w, const struct msg_noticed *said);

#endif
