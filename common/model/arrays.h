/* The arrays of a state, by name: each of as many elements as the layout has, in its flat order, as a trainer
 * holds them (trainer/state), as trainers and agents hand them to each other, and as a checkpoint has them.
 *
 * A model under AdamW has three; a program's image (image.h) is one. Whoever passes on a state walks the
 * table, and bounds what it keeps for each by MODEL_ARRAYS_MAX. (Beside layout.h, whose text is part of the
 * numerics id.) Pure. */
#ifndef RM_MODEL_ARRAYS_H
#define RM_MODEL_ARRAYS_H

#include "common/model/layout.h"

enum {
    MODEL_ARRAYS = 3,     /* of a model */
    MODEL_ARRAYS_MAX = 8, /* of any state */
};

struct model_array {
    const char *name;
    /* Its tensor in the files of the optimizer, where the arrays behind the first lie one behind the other;
     * NULL: it is the first, whose tensors model.safetensors has by their own names. */
    const char *stored;
};

/* The row of array i of a model. */
const struct model_array *model_array(int i);

/* How many the state of this layout has. */
int model_arrays_of(const struct model_layout *layout);
/* Bytes of all of them, without gaps. */
int64_t model_arrays_bytes(const struct model_layout *layout);
/* What part i of n of a checkpoint has of each array behind the first: as model_part; where there is none,
 * nothing. */
struct model_range model_optimizer_part(const struct model_layout *layout, int64_t i, int64_t n);

#endif
