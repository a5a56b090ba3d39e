/* The arrays of a state: their names, how many there are, and what a part of a checkpoint has of them. */
#include "common/model/arrays.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/model/image.h"
#include "common/model/snapshot.h"

static const struct model_shape tiny = {.layers = 1, .heads = 2, .width = 8, .context = 4, .vocabulary = 256};

static struct model_layout layout;

Test(arrays, a_models_are_named_once_and_the_first_has_no_file_of_the_optimizer)
{
    static const char *const names[] = {"params", "m", "v"}, *const stored[] = {NULL, "exp_avg",
                                                                                "exp_avg_sq"};
    cr_assert_eq((size_t)MODEL_ARRAYS, sizeof names / sizeof *names);
    for (int i = 0; i < MODEL_ARRAYS; i++) {
        const struct model_array *array = model_array(i);
        cr_assert_str_eq(array->name, names[i]);
        cr_assert(i ? !strcmp(array->stored, stored[i]) : !array->stored, "checkpoints have it by this name");
    }
}

Test(arrays, a_snapshot_has_room_for_each_and_a_part_of_each_behind_the_first)
{
    image_or_model_layout(&layout, &tiny);
    struct model_range part = model_optimizer_part(&layout, 1, 3),
                       whole = model_part(layout.parameters, 1, 3);
    cr_assert_eq(snapshot_area_bytes(&layout), 3 * 4 * layout.parameters);
    cr_assert(part.count && part.first == whole.first && part.count == whole.count);
}

Test(arrays, an_image_is_one_and_has_no_part_of_another)
{
    struct model_shape shape = image_shape(400);
    image_or_model_layout(&layout, &shape);
    cr_assert_eq(model_arrays_of(&layout), 1);
    cr_assert_eq(snapshot_area_bytes(&layout), 400);
    cr_assert_eq(model_optimizer_part(&layout, 1, 3).count, 0);
}
