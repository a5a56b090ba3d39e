#include "common/object/secret.h"

#include <string.h>
#include <sys/mman.h>

void *secret_open(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, bytes, MADV_DONTDUMP);
    return memory;
}

void secret_free(void *memory, size_t bytes)
{
    if (!memory)
        return;
    explicit_bzero(memory, bytes);
    munmap(memory, bytes);
}
