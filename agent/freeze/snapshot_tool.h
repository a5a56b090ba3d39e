/* ringmaster-snapshot as a child of this process: one command at a time, and what it said. */
#ifndef RM_FREEZE_SNAPSHOT_TOOL_H
#define RM_FREEZE_SNAPSHOT_TOOL_H

#include <stdbool.h>

#include "agent/snapshot/core/travel.h"
#include "common/base/error.h"
#include "common/base/time.h"
#include "common/loop/loop.h"

/* How it ended, and what of its line is there. */
struct snapshot_said {
    const struct error *why; /* NULL: it did what it was told to. Borrowed for the call */
    bool gone;               /* the process that it was to freeze was not there any more */
    long pid;                /* restore */
    rm_time frozen;          /* dump: the processes stood still */
    int criu;                /* check: CRIU's version, as the manifest counts it */
};

struct snapshot_tool;

/* Of a dump, the longest, with all paths that a job may name. */
enum { SNAPSHOT_TOOL_WORDS_MAX = 8 + 2 * TRAVEL_NAMED_MAX };

/* RINGMASTER_SNAPSHOT, else the one beside this program. */
int snapshot_tool_open(struct snapshot_tool **ret, struct loop *loop,
                       void (*ended)(void *ctx, const struct snapshot_said *said), void *ctx,
                       struct error *err);
/* words: behind the program's name, NULL-terminated. out: become its descriptors 3 and 4; NULL: nothing. It
 * is to stay idle until `ended`. */
int snapshot_tool_start(struct snapshot_tool *t, const char *const *words, const int *out, struct error *err);
void snapshot_tool_kill(struct snapshot_tool *t);      /* where one runs */
long snapshot_tool_pid(const struct snapshot_tool *t); /* 0: none runs */
void snapshot_tool_free(struct snapshot_tool *t);

#endif
