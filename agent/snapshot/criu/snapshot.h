/* A snapshot of a tree of processes: what is looked at before, the images, and what is kept beside them. */
#ifndef RM_SNAPSHOT_SNAPSHOT_H
#define RM_SNAPSHOT_SNAPSHOT_H

#include <stdbool.h>

#include "agent/snapshot/core/words.h"
#include "agent/snapshot/travel.h"

struct snapshot {
    const char *binary; /* the path of criu; NULL: the one in PATH */
    int folder;         /* open; where the images lie */
    long pid;           /* of the tree's root; for a dump */
    bool leave_running;
    struct travel travel; /* for a dump; of whose open files, the dump itself says */
    int out, err; /* for a restore: what the tree gets as standard output and standard error; -1: nothing */
};

/* Refuses this machine and container where it can be said beforehand: no criu, an old one, rights missing. */
int snapshot_refuse_ground(const char *binary, struct error *err);

/* Of the criu that runs, as libcriu counts: 10000 * major + 100 * minor + sublevel; -1: there is none. */
int snapshot_version(const char *binary);

int snapshot_dump(const struct snapshot *wish, struct snapshot_stats *ret, struct error *err);

/* The pid of the tree's root, which has become a child of this process; -1 with *err set. */
long snapshot_restore(const struct snapshot *wish, struct error *err);

/* A small process of our own is frozen and lives again in a folder below /tmp: what nothing but trying tells
 * of a machine and its container. */
int snapshot_try(const char *binary, struct error *err);

#endif
