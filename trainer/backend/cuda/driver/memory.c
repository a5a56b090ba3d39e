#include "trainer/backend/cuda/driver/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { NOT_OPEN, HAS_HANDLE, HAS_RANGE, HAS_MAPPING };

static CUmemLocation place(const struct cuda_device *d)
{
    return (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, d->number};
}

/* From a handle to an address. */
static int map(struct cuda_memory *m, const char *doing, struct error *err)
{
    const struct cuda_calls *cu = &m->device->driver->calls;
    const CUmemAccessDesc access = {place(m->device), CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    m->mapped = HAS_HANDLE;
    if (cuda_check(m->device, cu->cuMemAddressReserve(&m->at, m->bytes, 0, 0, 0), doing, err) < 0)
        return -1;
    m->mapped = HAS_RANGE;
    if (cuda_check(m->device, cu->cuMemMap(m->at, m->bytes, 0, m->handle, 0), doing, err) < 0)
        return -1;
    m->mapped = HAS_MAPPING;
    return cuda_check(m->device, cu->cuMemSetAccess(m->at, m->bytes, &access, 1), doing, err);
}

static int map_or_clear(struct cuda_memory *m, const char *doing, struct error *err)
{
    if (map(m, doing, err) == 0)
        return 0;
    cuda_memory_clear(m);
    return -1;
}

int cuda_memory_open(struct cuda_memory *m, struct cuda_device *device, size_t bytes, const char *for_what,
                     struct error *err)
{
    char doing[120];
    const size_t unit = device->granularity;
    const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = place(device),
    };
    *m = (struct cuda_memory){.device = device, .bytes = (bytes + unit - 1) / unit * unit};
    snprintf(doing, sizeof doing, "take %zu MiB for %s", m->bytes >> 20, for_what);
    if (cuda_check(device, device->driver->calls.cuMemCreate(&m->handle, m->bytes, &prop, 0), doing, err) <
        0) {
        m->device = NULL;
        return -1;
    }
    return map_or_clear(m, doing, err);
}

int cuda_memory_import(struct cuda_memory *m, struct cuda_device *device, int fd, size_t bytes,
                       struct error *err)
{
    const char *doing = "take over memory that another process has left";
    *m = (struct cuda_memory){.device = device, .bytes = bytes};
    if (cuda_check(device,
                   device->driver->calls.cuMemImportFromShareableHandle(
                       &m->handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                   doing, err) < 0) {
        m->device = NULL;
        return -1;
    }
    return map_or_clear(m, doing, err);
}

int cuda_memory_export(struct cuda_memory *m, int *ret_fd, struct error *err)
{
    return cuda_check(m->device,
                      m->device->driver->calls.cuMemExportToShareableHandle(
                          ret_fd, m->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                      "get a descriptor of its memory", err);
}

void cuda_memory_clear(struct cuda_memory *m)
{
    if (!m->device)
        return;
    const struct cuda_calls *cu = &m->device->driver->calls;
    if (m->mapped >= HAS_MAPPING)
        cu->cuMemUnmap(m->at, m->bytes);
    if (m->mapped >= HAS_RANGE)
        cu->cuMemAddressFree(m->at, m->bytes);
    if (m->mapped >= HAS_HANDLE)
        cu->cuMemRelease(m->handle);
    memset(m, 0, sizeof *m);
}

int cuda_pinned_open(void **ret, struct cuda_device *device, size_t bytes, const char *for_what,
                     struct error *err)
{
    char doing[120];
    const size_t mib = (bytes + (1 << 20) - 1) >> 20;
    CUresult code = device->driver->calls.cuMemHostAlloc(ret, bytes, CU_MEMHOSTALLOC_PORTABLE);
    if (code == CUDA_ERROR_OUT_OF_MEMORY) {
        err_set(err, ERR_MACHINE,
                "this machine has no %zu MiB of its own memory that could be locked for %s: give the "
                "container more "
                "memory, or look at ulimit -l",
                mib, for_what);
        return err_class(err, CLASS_MACHINE);
    }
    snprintf(doing, sizeof doing, "lock %zu MiB of this machine's memory for %s", mib, for_what);
    return cuda_check(device, code, doing, err);
}

void cuda_pinned_free(struct cuda_device *device, void *at)
{
    if (at)
        device->driver->calls.cuMemFreeHost(at);
}
