/* The core's words as text, for the shell: events, the pulse, and the commands that come in. These allocate.
 * The pages for watchers are in history.h. */
#ifndef RM_COORDINATOR_RDZV_TEXT_H
#define RM_COORDINATOR_RDZV_TEXT_H

#include "common/base/limits.h"
#include "common/wire/json.h"
#include "common/wire/status.h"
#include "coordinator/core/rdzv.h"

/* The JSON line of a tell (docs/exit-codes-and-events.md), without the newline; checkpoints' URIs are built
 * from checkpoint_uri. */
void rdzv_tell_print(const struct rdzv_tell *tell, int64_t wall_ms, const char *checkpoint_uri,
                     struct str *out);
/* The pulse of a coordinator that is watched, with what its successor has to know of it. */
void rdzv_alive_print(const struct rdzv *st, rm_time now, int64_t wall_ms, struct str *out);
/* A line from run's pipe as an event; ERR_PROTOCOL. */
int rdzv_command_read(struct rdzv_event *ret, const char *text, size_t length, struct error *err);

/* Members of an object that several texts share. */
enum { RDZV_URI_MAX = RM_URI_MAX + 32 };
const char *rdzv_uri(char out[RDZV_URI_MAX], const char *base, int64_t step, bool final); /* out */
/* Of a user's program, whose processes were frozen (common/storage/checkpoint/frozen.h); out. */
const char *rdzv_frozen_uri(char out[RDZV_URI_MAX], const char *base, int64_t number);
struct status_recovery rdzv_recovery_of(const struct rdzv_recovery *recovery);
void rdzv_set_tell(struct js *o, const struct rdzv_tell *tell, int64_t wall_ms, const char *checkpoint_uri);

#endif
