/* The checkpoints that stand in a place, and which of them go (keep_rule.h). Only common/storage/checkpoint
 * uses this. */
#ifndef RM_STORE_STANDING_H
#define RM_STORE_STANDING_H

#include "common/storage/object/object.h"

/* How many go once that step is published. */
int standing_beyond(struct object_store *store, int64_t published, int keep);
/* Removes them; trouble is no error: the next one does. */
void standing_remove(struct object_store *store, int64_t published, int keep);
/* The newest one before that step, 0 where there is none. */
int64_t standing_before(struct object_store *store, int64_t step);

#endif
