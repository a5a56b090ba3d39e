/* Filling actions, in the order in which they are to be done. */
#ifndef RM_COORDINATOR_RDZV_OUT_H
#define RM_COORDINATOR_RDZV_OUT_H

#include "coordinator/core/rdzv_state.h"

/* No actions yet; those of the step before are void. */
void rdzv_out_begin(struct rdzv_out *out);
/* Begins a message to nobody yet; the result is to be filled in. */
struct message *rdzv_send(const struct turn *turn, enum msg_type type);
/* Adds a recipient to the newest action, which has to be a message. Nothing happens for a worker without a
 * connection. */
void rdzv_send_to(const struct turn *turn, const struct rdzv_worker *w);
/* Begins a message to one worker. */
struct message *rdzv_send_one(const struct turn *turn, const struct rdzv_worker *w, enum msg_type type);
/* Sends `abandon`; the connection is the caller's to close. */
void rdzv_send_away(const struct turn *turn, const struct rdzv_worker *w, int exit_code, const char *why);
/* What has been told by now need not be said again. */
void rdzv_acknowledge(const struct turn *turn, const struct rdzv_worker *w);
/* Closes a connection after what was sent to it; nothing for -1. */
void rdzv_close_conn(const struct turn *turn, int conn);
/* Ends the program: the last action of all. */
void rdzv_tell_end(const struct turn *turn, int exit_code, const char *why);
/* Begins an event, empty but for its kind. */
struct rdzv_tell *rdzv_tell(const struct turn *turn, enum rdzv_tell_kind kind);
/* Tells an event about one worker, of the newest step that was told. */
struct rdzv_tell *rdzv_tell_worker(const struct turn *turn, enum rdzv_tell_kind kind, int worker,
                                   const char *text);

#endif
