/* A .safetensors file. What opens can be read whole: each tensor lies within the file. */
#include <stdlib.h>

#include "common/storage/checkpoint/safetensors.h"
#include "tests/fuzz/fuzz.h"

enum { ELEMENTS_MAX = 1 << 16 };

static void read_all(const struct safetensors *file)
{
    static float out[ELEMENTS_MAX];
    struct error err = {0};
    for (int i = 0; i < file->tensors; i++) {
        const struct safetensors_tensor *t = &file->tensor[i];
        if (t->begin < 0 || t->end > file->data_bytes || t->elements < 0)
            fuzz_broken("a tensor lies within the data section");
        if (!safetensors_find(file, t->name))
            fuzz_broken("a tensor is found by its name");
        if (t->elements <= ELEMENTS_MAX && safetensors_read(file, t, out, &err) < 0)
            fuzz_refused(&err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct object_store *store;
    struct safetensors *file = NULL;
    struct error err = {0};
    fuzz_file("model.safetensors", data, size);
    if (object_open(&store, &(struct object_options){.uri = fuzz_folder()}, &err) < 0)
        fuzz_broken("a folder can be opened");
    if (safetensors_open(&file, store, "model.safetensors", &err) == 0)
        read_all(file);
    else
        fuzz_refused(&err);
    safetensors_free(file);
    object_free(store);
    return 0;
}
