/* Filling actions, in the order in which they are to be done. */
#ifndef RM_COORDINATOR_RDZV_OUT_H
#define RM_COORDINATOR_RDZV_OUT_H

#include "coordinator/core/rdzv_state.h"

struct message *rdzv_send(const struct turn *turn, enum msg_type type);  /* to nobody yet */
void rdzv_send_to(const struct turn *turn, const struct rdzv_worker *w); /* adds to the newest send */
struct message *rdzv_send_one(const struct turn *turn, const struct rdzv_worker *w, enum msg_type type);
void rdzv_send_away(const struct turn *turn, const struct rdzv_worker *w, int exit_code,
                    const char *why); /* abandon; its connection is the caller's to close */
void rdzv_close_conn(const struct turn *turn, int conn);
void rdzv_tell_end(const struct turn *turn, int exit_code, const char *why); /* the last action of all */
struct rdzv_tell *rdzv_tell(const struct turn *turn, enum rdzv_tell_kind kind);
void rdzv_tell_worker(const struct turn *turn, enum rdzv_tell_kind kind, int worker, const char *text);

#endif
