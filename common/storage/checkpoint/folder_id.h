/* Whether two machines see one folder of checkpoints: the folder holds a number that nobody else has drawn.
 *
 * A volume that is not mounted leaves an empty folder of the same name, and what is written there is found by
 * nobody else. Whoever first lists the checkpoints of a folder draws the number and writes it into
 * `.folder-id`, which only one can create; everybody after it reads that. A folder that was copied whole has
 * the number of the one it was copied from: two copies are told apart by what they list, if at all. */
#ifndef RM_STORE_FOLDER_ID_H
#define RM_STORE_FOLDER_ID_H

#include "common/storage/object/object.h"

enum { FOLDER_ID_CHARS = 32 + 1 };

/* "" where it is not known, which is never a fault: in an object store, whose name says which one it is, or
 * in a folder that nobody may write to and nobody wrote to. */
void folder_id(struct object_store *store, char out[FOLDER_ID_CHARS]);

#endif
