/* Files that travel with a snapshot: which ones do, and the heads that they have in the snapshot's folder,
 * where all of them lie in one file. Pure: what was read from /proc comes in as text.
 *
 * CRIU keeps descriptors, not what files hold: a program lives again only where each file that it has open is
 * as long as it was. So these travel: what is named (checkpoint.processPaths), and what the program has open
 * for writing where the next pod begins with nothing. What lies on a volume that outlives a pod stays there,
 * unless it is named. */
#ifndef RM_SNAPSHOT_TRAVEL_H
#define RM_SNAPSHOT_TRAVEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

enum {
    TRAVEL_NAMED_MAX = 16,  /* as many as a job may name */
    TRAVEL_PATH_MAX = 4096, /* PATH_MAX */
    TRAVEL_MOUNTS_MAX = 64,
    TRAVEL_OPEN_MOST = 1 << 30,     /* bytes of all files together that are open and not named */
    TRAVEL_HEAD_MAGIC = 0x46544d52, /* "RMTF" */
};

enum travel_kind { TRAVEL_FILE = 'f', TRAVEL_FOLDER = 'd', TRAVEL_LINK = 'l', TRAVEL_END = 'e' };

/* It stands in front of each; its path and `size` bytes stand behind it (of a link: what it leads to). */
struct travel_head {
    uint32_t magic, kind;
    uint32_t mode, path_length;
    uint64_t size;
    int64_t seconds, nanoseconds; /* when its content was changed last */
};

/* False for what no travel_head that was written here has. */
bool travel_head_holds(const struct travel_head *head);
/* A path as they have it: from the root, without a step back. */
bool travel_path_holds(const char *path, size_t length);

/* Reads /proc/PID/fdinfo/N: whether it is open for writing, and the mount that it is on; false where either
 * is not told. */
bool travel_descriptor(const char *fdinfo, bool *ret_written, long *ret_mount);

/* The mounts whose files are gone with the pod: the container's own file system, its emptyDirs (also those
 * that the operator puts at /tmp and /dev/shm), and what lies in memory. */
struct travel_mounts {
    int count;
    long number[TRAVEL_MOUNTS_MAX];
};

/* Finds them in /proc/PID/mountinfo; more than TRAVEL_MOUNTS_MAX are not looked at, the one at "/" always is.
 */
void travel_own_mounts(const char *mountinfo, struct travel_mounts *ret);
bool travel_is_own(const struct travel_mounts *mounts, long mount);

/* Whether a path is that folder or lies below it. */
bool travel_lies_in(const char *path, const char *folder);
/* ERR_USAGE for one that can't travel: it has the kernel's own files in it, or the folder of the snapshot. */
int travel_refuse_path(const char *path, const char *images, struct error *err);
/* ERR_MACHINE where all that travels is too much. named, open: bytes; room: of the folder, -1: not known. */
int travel_refuse_bytes(int64_t named, int64_t open, int64_t room, struct error *err);

#endif
