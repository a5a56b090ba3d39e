#include "common/model/image.h"

#include <string.h>

#include "common/base/assert.h"

enum { IMAGE = -1, LOW_BITS = 30 };

struct model_shape image_shape(int64_t bytes)
{
    RM_ASSERT(bytes >= 0, "an image of %lld bytes", (long long)bytes);
    return (struct model_shape){.layers = IMAGE,
                                .context = (int)(bytes >> LOW_BITS),
                                .vocabulary = (int)(bytes & ((1 << LOW_BITS) - 1))};
}

int64_t image_bytes(const struct model_shape *shape)
{
    return shape->layers == IMAGE ? (int64_t)shape->context << LOW_BITS | shape->vocabulary : 0;
}

void image_or_model_layout(struct model_layout *out, const struct model_shape *shape)
{
    int64_t bytes = image_bytes(shape);
    if (!bytes) {
        model_layout_init(out, shape);
        return;
    }
    memset(out, 0, sizeof *out);
    out->shape = *shape;
    out->tensors = 1;
    out->parameters = bytes / 4;
    out->tensor[0] =
        (struct model_tensor){.name = "image", .count = bytes / 4, .dims = 1, .size = {bytes / 4, 1}};
}
