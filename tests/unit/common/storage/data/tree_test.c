/* The tree hash of data, against roots that Python's hashlib gave. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/os/crypto.h"
#include "common/storage/data/tree.h"

Test(tree, a_file_is_cut_into_chunks_of_16_mib_and_what_is_left)
{
    const struct {
        int64_t bytes, chunks, last;
    } table[] = {{0, 0, 0},
                 {1, 1, 1},
                 {TREE_CHUNK - 1, 1, TREE_CHUNK - 1},
                 {TREE_CHUNK, 1, TREE_CHUNK},
                 {TREE_CHUNK + 1, 2, 1},
                 {2 * (int64_t)TREE_CHUNK - 1, 2, TREE_CHUNK - 1},
                 {2 * (int64_t)TREE_CHUNK, 2, TREE_CHUNK},
                 {INT64_MAX, (INT64_MAX >> 24) + 1, TREE_CHUNK - 1}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int64_t chunks = tree_chunks(table[i].bytes), all = 0;
        cr_assert_eq(chunks, table[i].chunks, "row %zu", i);
        if (!chunks)
            continue;
        cr_assert_eq(tree_chunk_bytes(table[i].bytes, chunks - 1), table[i].last, "row %zu", i);
        for (int64_t c = 0; c < chunks && chunks < 100; c++)
            all += tree_chunk_bytes(table[i].bytes, c);
        cr_assert(chunks >= 100 || all == table[i].bytes, "row %zu", i);
    }
}

/* Bytes with a period that no chunk begins with twice. */
static char *pattern(int64_t bytes)
{
    char *text = malloc((size_t)bytes + 1);
    cr_assert(text);
    for (int64_t i = 0; i < bytes; i++)
        text[i] = "0123456789abcde"[i % 15];
    return text;
}

static void add_file(struct tree *tree, const char *name, int64_t bytes)
{
    uint8_t chunk[3][RM_HASH_BYTES];
    char *text = bytes == 1 ? strdup("x") : pattern(bytes);
    for (int64_t c = 0; c < tree_chunks(bytes); c++)
        sha256_once(text + c * TREE_CHUNK, (size_t)tree_chunk_bytes(bytes, c), chunk[c]);
    tree_add(tree, name, bytes, chunk);
    free(text);
}

Test(tree, the_root_is_that_of_the_specification)
{
    const struct {
        int width;
        struct {
            const char *name;
            int64_t bytes;
        } file[2];
        const char *root;
    } table[] = {
        {1, {{0}}, "48016ac79cf8bea6c29fccf28f5b7f7e4b77b3256b89eb0d52213db1e81d056b"},
        {1, {{"a", 0}}, "e1e309fda15c6f2f089047505b1f5e21206139c0910fe8a59ebd4db0a7a6ba69"},
        {1, {{"a", 1}, {"b/c", 0}}, "dc9d4a9f72d5c399f899182dd75f143553f11d6a9d7bd5a9c958d65d2a9dc45b"},
        {2, {{"a", 1}, {"b/c", 0}}, "6ba993bb465c649e5acef9e95c7085822adf341e13b5b94429bda486726c8e9e"},
        {1, {{"a", TREE_CHUNK}}, "1b0a6a5cd768f0b3d7e7a6e1aee1643fa028673013f4deeb5337df92ea389d75"},
        {1, {{"a", TREE_CHUNK + 1}}, "9b0bb35a701730e3a6d5b62ea5b7c2f2b82bb65a50ff7691a3452f6a7f3d8a11"},
        {1,
         {{"a", 2 * TREE_CHUNK - 1}, {"z", 3}},
         "17aaaf5ea7ad16bb24b655ac940984eff229bb3581d103baeabab896a91804ad"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int files = !!table[i].file[0].name + !!table[i].file[1].name;
        uint8_t root[RM_HASH_BYTES];
        char hex[RM_HASH_HEX];
        struct tree *tree = tree_open(table[i].width, files);
        for (int f = 0; f < files; f++)
            add_file(tree, table[i].file[f].name, table[i].file[f].bytes);
        tree_finish(tree, root);
        hex_encode(root, sizeof root, hex);
        cr_assert_str_eq(hex, table[i].root, "row %zu", i);
    }
}
