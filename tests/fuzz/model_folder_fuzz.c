/* A foreign model's config.json, and behind a line "%%" its index of shards. A shape that is accepted has a
 * layout, and heads that divide its width. */
#include <stdlib.h>

#include "common/storage/checkpoint/model_folder.h"
#include "tests/fuzz/fuzz.h"

enum { PARAMETERS_MAX = 1 << 20 };

static void load(struct object_store *store, const struct model_shape *shape)
{
    static struct model_layout layout; /* large */
    static float params[PARAMETERS_MAX];
    struct error err = {0};
    if (shape->heads < 1 || shape->width % shape->heads)
        fuzz_broken("heads divide the width");
    if (shape->layers > 2 || shape->width > 64 || shape->context > 256 || shape->vocabulary > 1024)
        return;
    model_layout_init(&layout, shape);
    if (layout.parameters <= PARAMETERS_MAX && model_folder_load(store, &layout, params, &err) < 0)
        fuzz_refused(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_part part[2] = {0};
    struct model_shape shape = {0};
    struct error err = {0};
    fuzz_split(data, size, part, 2);
    fuzz_file("config.json", part[0].data, part[0].size);
    fuzz_file("model.safetensors.index.json", part[1].data, part[1].size);
    struct object_store *store;
    if (object_open(&store, &(struct object_options){.uri = fuzz_folder()}, &err) < 0)
        fuzz_broken("a folder can be opened");
    if (model_folder_shape(store, &shape, &err) == 0)
        load(store, &shape);
    else
        fuzz_refused(&err);
    object_free(store);
    return 0;
}
