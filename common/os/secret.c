#include "common/os/secret.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "common/os/config.h"

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

/* Linux takes a limit of one byte for "not to a collector either"; for a file it is too small. */
static void forbid_core_dumps(void)
{
    struct rlimit core;
    if (getrlimit(RLIMIT_CORE, &core) < 0)
        return;
    core.rlim_cur = core.rlim_max < 1 ? core.rlim_max : 1;
    (void)setrlimit(RLIMIT_CORE, &core);
}

void secret_guard(void)
{
    if (!config_get(CONFIG_CORE_DUMPS))
        forbid_core_dumps();
    config_hide_secrets();
}
