/* CRIU, by its library: dumps a tree of processes into a folder and has it live again. The one place that
 * knows libcriu (4.1, LGPL), which forks, waits for its child and prints: for a program of one thread that
 * ends soon after. Everything works in CRIU's unprivileged mode, with the rights of core/words.h. */
#ifndef RM_SNAPSHOT_FREEZER_H
#define RM_SNAPSHOT_FREEZER_H

#include "agent/snapshot/criu/snapshot.h"
#include "agent/snapshot/program_streams.h"

/* binary: the path of criu, NULL for the one in PATH. As criu_get_version counts; -1: there is none. */
int freezer_version(const char *binary);

/* Called once, while the tree stands still and all else of it is written; -1: there is to be no dump. */
typedef int freezer_still(const struct snapshot *wish, struct error *err);

/* The tree ends with its dump unless it is left running, or the dump fails. Connections to other machines are
 * closed in the image, those within the tree stay. */
int freezer_dump(const struct snapshot *wish, freezer_still *still, struct error *err);

/* The tree becomes a child of this process; what its processes had as these pipes they get as wish->out and
 * wish->err. Returns the pid of its root, or -1. */
long freezer_restore(const struct snapshot *wish, const struct program_streams *had, struct error *err);

#endif
