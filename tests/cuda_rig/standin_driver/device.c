/* The driver itself, its devices and contexts, and the way into every call. */
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/prng.h"
#include "tests/cuda_rig/standin_driver/standin.h"

enum { CONTEXT_BYTES = 16 << 20, NAME_SHOWN = 95 };

struct standin standin;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread struct CUctx_st *current;

CUresult answer(CUresult code, const char *format, ...)
{
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "stand-in driver: %s\n", text);
    return code;
}

void misuse(const char *format, ...)
{
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "stand-in driver: MISUSE: %s\n", text);
    abort();
}

void *fresh(size_t bytes)
{
    void *at = calloc(1, bytes ? bytes : 1);
    if (!at)
        abort();
    return at;
}

int draw(int bound)
{
    return (int)((splitmix64(&standin.random) >> 32) * (uint64_t)bound >> 32);
}

static CUresult scripted(const char *name)
{
    struct rule *rule = script_turn(&standin.script, name);
    if (!rule)
        return CUDA_SUCCESS;
    if (rule->kind == LOST)
        standin.lost = rule->code;
    return rule->code;
}

/* Once; and anew where it was changed while nobody has a context: then it is another machine. */
static void read_script(void)
{
    static char read[1024];
    const char *text = getenv("RINGMASTER_STANDIN_CUDA");
    for (int i = 0; i < DEVICES_MAX; i++)
        if (standin.context[i].users)
            return;
    if (standin.read && !strcmp(read, text ? text : ""))
        return;
    snprintf(read, sizeof read, "%s", text ? text : "");
    script_read(&standin.script, read);
    standin.random = standin.script.seed;
    standin.lost = CUDA_SUCCESS;
    standin.started = standin.hangs = false;
    standin.read = true;
}

CUresult enter(struct call *call, const char *name, enum needs needs)
{
    pthread_mutex_lock(&lock);
    call->locked = true;
    if (needs == NEEDS_NOTHING)
        read_script();
    if (needs != NEEDS_NOTHING && standin.lost)
        return standin.lost;
    CUresult code = scripted(name);
    if (code != CUDA_SUCCESS)
        return code;
    if (needs != NEEDS_NOTHING && !standin.started)
        return answer(CUDA_ERROR_NOT_INITIALIZED, "%s before cuInit", name);
    if (needs == NEEDS_CONTEXT && !current)
        return answer(CUDA_ERROR_INVALID_CONTEXT, "%s on a thread without a context", name);
    return CUDA_SUCCESS;
}

void leave_call(struct call *call)
{
    if (!call->locked)
        return;
    device_memory_closes();
    pthread_mutex_unlock(&lock);
}

void wait_a_moment(void)
{
    device_memory_closes();
    pthread_mutex_unlock(&lock);
    poll(NULL, 0, 10);
    pthread_mutex_lock(&lock);
}

struct CUctx_st *current_context(void)
{
    return current;
}

/* ---- the driver ---- */

CUresult cuGetErrorName(CUresult error, const char **name)
{
    ENTER(cuGetErrorName, NEEDS_NOTHING);
    *name = result_name(error);
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    ENTER(cuGetErrorString, NEEDS_NOTHING);
    *text = result_name(error) ? "as the stand-in says" : NULL;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuInit(unsigned int flags)
{
    ENTER(cuInit, NEEDS_NOTHING);
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!standin.script.devices)
        return CUDA_ERROR_NO_DEVICE;
    standin.started = true;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    ENTER(cuDriverGetVersion, NEEDS_NOTHING);
    *version = standin.script.version;
    return CUDA_SUCCESS;
}

/* ---- devices ---- */

static bool is_device(CUdevice device)
{
    return device >= 0 && device < standin.script.devices;
}

CUresult cuDeviceGetCount(int *count)
{
    ENTER(cuDeviceGetCount, NEEDS_START);
    *count = standin.script.devices;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int number)
{
    ENTER(cuDeviceGet, NEEDS_START);
    *device = number;
    return is_device(number) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    ENTER(cuDeviceGetName, NEEDS_START);
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)bytes, "%.*s", NAME_SHOWN, standin.script.name);
    return CUDA_SUCCESS;
}

/* 5eed0000-0000-0000-0000-00000000000N */
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    ENTER(cuDeviceGetUuid_v2, NEEDS_START);
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    memset(uuid, 0, sizeof *uuid);
    uuid->bytes[0] = 0x5e;
    uuid->bytes[1] = (char)0xed;
    uuid->bytes[15] = (char)device;
    return CUDA_SUCCESS;
}

static int attribute(CUdevice_attribute which)
{
    const struct script *s = &standin.script;
    switch (which) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        return s->processors;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
        return s->prohibited ? CU_COMPUTEMODE_PROHIBITED : 0;
    case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
        return 1;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        return s->major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        return s->minor;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        return 227 << 10;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        return 1;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
        return !s->no_export;
    }
    misuse("attribute %d is one that the stand-in does not know", (int)which);
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
    ENTER(cuDeviceGetAttribute, NEEDS_START);
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *value = attribute(which);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    ENTER(cuDeviceTotalMem_v2, NEEDS_START);
    *bytes = standin.script.memory;
    return is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* ---- contexts ---- */

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
    ENTER(cuDevicePrimaryCtxSetFlags_v2, NEEDS_START);
    (void)flags;
    return is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    ENTER(cuDevicePrimaryCtxRetain, NEEDS_START);
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    standin.context[device].device = device;
    standin.context[device].users++;
    *context = &standin.context[device];
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    ENTER(cuDevicePrimaryCtxRelease_v2, NEEDS_START);
    if (!is_device(device) || !standin.context[device].users)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--standin.context[device].users == 0) {
        if (work_is_under_way())
            misuse("the context of device %d goes while work is under way", device);
        if (current == &standin.context[device])
            current = NULL;
    }
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    ENTER(cuCtxSetCurrent, NEEDS_START);
    if (context && !context->users)
        return answer(CUDA_ERROR_INVALID_CONTEXT, "a context that was released becomes a thread's");
    current = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    ENTER(cuCtxGetStreamPriorityRange, NEEDS_CONTEXT);
    *least = 0;
    *greatest = -5;
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    ENTER(cuMemGetInfo_v2, NEEDS_CONTEXT);
    size_t used = standin.script.taken + CONTEXT_BYTES;
    for (struct allocation *a = standin.allocation; a; a = a->next)
        if (a->device == current->device)
            used += a->bytes;
    *total = standin.script.memory;
    *free = used < *total ? *total - used : 0;
    return CUDA_SUCCESS;
}
