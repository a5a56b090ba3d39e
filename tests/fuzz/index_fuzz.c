/* The index of a data folder. What is accepted is written and read back the same, and has its files in order,
 * each with a name that a folder's file could have and with chunks of its own. */
#include <stdlib.h>
#include <string.h>

#include "common/os/crypto.h"
#include "common/storage/data/index.h"
#include "common/storage/data/tree.h"
#include "tests/fuzz/fuzz.h"

static void check_files(const struct data_index *index)
{
    uint8_t root[RM_HASH_BYTES];
    int64_t chunks = 0;
    for (int64_t i = 0; i < index->count; i++) {
        const struct index_entry *file = &index->file[i];
        if (file->bytes < 0 || file->nanoseconds < 0 || file->nanoseconds > 999999999)
            fuzz_broken("a file has a size and a time");
        if (i && strcmp(index->file[i - 1].name, file->name) >= 0)
            fuzz_broken("files are in order, each once");
        if (!*file->name || file->name[0] == '.' || file->name[0] == '/' || strstr(file->name, "/.") ||
            strstr(file->name, "//"))
            fuzz_broken("no name is that of a hidden file, or of none");
        if (data_index_find(index, file->name) != file || file->first != chunks)
            fuzz_broken("a file is found, and its chunks follow those of the one before");
        chunks += tree_chunks(file->bytes);
    }
    if (chunks != index->chunks)
        fuzz_broken("each chunk is a file's");
    data_index_root(index, 1, root);
}

static void check_again(const struct data_index *index, const char *text, size_t size)
{
    struct str again = str_init(DATA_INDEX_BYTES_MAX);
    struct error err = {0};
    if (data_index_write(index, &again, &err) < 0)
        fuzz_broken(err.text);
    if (again.length != size || memcmp(again.data, text, size) != 0)
        fuzz_broken("an accepted index is written as it was read");
    str_clear(&again);
}

static void try_index(const char *text, size_t size)
{
    struct data_index index;
    struct error err = {0};
    if (data_index_read(&index, text, size, "index", &err) == 0) {
        check_files(&index);
        check_again(&index, text, size);
    } else
        fuzz_refused(&err);
    data_index_clear(&index);
}

/* As it is, and with a hash that is right: behind that one no mutation would come. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    try_index(text, size);
    if (size > RM_HASH_BYTES) {
        size_t body = size - RM_HASH_BYTES;
        sha256_once(text, body, (uint8_t *)text + body);
        try_index(text, size);
    }
    free(text);
    return 0;
}
