/* Who comes, who goes, and whose word counts. */
#ifndef RM_COORDINATOR_RDZV_MEMBERS_H
#define RM_COORDINATOR_RDZV_MEMBERS_H

#include "coordinator/core/rdzv_state.h"

/* A process says who it is: it is welcomed, refused, or told again what it may have missed. */
void rdzv_hello(const struct turn *turn, int conn, const struct msg_hello *h);
/* A connection ended. A member of a ring that runs may come back within lost_after; anybody else is lost. */
void rdzv_closed(const struct turn *turn, int conn);
/* The supervisor says which processes live or are on their way. */
void rdzv_expect(const struct turn *turn, const struct command_expect *expect);
/* Loses whoever was silent, or away, for lost_after. */
void rdzv_check_silence(const struct turn *turn);
/* When to look next; RM_NEVER: nobody is here. */
rm_time rdzv_silence_at(const struct rdzv *st);

#endif
