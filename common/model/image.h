/* The image of a user's program in the place of a model: a shape that says its bytes, and a layout of one
 * tensor of 4-byte elements, without moments. (Beside layout.h, whose text is part of the numerics id.) Pure.
 */
#ifndef RM_MODEL_IMAGE_H
#define RM_MODEL_IMAGE_H

#include "common/model/layout.h"

/* bytes: above 0, a multiple of 4. No model has such a shape. */
struct model_shape image_shape(int64_t bytes);
/* 0: it is a model's. */
int64_t image_bytes(const struct model_shape *shape);
/* The layout of either; a model's is that of model_layout_init. */
void image_or_model_layout(struct model_layout *out, const struct model_shape *shape);

#endif
