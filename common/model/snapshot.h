/* The memory file that a trainer and its agent share: two areas, each the arrays of a state without gaps:
 * a model's three (arrays.h), or a program's image.
 *
 * In the first one the trainer leaves a snapshot, which the agent writes to the store while training goes on;
 * in the second one the agent leaves a checkpoint that it has read. Two, because the trainer's state itself
 * may lie in the first one (trainer/state/state.h): an agent that loads must not disturb it. Of an area that
 * is never touched no memory is taken. Pure. */
#ifndef RM_MODEL_SNAPSHOT_H
#define RM_MODEL_SNAPSHOT_H

#include <stdint.h>

#include "common/model/layout.h"

enum snapshot_area { SNAPSHOT_TAKEN, SNAPSHOT_LOADED, SNAPSHOT_AREAS };

int64_t snapshot_area_bytes(const struct model_layout *layout); /* of a state's arrays, or an image */
/* Where an area of so many bytes begins in the file; each begins at a page of its own. */
int64_t snapshot_area_at(int64_t area_bytes, enum snapshot_area area);
int64_t snapshot_file_bytes(int64_t area_bytes);

#endif
