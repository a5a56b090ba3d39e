/* The socket at which a program's processes say how far they are (core/progress.h), in the launcher's folder.
 *
 * A flood of reports costs the program's own machine little: what is read in a row is bounded, then the
 * socket rests, and while it is full whoever sends is refused at once. What is no report is counted and told
 * once a generation. */
#ifndef RM_LAUNCH_REPORTS_H
#define RM_LAUNCH_REPORTS_H

#include "agent/launch/core/progress.h"
#include "common/base/error.h"
#include "common/loop/loop.h"

struct reports;

struct reports_options {
    const char *folder; /* 0700 */
    void (*told)(void *ctx, const struct launch_progress *progress);
    void *ctx;
};

/* ERR_USAGE with a sentence where the folder's path is too long for a socket's. */
int reports_open(struct reports **ret, struct loop *loop, const struct reports_options *options,
                 struct error *err);
const char *reports_path(const struct reports *r); /* NULL where r is */
/* What lies in the socket is told now: before the end of whoever sent it is. */
void reports_hear(struct reports *r);
/* What lies there is of a generation that is over: it goes unread. */
void reports_forget(struct reports *r);
void reports_free(struct reports *r);

#endif
