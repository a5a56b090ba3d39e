#include "common/os/pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LARGE = 2 << 20 };

void *pages_alloc(size_t bytes)
{
    if (bytes > SIZE_MAX - LARGE)
        return NULL;
    if (bytes < LARGE)
        return aligned_alloc(64, (bytes + 63) / 64 * 64);
    size_t whole = (bytes + LARGE - 1) / LARGE * LARGE;
    void *memory = aligned_alloc(LARGE, whole);
    if (memory)
        pages_prefer_large(memory, whole);
    return memory;
}

void pages_prefer_large(void *memory, size_t bytes)
{
    if (bytes >= LARGE)
        (void)madvise(memory, bytes, MADV_HUGEPAGE);
}
