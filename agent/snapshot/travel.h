/* Files that travel with a snapshot (core/travel.h): into the snapshot's folder while the tree stands still,
 * and back to where they were before it lives again. What is there and was not then stays. A file has its
 * mode and its time again, and belongs to whoever puts it back. */
#ifndef RM_SNAPSHOT_TRAVEL_FILES_H
#define RM_SNAPSHOT_TRAVEL_FILES_H

#include "agent/snapshot/core/travel.h"

struct travel {
    long root;                /* of the tree whose open files go along; 0: nobody's */
    const char *const *named; /* files and folders */
    int named_count;
    struct travel_mounts mounts; /* open files of these alone: travel_own */
    int64_t room;                /* bytes; -1: not known */
};

/* The mounts whose files go with the pod, as this process sees them; none where that can't be read. */
void travel_own(struct travel_mounts *ret);
/* Refuses before anything is touched what is too much. */
int travel_refuse(const struct travel *travel, struct error *err);
/* folder: open, the snapshot's. */
int travel_pack(const struct travel *travel, int folder, struct error *err);
/* Nothing happens where the folder has none. ERR_DATA where they are not what travel_pack writes. */
int travel_unpack(int folder, struct error *err);

#endif
