/* What a program started and left behind: processes whose parents have ended become children of this process
 * once it has said that it takes them in, and it ends and reaps them by their pids. */
#ifndef RM_LAUNCH_DESCENDANTS_H
#define RM_LAUNCH_DESCENDANTS_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/base/time.h"

/* From here on they come here, and not to the machine's first process. */
int descendants_take_in(struct error *err);

/* What somebody else knows of a child. */
enum descendant {
    DESCENDANT_STRANGER, /* nobody waits for it */
    DESCENDANT_OURS,     /* somebody reaps it */
    DESCENDANT_SPARED,   /* and it is to live on */
};

/* One look at all children of this process: those that have ended are reaped, but for those that somebody
 * waits for. kill: those that live are ended, ours too, but not those that are spared. Returns how many it
 * saw that are not spared, those that it reaped among them: after 0 none is left, since a child stays in
 * /proc until it is reaped, and what it leaves behind becomes a child before that. who: NULL where all are
 * strangers. */
int descendants_look(enum descendant (*who)(const void *ctx, long pid), const void *ctx, bool kill);

/* No child is left, living or waiting to be reaped. */
bool descendants_none(void);

/* Ends all of them, at most for `within`; blocks. For one who has no child of its own any more. */
void descendants_end(rm_time within);

#endif
