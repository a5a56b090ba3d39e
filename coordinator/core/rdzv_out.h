/* Filling actions, in the order in which they are to be done. */
#ifndef RM_COORDINATOR_RDZV_OUT_H
#define RM_COORDINATOR_RDZV_OUT_H

#include "coordinator/core/rdzv_state.h"

struct message *rdzv_send(struct rdzv *st, struct rdzv_out *out, enum msg_type type); /* to nobody yet */
void rdzv_send_to(struct rdzv_out *out, const struct rdzv_worker *w); /* adds to the newest send */
struct message *rdzv_send_one(struct rdzv *st, struct rdzv_out *out, const struct rdzv_worker *w,
                              enum msg_type type);
void rdzv_send_away(struct rdzv *st, struct rdzv_out *out, const struct rdzv_worker *w, int exit_code,
                    const char *why); /* abandon; its connection is the caller's to close */
void rdzv_close_conn(struct rdzv_out *out, int conn);
void rdzv_tell_end(struct rdzv_out *out, int exit_code, const char *why); /* the last action of all */
struct rdzv_tell *rdzv_tell(struct rdzv_out *out, enum rdzv_tell_kind kind);
void rdzv_tell_worker(struct rdzv *st, struct rdzv_out *out, enum rdzv_tell_kind kind, int worker,
                      const char *text);

#endif
