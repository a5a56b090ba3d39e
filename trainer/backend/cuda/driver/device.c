/* Finds the GPU that is meant, looks whether it can do what the kernels need, and opens its context; names
 * what went wrong in each later call (cuda_check). backend_gpu.c opens one; all else of this folder works
 * on it. */
#include "trainer/backend/cuda/driver/device.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"

bool cuda_capability_is_built(int major, int minor)
{
    return major == 8 || major == 10 || (major == 9 && minor == 0);
}

enum cuda_trouble cuda_device_trouble(const struct cuda_device *device)
{
    return (enum cuda_trouble)device->trouble;
}

int cuda_check(struct cuda_device *device, CUresult code, const char *doing, struct error *err)
{
    if (code == CUDA_SUCCESS)
        return 0;
    int trouble = (int)cuda_trouble_of(code), seen = device->trouble;
    while (trouble > seen && !atomic_compare_exchange_weak(&device->trouble, &seen, trouble))
        ;
    if (trouble == CUDA_SICK && device->sick)
        device->sick(device->sick_ctx);
    return cuda_driver_failed(device->driver, code, device->label[0] ? device->label : NULL, doing, err);
}

/* ---- which one ---- */

static void uuid_text(const CUuuid *uuid, char out[CUDA_UUID_TEXT])
{
    char hex[33];
    hex_encode(uuid->bytes, sizeof uuid->bytes, hex);
    snprintf(out, CUDA_UUID_TEXT, "GPU-%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
             hex + 20);
}

/* What a driver says of a GPU without a context. */
static int look_at(struct cuda_device *d, int number, struct error *err)
{
    const struct cuda_calls *cu = &d->driver->calls;
    CUuuid uuid;
    if (cuda_check(d, cu->cuDeviceGet(&d->number, number), "find a GPU", err) < 0 ||
        cuda_check(d, cu->cuDeviceGetName(d->name, sizeof d->name, d->number), "ask a GPU for its name",
                   err) < 0 ||
        cuda_check(d, cu->cuDeviceGetUuid_v2(&uuid, d->number), "ask a GPU for its UUID", err) < 0)
        return -1;
    uuid_text(&uuid, d->uuid);
    return 0;
}

/* -1: none. A number of many digits is some UUID's beginning. */
static int number_in(const char *text)
{
    bool digits = strspn(text, "0123456789") == strlen(text);
    return digits && strlen(text) < 5 ? (int)strtol(text, NULL, 10) : -1;
}

/* What there is, for whoever asked for something else: "0 NVIDIA H200 GPU-..., 1 ...", cut where it is long.
 */
static int refuse_wanted(struct cuda_device *d, const char *wanted, int found, struct error *err)
{
    char list[240] = "";
    size_t at = 0;
    for (int i = 0; i < d->driver->devices && at < sizeof list; i++) {
        if (look_at(d, i, err) < 0)
            return -1;
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%d is %s %.12s", i ? ", " : "", i, d->name,
                               d->uuid);
    }
    err_set(err, ERR_MACHINE, "%s GPU \"%.60s\" here; of %d that this process sees %s",
            found ? "more than one" : "there is no", wanted, d->driver->devices, list);
    err_class(err, CLASS_MACHINE);
    return err_person(err);
}

static int choose_device(struct cuda_device *d, const char *wanted, struct error *err)
{
    int found = 0, chosen = wanted && *wanted ? number_in(wanted) : 0;
    if (chosen >= 0)
        return chosen < d->driver->devices ? look_at(d, chosen, err) : refuse_wanted(d, wanted, 0, err);
    for (int i = 0; i < d->driver->devices; i++) {
        if (look_at(d, i, err) < 0)
            return -1;
        if (!strncasecmp(d->uuid, wanted, strlen(wanted))) {
            chosen = i;
            found++;
        }
    }
    return found == 1 ? look_at(d, chosen, err) : refuse_wanted(d, wanted, found, err);
}

/* ---- what it is ---- */

struct asked {
    CUdevice_attribute which;
    int *to;
};

static int ask_device(struct cuda_device *d, const struct asked *asked, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (cuda_check(d, d->driver->calls.cuDeviceGetAttribute(asked[i].to, asked[i].which, d->number),
                       "ask the GPU what it is", err) < 0)
            return -1;
    return 0;
}

static int refuse_device(const struct cuda_device *d, struct error *err, const char *why)
{
    err_set(err, ERR_MACHINE, "%s: %s", d->label, why);
    return err_class(err, CLASS_MACHINE);
}

static int fits(const struct cuda_device *d, int mode, int maps, int exports, struct error *err)
{
    char why[200];
    if (!cuda_capability_is_built(d->major, d->minor)) {
        snprintf(why, sizeof why,
                 "this GPU is of compute capability %d.%d, and there are kernels for 8.x, 9.0 and 10.x; "
                 "train with "
                 "trainer.device: cpu",
                 d->major, d->minor);
        return refuse_device(d, err, why);
    }
    if (mode == CU_COMPUTEMODE_PROHIBITED)
        return refuse_device(
            d, err, "this GPU is in compute mode Prohibited: nvidia-smi -c DEFAULT lets processes use it");
    if (!maps || !exports)
        return refuse_device(
            d, err,
            "this GPU's driver lends no memory that can outlive a process (virtual memory management with "
            "file descriptors): a virtual GPU without it can't be used");
    return 0;
}

static int learn_device(struct cuda_device *d, struct error *err)
{
    int mode = 0, maps = 0, exports = 0;
    const struct asked asked[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &d->major},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &d->minor},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &d->processors},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &d->shared_most},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, &mode},
        {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, &maps},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, &exports},
    };
    snprintf(d->label, sizeof d->label, "%s %s", d->name, d->uuid);
    if (ask_device(d, asked, sizeof asked / sizeof *asked, err) < 0)
        return -1;
    return fits(d, mode, maps, exports, err);
}

/* ---- its context ---- */

/* A thread that waits sleeps: processors are for whoever computes beside it. */
static int open_context(struct cuda_device *d, struct error *err)
{
    const struct cuda_calls *cu = &d->driver->calls;
    const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, d->number},
    };
    if (cuda_check(d, cu->cuDevicePrimaryCtxSetFlags_v2(d->number, CU_CTX_SCHED_BLOCKING_SYNC),
                   "set up a context", err) < 0 ||
        cuda_check(d, cu->cuDevicePrimaryCtxRetain(&d->context, d->number), "begin work on it", err) < 0)
        return -1;
    if (cuda_device_use(d, err) < 0 ||
        cuda_check(d, cu->cuDeviceTotalMem_v2(&d->bytes, d->number), "ask for its memory", err) < 0 ||
        cuda_check(
            d, cu->cuMemGetAllocationGranularity(&d->granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
            "ask for its memory", err) < 0)
        return -1;
    return cuda_check(d, cu->cuCtxGetStreamPriorityRange(&d->priority_least, &d->priority_most),
                      "ask for priorities", err);
}

int cuda_device_open(struct cuda_device **ret, const struct cuda_driver *driver, const char *wanted,
                     struct error *err)
{
    struct cuda_device *d = calloc(1, sizeof *d);
    if (!d)
        return err_set(err, ERR_MACHINE, "no memory");
    d->driver = driver;
    if (choose_device(d, wanted, err) < 0 || learn_device(d, err) < 0 || open_context(d, err) < 0) {
        cuda_device_free(d);
        return -1;
    }
    *ret = d;
    return 0;
}

void cuda_device_free(struct cuda_device *d)
{
    if (d && d->context)
        d->driver->calls.cuDevicePrimaryCtxRelease_v2(d->number);
    free(d);
}

int cuda_device_use(const struct cuda_device *d, struct error *err)
{
    CUresult code = d->driver->calls.cuCtxSetCurrent(d->context);
    return code == CUDA_SUCCESS
               ? 0
               : cuda_driver_failed(d->driver, code, d->label, "work on it in a thread", err);
}

int cuda_device_free_bytes(struct cuda_device *d, size_t *ret, struct error *err)
{
    size_t total;
    return cuda_check(d, d->driver->calls.cuMemGetInfo_v2(ret, &total), "ask for its free memory", err);
}
