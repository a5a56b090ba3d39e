#include "common/storage/data/tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/os/crypto.h"

struct tree {
    struct sha256 *hash;
    int64_t files; /* that are still to come */
};

/* No name is that long, and a chain (identify.c) begins with a name's length or with -1: a root is never
 * taken for one. */
static const int64_t begins = -2;

int64_t tree_chunks(int64_t bytes)
{
    RM_ASSERT(bytes >= 0, "a file of %" PRId64 " bytes", bytes);
    return bytes / TREE_CHUNK + (bytes % TREE_CHUNK != 0);
}

int64_t tree_chunk_bytes(int64_t bytes, int64_t chunk)
{
    RM_ASSERT(chunk >= 0 && chunk < tree_chunks(bytes), "chunk %" PRId64 " of %" PRId64 " bytes", chunk,
              bytes);
    int64_t left = bytes - chunk * TREE_CHUNK;
    return left < TREE_CHUNK ? left : TREE_CHUNK;
}

static void add_number(struct tree *t, int64_t value)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)value >> (8 * i));
    sha256_add(t->hash, bytes, sizeof bytes);
}

struct tree *tree_open(int width, int64_t files)
{
    struct tree *t = calloc(1, sizeof *t);
    if (!t)
        abort();
    *t = (struct tree){.hash = sha256_open(), .files = files};
    add_number(t, begins);
    add_number(t, TREE_CHUNK);
    add_number(t, width);
    add_number(t, files);
    return t;
}

void tree_add(struct tree *t, const char *name, int64_t bytes, const uint8_t (*chunk)[RM_HASH_BYTES])
{
    RM_ASSERT(t->files > 0, "%s is one file more than there are", name);
    t->files--;
    add_number(t, (int64_t)strlen(name));
    sha256_add(t->hash, name, strlen(name));
    add_number(t, bytes);
    sha256_add(t->hash, chunk, (size_t)tree_chunks(bytes) * RM_HASH_BYTES);
}

void tree_finish(struct tree *t, uint8_t out[RM_HASH_BYTES])
{
    RM_ASSERT(t->files == 0, "%" PRId64 " files are missing", t->files);
    sha256_finish(t->hash, out);
    free(t);
}
