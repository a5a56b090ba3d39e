/* A process and all that it started, as /proc has them: what a snapshot would hold. Linux only. */
#ifndef RM_SNAPSHOT_PROCESS_TREE_H
#define RM_SNAPSHOT_PROCESS_TREE_H

#include "common/base/error.h"

enum { PROCESS_TREE_MAX = 4096 };

struct process_tree {
    int count;
    long pids[PROCESS_TREE_MAX]; /* parents before their children */
};

/* Reads the tree that hangs below `root`, root itself first. Processes that come and go meanwhile may be
 * missing; who needs all of them has stopped them before. ERR_NOT_FOUND where there is no such process, or
 * where it has ended, ERR_MACHINE for more than PROCESS_TREE_MAX. */
int process_tree_read(long root, struct process_tree *ret, struct error *err);

/* Refuses the tree for a descriptor that can't be in a snapshot (core/words.h). */
int process_tree_refuse(const struct process_tree *tree, struct error *err);

#endif
