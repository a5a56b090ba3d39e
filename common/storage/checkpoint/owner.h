/* A folder or bucket of checkpoints has one live owner: the run that saves there.
 *
 * A folder is held by a lock on its file .lock, which goes with the process. In a bucket the owner is named
 * by an object .owner-<number>; the highest number owns, and whoever takes over creates the next number,
 * which only one can. Whoever finds the place owned asks, by an object .owner-<number>-asks: an owner looks
 * for that every OWNER_LOOK, on a thread of its own, and answers by writing its own object anew. One that has
 * not answered for OWNER_LEASE is lost (nobody compares clocks). So an owner whom nobody asks writes nothing,
 * which a bucket with versions would keep. An owner of this machine whose process has gone is known to be
 * dead at once, and what another process of the same run holds is taken over at once: whoever starts it knows
 * that one to be gone.
 *
 * That only one can create a number rests on the store: one that overwrites what it was told to create only
 * where nothing is (owner_is_fenced) makes it a matter of moments. Then the last one to write has it, and the
 * other finds that out a moment later.
 *
 * An owner who was cut off from the store may have been followed meanwhile. It looks at that after each
 * question of its own that went wrong or took long, and once in OWNER_LEASE, and takes the place again by the
 * rule by which anybody takes it (owner_rule.h): at once where the other one has released it or is known to
 * be dead, else once that one has not answered for OWNER_LEASE. One that answers keeps the place; it is asked
 * again later, each time after twice as long, up to 16 leases. So of two runs that live one has it, and it
 * does not go to and fro between them: who lost it stays out and says so (owner_is_away), with the other's
 * name, since when that one has it, and what to do. A later process of the same run that has it is no loss.
 *
 * `run` names the run, as owner_run makes it from the job's key. Agents ask owner_check with it before they
 * publish, so that an owner who was taken over while it was cut off (or its workers) publishes nothing. They
 * compare runs, not numbers, so that a place that was taken again is theirs again with their next look. */
#ifndef RM_STORE_OWNER_H
#define RM_STORE_OWNER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/time.h"
#include "common/storage/object/object.h"

enum { OWNER_RUN_MAX = 17 /* hex, with its NUL */ };

static const rm_time OWNER_LOOK = 3 * RM_S, OWNER_LEASE = 15 * RM_S;

void owner_run(const void *key, size_t length, char out[OWNER_RUN_MAX]);

struct owner;

/* Makes the folder where needed. Held by someone else who lives: ERR_MACHINE with a sentence. Waits for up to
 * OWNER_LEASE where somebody's end has to be found out; `waiting` (may be NULL) is told so. */
struct owner_options {
    const struct object_options *place; /* its strings live longer than the owner */
    const char *run;
    const char *title;   /* what others are told that it is called; NULL: nothing */
    rm_time look, lease; /* 0: OWNER_LOOK, OWNER_LEASE */
    void (*waiting)(void *ctx, const char *text);
    void (*changed)(
        void *ctx); /* owner_is_away says something else; on a thread of the owner's. May be NULL */
    void *ctx;
};
int owner_open(struct owner **ret, const struct owner_options *options, struct error *err);
/* Whether a folder could be held: makes and keeps nothing. Of a bucket it says nothing. */
int owner_look(const char *uri, struct error *err);
/* Gives it free for the next one. NULL is fine. */
void owner_free(struct owner *owner);

/* Does the place make sure by itself that there is one owner? A folder does; of a bucket it was tried. */
bool owner_is_fenced(const struct owner *owner);
/* What to say where it does not: one sentence. */
void owner_unfenced_sentence(const struct owner *owner, char *out, size_t size);

/* The place is another's at the moment: why, of CLASS_PASSING; for a person where two live. Never of a
 * folder. From any thread. */
bool owner_is_away(struct owner *owner, struct error *ret_why);

/* Is the store still that run's, or nobody's? ERR_EXISTS with a sentence where it is another's, be it
 * released: its owner takes it again when it can (CLASS_PASSING). A folder needs no asking: success. */
int owner_check(struct object_store *store, const char *run, struct error *err);

#endif
