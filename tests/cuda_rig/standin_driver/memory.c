/* A device's memory: memfds, mapped where a range of addresses was reserved; an address on the device is one
 * of this process. The host may touch none of it: it is open only within calls in which the device works. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cuda_rig/standin_driver/standin.h"

static const size_t GRANULE = 2u << 20;

/* ---- what lies where ---- */

static struct range *range_at(const char *at)
{
    for (struct range *r = standin.range; r; r = r->next)
        if (at >= r->at && at < r->at + r->bytes)
            return r;
    return NULL;
}

static bool holds(const struct range *r, const char *at, size_t bytes)
{
    return r && bytes <= r->bytes - (size_t)(at - r->at);
}

void check_device_memory(const char *what, CUdeviceptr place, size_t bytes)
{
    const char *at = (const char *)(uintptr_t)place;
    struct range *r = range_at(at);
    if (!r || r->pinned || !r->mapped)
        misuse("%s: %p is no memory of the device", what, (const void *)at);
    if (!r->access)
        misuse("%s: %p was mapped, but no access was set", what, (const void *)at);
    if (!holds(r, at, bytes))
        misuse("%s: %zu bytes at %p go beyond their allocation of %zu", what, bytes, (const void *)at,
               r->bytes);
}

void check_pinned(const char *what, const void *at, size_t bytes)
{
    struct range *r = range_at(at);
    if (!r || !r->pinned)
        misuse("%s: host memory %p is not pinned", what, at);
    if (!holds(r, at, bytes))
        misuse("%s: %zu bytes at %p go beyond their allocation of %zu", what, bytes, at, r->bytes);
}

static bool is_open;

static void protect(int protection)
{
    for (struct range *r = standin.range; r; r = r->next)
        if (r->mapped && r->access && mprotect(r->at, r->bytes, protection) < 0)
            abort();
}

void device_memory_opens(void)
{
    if (!is_open)
        protect(PROT_READ | PROT_WRITE);
    is_open = true;
}

void device_memory_closes(void)
{
    if (is_open)
        protect(PROT_NONE);
    is_open = false;
}

static struct range *range_new(size_t bytes, int protection)
{
    struct range *r = fresh(sizeof *r);
    r->at = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r->at == MAP_FAILED)
        abort();
    r->bytes = bytes;
    r->next = standin.range;
    standin.range = r;
    return r;
}

static void range_drop(struct range *gone)
{
    struct range **link = &standin.range;
    while (*link != gone)
        link = &(*link)->next;
    *link = gone->next;
    munmap(gone->at, gone->bytes);
    free(gone);
}

/* ---- allocations ---- */

static struct allocation *allocation_of(CUmemGenericAllocationHandle handle)
{
    struct allocation *a = standin.allocation;
    while (a && (uintptr_t)a != handle)
        a = a->next;
    if (!a || !a->handles)
        misuse("handle %llx stands for no memory", handle);
    return a;
}

static struct allocation *allocation_new(int fd, size_t bytes, bool exportable)
{
    struct allocation *a = fresh(sizeof *a);
    *a = (struct allocation){standin.allocation, fd, current_context()->device, bytes, 1, 0, exportable};
    standin.allocation = a;
    return a;
}

static void allocation_drop(struct allocation *gone)
{
    struct allocation **link = &standin.allocation;
    if (gone->handles || gone->mappings)
        return;
    while (*link != gone)
        link = &(*link)->next;
    *link = gone->next;
    close(gone->fd);
    free(gone);
}

static size_t bytes_left(void)
{
    size_t used = standin.script.taken;
    for (struct allocation *a = standin.allocation; a; a = a->next)
        if (a->device == current_context()->device)
            used += a->bytes;
    return used < standin.script.memory ? standin.script.memory - used : 0;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags which)
{
    ENTER(cuMemGetAllocationGranularity, NEEDS_START);
    (void)prop;
    (void)which;
    *bytes = GRANULE;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop,
                     unsigned long long flags)
{
    ENTER(cuMemCreate, NEEDS_CONTEXT);
    if (!bytes || bytes % GRANULE || flags || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE || prop->location.id != current_context()->device)
        return answer(CUDA_ERROR_INVALID_VALUE,
                      "cuMemCreate: %zu bytes are no multiple of %zu, or not on this device", bytes, GRANULE);
    if (bytes > bytes_left())
        return CUDA_ERROR_OUT_OF_MEMORY;
    int fd = memfd_create("stand-in device", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
        abort();
    *handle = (uintptr_t)allocation_new(
        fd, bytes, prop->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    ENTER(cuMemRelease, NEEDS_CONTEXT);
    struct allocation *a = allocation_of(handle);
    a->handles--;
    allocation_drop(a);
    return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    ENTER(cuMemExportToShareableHandle, NEEDS_CONTEXT);
    struct allocation *a = allocation_of(handle);
    if (!a->exportable || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags)
        return answer(CUDA_ERROR_INVALID_VALUE,
                      "memory is exported that was not asked for with a descriptor");
    int fd = fcntl(a->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    memcpy(shareable, &fd, sizeof fd);
    return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        CUmemAllocationHandleType type)
{
    ENTER(cuMemImportFromShareableHandle, NEEDS_CONTEXT);
    struct stat is;
    int fd = fcntl((int)(intptr_t)shareable, F_DUPFD_CLOEXEC, 0);
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || fd < 0 || fstat(fd, &is) < 0 ||
        !S_ISREG(is.st_mode) || !is.st_size || (size_t)is.st_size % GRANULE) {
        close(fd);
        return answer(CUDA_ERROR_INVALID_VALUE, "descriptor %d is none of a device's memory",
                      (int)(intptr_t)shareable);
    }
    *handle = (uintptr_t)allocation_new(fd, (size_t)is.st_size, true);
    return CUDA_SUCCESS;
}

/* ---- addresses ---- */

static struct range *whole_range(const char *what, CUdeviceptr at, size_t bytes)
{
    struct range *r = range_at((const char *)(uintptr_t)at);
    if (!r || r->pinned || (uintptr_t)r->at != at || r->bytes != bytes)
        misuse("%s: %zu bytes at %llx are no range that was reserved", what, bytes, at);
    return r;
}

CUresult cuMemAddressReserve(CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr wanted,
                             unsigned long long flags)
{
    ENTER(cuMemAddressReserve, NEEDS_CONTEXT);
    if (!bytes || bytes % GRANULE || alignment || wanted || flags)
        return answer(CUDA_ERROR_INVALID_VALUE, "cuMemAddressReserve: %zu bytes are no multiple of %zu",
                      bytes, GRANULE);
    *at = (uintptr_t)range_new(bytes, PROT_NONE)->at;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes)
{
    ENTER(cuMemAddressFree, NEEDS_CONTEXT);
    struct range *r = whole_range("cuMemAddressFree", at, bytes);
    if (r->mapped)
        misuse("cuMemAddressFree: memory is still mapped at %llx", at);
    range_drop(r);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    ENTER(cuMemMap, NEEDS_CONTEXT);
    struct range *r = whole_range("cuMemMap", at, bytes);
    struct allocation *a = allocation_of(handle);
    if (r->mapped || offset || flags || bytes != a->bytes)
        return answer(CUDA_ERROR_INVALID_VALUE,
                      "cuMemMap: %zu bytes of an allocation of %zu (the stand-in maps whole ones)", bytes,
                      a->bytes);
    if (mmap(r->at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, a->fd, 0) == MAP_FAILED)
        abort();
    a->mappings++;
    r->mapped = a;
    return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr at, size_t bytes)
{
    ENTER(cuMemUnmap, NEEDS_CONTEXT);
    struct range *r = whole_range("cuMemUnmap", at, bytes);
    if (!r->mapped)
        misuse("cuMemUnmap: nothing is mapped at %llx", at);
    if (work_is_under_way())
        misuse("cuMemUnmap: memory goes while work is under way");
    if (mmap(r->at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) ==
        MAP_FAILED)
        abort();
    r->mapped->mappings--;
    allocation_drop(r->mapped);
    r->mapped = NULL;
    r->access = false;
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
    ENTER(cuMemSetAccess, NEEDS_CONTEXT);
    struct range *r = whole_range("cuMemSetAccess", at, bytes);
    if (!r->mapped || count != 1 || access->location.id != current_context()->device)
        return answer(CUDA_ERROR_INVALID_VALUE,
                      "cuMemSetAccess: nothing is mapped at %llx, or for another device", at);
    r->access = access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
}

/* ---- pinned host memory ---- */

CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned int flags)
{
    ENTER(cuMemHostAlloc, NEEDS_CONTEXT);
    (void)flags;
    CUresult code = refuse_while_capturing("cuMemHostAlloc");
    if (code != CUDA_SUCCESS)
        return code;
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    struct range *r = range_new(bytes, PROT_READ | PROT_WRITE);
    r->pinned = true;
    *at = r->at;
    return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *at)
{
    ENTER(cuMemFreeHost, NEEDS_CONTEXT);
    struct range *r = range_at(at);
    if (!r || !r->pinned || r->at != at)
        misuse("cuMemFreeHost: %p is no pinned memory", at);
    if (work_is_under_way())
        misuse("cuMemFreeHost: memory goes while work is under way");
    range_drop(r);
    return CUDA_SUCCESS;
}
