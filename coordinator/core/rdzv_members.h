/* Connections, hellos and expectations. */
#ifndef RM_COORDINATOR_RDZV_MEMBERS_H
#define RM_COORDINATOR_RDZV_MEMBERS_H

#include "coordinator/core/rdzv_state.h"

void rdzv_hello(struct rdzv *st, int conn, const struct msg_hello *h, rm_time now, struct rdzv_out *out);
void rdzv_closed(struct rdzv *st, int conn, rm_time now, struct rdzv_out *out);
void rdzv_expect(struct rdzv *st, const struct command_expect *expect, rm_time now, struct rdzv_out *out);
void rdzv_check_silence(struct rdzv *st, rm_time now, struct rdzv_out *out);

#endif
