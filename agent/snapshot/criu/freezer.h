/* CRIU, by its library: dumps a tree of processes into a folder and has it live again. The one place that
 * knows libcriu (4.1, LGPL), which forks, waits for its child and prints: for a program of one thread that
 * ends soon after. Everything works in CRIU's unprivileged mode, with the rights of core/words.h. */
#ifndef RM_SNAPSHOT_FREEZER_H
#define RM_SNAPSHOT_FREEZER_H

#include <stdbool.h>

#include "common/base/error.h"

/* binary: the path of criu, NULL for the one in PATH. As criu_get_version counts; -1: there is none. */
int freezer_version(const char *binary);

/* folder: an open folder for images and logs. The tree ends with its dump unless `leave_running`. Connections
 * to other machines are closed in the image, those within the tree stay. */
struct freezer_dump {
    const char *binary;
    int folder;
    long pid;
    bool leave_running;
};
int freezer_dump(const struct freezer_dump *wish, struct error *err);

/* The tree becomes a child of this process. What its processes had as the pipes named by out_key and err_key
 * ("pipe:[4711]", "" for none) they get as descriptors out and err. Returns the pid of its root, or -1. */
struct freezer_restore {
    const char *binary;
    int folder;
    int out, err;
    const char *out_key, *err_key;
};
long freezer_restore(const struct freezer_restore *wish, struct error *err);

#endif
