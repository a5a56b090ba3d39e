/* A folder or bucket of checkpoints has one live owner: the run that saves there.
 *
 * A folder is held by a lock on its file .lock, which goes with the process. In a bucket the owner keeps an
 * object .owner-<number> fresh, on a thread of its own; the highest number owns, and whoever takes over
 * creates the next number, which only one can. Whoever finds the folder owned watches the object: one that
 * has not changed for OWNER_LEASE has lost its owner (nobody compares clocks). An owner of this machine whose
 * process has gone is known to be dead at once, and what another process of the same run holds is taken over
 * at once: whoever starts it knows that one to be gone.
 *
 * `run` names the run, as owner_run makes it from the job's key. Agents ask owner_check with it before they
 * publish, so that an owner who was taken over while it was cut off (or its workers) publishes nothing. */
#ifndef RM_STORE_OWNER_H
#define RM_STORE_OWNER_H

#include <stddef.h>

#include "common/base/time.h"
#include "common/object/object.h"

enum { OWNER_RUN_MAX = 17 /* hex, with its NUL */ };

static const rm_time OWNER_REFRESH = 3 * RM_S, OWNER_LEASE = 15 * RM_S;

void owner_run(const void *key, size_t length, char out[OWNER_RUN_MAX]);

struct owner;

/* Makes the folder where needed. Held by someone else who lives: ERR_MACHINE with a sentence. Waits for up to
 * OWNER_LEASE where somebody's end has to be found out; `waiting` (may be NULL) is told so once. */
struct owner_options {
    const struct object_options *place; /* its strings live longer than the owner */
    const char *run;
    void (*waiting)(void *ctx, const char *text);
    void *ctx;
};
int owner_open(struct owner **ret, const struct owner_options *options, struct error *err);
/* Gives it free for the next one. NULL is fine. */
void owner_free(struct owner *owner);

/* Is the store still that run's, or nobody's? ERR_EXISTS with a sentence where it is another's: that does not
 * change by waiting. A folder needs no asking: success. */
int owner_check(struct object_store *store, const char *run, struct error *err);

#endif
