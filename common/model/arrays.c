#include "common/model/arrays.h"

#include <stddef.h>

#include "common/base/assert.h"
#include "common/model/image.h"

static const struct model_array adamw[MODEL_ARRAYS] = {
    {"params", NULL},
    {"m", "exp_avg"},
    {"v", "exp_avg_sq"},
};
_Static_assert((int)MODEL_ARRAYS <= (int)MODEL_ARRAYS_MAX, "arrays of a model");

const struct model_array *model_array(int i)
{
    RM_ASSERT(i >= 0 && i < MODEL_ARRAYS, "array %d of a model", i);
    return &adamw[i];
}

int model_arrays_of(const struct model_layout *layout)
{
    return image_bytes(&layout->shape) ? 1 : MODEL_ARRAYS;
}

int64_t model_arrays_bytes(const struct model_layout *layout)
{
    RM_ASSERT(layout->parameters >= 0, "%lld parameters", (long long)layout->parameters);
    return model_arrays_of(layout) * layout->parameters * (int64_t)sizeof(float);
}

struct model_range model_optimizer_part(const struct model_layout *layout, int64_t i, int64_t n)
{
    return model_part(model_arrays_of(layout) > 1 ? layout->parameters : 0, i, n);
}
