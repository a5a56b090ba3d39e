/* Connections, hellos and expectations. */
#ifndef RM_COORDINATOR_RDZV_MEMBERS_H
#define RM_COORDINATOR_RDZV_MEMBERS_H

#include "coordinator/core/rdzv_state.h"

void rdzv_hello(const struct turn *turn, int conn, const struct msg_hello *h);
void rdzv_closed(const struct turn *turn, int conn);
void rdzv_expect(const struct turn *turn, const struct command_expect *expect);
void rdzv_check_silence(const struct turn *turn);

#endif
